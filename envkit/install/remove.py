"""Removing an environment: out of sight in one rename, then deleted."""

from __future__ import annotations

from pathlib import Path

from envkit import paths
from envkit.errors import Error, InputError
from envkit.install import conda, marker
from envkit.install.busy import refuse_busy
from envkit.install.current import names, read_environment
from envkit.install.hold import hold, lock_file
from envkit.install.stage import left_behind, recover, staged
from envkit.install.target import check_target, locate
from envkit.messages import _
from envkit.model import Environment
from envkit.progress import SILENT, Observer

__all__ = ["removable", "remove"]


def removable(name_or_prefix: str) -> Environment:
    """The environment of that name or at that path, for `remove`: also a damaged or a half-removed one.

    Raises as `read_environment` does where there is none.
    """
    if not name_or_prefix:
        none = _("there is none yet: make one with `envkit up`")
        raise InputError(_("no environment was named"), _others() or none)
    try:
        return read_environment(name_or_prefix)
    except Error as problem:
        prefix = locate(name_or_prefix)
        if not (marker.path(prefix).is_file() or _half_removed(prefix)):
            if isinstance(problem, InputError) and (hint := _others()):
                raise InputError(problem.message, hint) from None
            raise
        return Environment(name=prefix.name, prefix=prefix)


def _others() -> str:
    """A hint that lists the environments that could be removed, damaged ones too; "" where there are none."""
    found = [path.parent.parent.name for path in paths.environments().glob("*/conda-meta/envkit")]
    listed = ", ".join(sorted({*found, *names()}))
    return _("there are: {names}; of one elsewhere give the path").format(names=listed) if listed else ""


def remove(environment: Environment, observer: Observer = SILENT) -> None:
    """Delete an environment that envkit made, or finish a removal that was killed.

    Raises InputError for any other folder, Error for one that running processes use.
    """
    prefix = environment.prefix
    if not marker.path(prefix).is_file() and not _half_removed(prefix):
        raise InputError(
            _("{prefix} is not an environment that envkit made").format(prefix=prefix),
            _("remove it with what made it (`conda env remove -p {prefix}`)").format(prefix=prefix),
        )
    with hold(prefix, observer):
        recover(prefix, observer)
        # Otherwise another process removed it, or one that was killed before it had deleted everything.
        if check_target(prefix):
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


def _half_removed(prefix: Path) -> bool:
    """Whether a killed process left something where an environment was."""
    return not prefix.exists() and (bool(left_behind(prefix)) or lock_file(prefix).exists())
