"""Removing an environment: out of sight in one rename, then deleted."""

from __future__ import annotations

from envkit.errors import Error, InputError
from envkit.install import conda, marker
from envkit.install.busy import refuse_busy
from envkit.install.hold import hold
from envkit.install.stage import recover, staged
from envkit.install.target import check_target
from envkit.messages import _
from envkit.model import Environment
from envkit.progress import SILENT, Observer

__all__ = ["remove"]


def remove(environment: Environment, observer: Observer = SILENT) -> None:
    """Delete an environment that envkit made.

    Raises InputError for any other folder, Error for one that running processes use.
    """
    prefix = environment.prefix
    if not marker.path(prefix).is_file():
        raise InputError(
            _("{prefix} is not an environment that envkit made").format(prefix=prefix),
            _("remove it with what made it (`conda env remove -p {prefix}`)").format(prefix=prefix),
        )
    with hold(prefix, observer):
        recover(prefix, observer)
        if not check_target(prefix):
            return  # another process removed it meanwhile
        refuse_busy(prefix)
        with staged(prefix, observer) as stage:
            try:
                prefix.rename(stage.gone)
            except OSError as problem:
                raise Error(
                    _("cannot remove {prefix}: {reason}").format(
                        prefix=prefix, reason=problem.strerror or problem
                    ),
                    _("check the permissions of its folder"),
                ) from None
    conda.unregister(prefix)
