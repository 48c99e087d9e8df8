"""The way back: the environment made again from its lock, in place of what it has become."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error, InputError
from envkit.files import sha256_of
from envkit.install import marker
from envkit.install.busy import refuse_busy
from envkit.install.drift.compare import drift
from envkit.install.drift.shell import OF_THE_SHELL
from envkit.install.drift.subject import Subject
from envkit.install.install import install
from envkit.messages import _
from envkit.model import Environment, Lock, Report, Status
from envkit.progress import SILENT, Observer

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["Repaired", "repair"]

_LOST = ("drift.added", "drift.extra", "drift.files-changed")
"""What a repair undoes. Files of nobody are moved aside (`envkit.install.keep`)."""

_WELL = (Status.OK, Status.WARN)


@dataclass(frozen=True, kw_only=True, slots=True)
class Repaired:
    """What was found, what was lost by making it anew, and what it is now; None where nothing was to do."""

    before: Report
    lost: tuple[str, ...] = ()
    after: Report | None = None


def repair(
    environment: Environment,
    *,
    routes: Routes,
    cache: Path,
    deep: bool = False,
    lock: Lock | None = None,
    observer: Observer = SILENT,
) -> Repaired:
    """Make the environment again from its own copy of the lock (or `lock`), if it has drifted.

    The observer hears first what will be lost. The new one is staged and takes the place of the old at the
    last moment, as by any installation. Raises InputError for an environment that envkit did not make,
    Error for one that has no lock or that running processes use; both leave it as it was.
    """
    subject = Subject(environment=environment)
    if not subject.ours:
        raise InputError(
            _("{prefix} is not an environment that envkit made").format(prefix=subject.prefix),
            _("make it again with what made it"),
        )
    before = drift(environment, deep=deep, lock=lock, observer=observer)
    broken = [check for check in before.checks if check.status not in _WELL and check.id not in OF_THE_SHELL]
    if not broken:
        return Repaired(before=before)
    written = marker.read(environment.prefix)
    source = lock if lock is not None else _own(subject, written.lock_sha256 if written else None)
    refuse_busy(environment.prefix)
    lost = tuple(
        check.summary for check in before.checks if check.id in _LOST and check.status is not Status.OK
    )
    for line in lost:
        observer.note(_("will be lost: {what}").format(what=line))
    made = install(
        source,
        environment.prefix,
        name=environment.name,
        variant=environment.asked,
        routes=routes,
        cache=cache,
        observer=observer,
        platform=written.platform if written else None,
        force=True,
    )
    return Repaired(before=before, lost=lost, after=drift(made, deep=deep, observer=observer))


def _own(subject: Subject, sha256: str | None) -> Lock:
    """The environment's own copy of its lock. Raises Error where it is not the lock it was made from."""
    from envkit.lock import read_lock

    copy = marker.lock_copy(subject.prefix)
    hint = _("run `envkit drift {name} --repair --lock FILE` with the lock it was made from").format(
        name=subject.call
    )
    try:
        if sha256_of(copy) == sha256:
            return read_lock(copy)
        reason = _("the copy of its lock was changed after the installation")
    except FileNotFoundError:
        reason = _("there is no copy of a lock in it")
    except OSError as problem:
        reason = problem.strerror or str(problem)
    raise Error(_("{prefix} cannot be repaired: {reason}").format(prefix=subject.prefix, reason=reason), hint)
