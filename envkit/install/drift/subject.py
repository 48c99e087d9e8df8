"""The environment that is looked at, the lock it is compared with, and the commands that hints name."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from envkit import paths
from envkit.errors import Error
from envkit.files import sha256_of
from envkit.install import marker
from envkit.install.drift.verdicts import bad, ok, skip, warn
from envkit.install.plan import Plan, plan
from envkit.messages import _
from envkit.model import Check, Environment, Lock

__all__ = ["Subject", "wanted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """An environment, as hints speak of it."""

    environment: Environment

    @property
    def prefix(self) -> Path:
        return self.environment.prefix

    @property
    def ours(self) -> bool:
        """Whether envkit made it."""
        return marker.path(self.prefix).is_file()

    @property
    def call(self) -> str:
        """What names it on a command line."""
        named = self.prefix == paths.environments() / self.environment.name
        return shlex.quote(self.environment.name if named else str(self.prefix))

    @property
    def repair(self) -> str:
        """What to run to have it as its lock says."""
        if not self.ours:
            return _("make it again with what made it")
        return _("run `envkit drift {name} --repair`").format(name=self.call)


def wanted(subject: Subject, given: Lock | None) -> tuple[Plan | None, Check]:
    """What should be in the environment, and the check `drift.lock` of the lock that says so.

    That is `given`, or the copy that the installation left in the environment.
    """
    from envkit.lock import read_lock

    copy = marker.lock_copy(subject.prefix)
    name_one = _("run `envkit drift {name} --lock FILE` with the lock it was made from").format(
        name=subject.call
    )
    try:
        written = marker.read(subject.prefix)
        if given is None and not copy.is_file():
            text = _("there is no copy of a lock in it: its packages cannot be compared")
            return None, skip("drift.lock", text, name_one)
        lock = given or read_lock(copy)
        found = plan(lock, written.platform if written else None)
        another = written is not None and sha256_of(lock.path) != written.lock_sha256
    except (Error, OSError) as problem:
        text = _("its lock cannot be used: {reason}").format(reason=problem)
        return None, bad("drift.lock", text, name_one)
    count = len(found.conda) + len(found.pip)
    data = {"path": str(lock.path), "packages": count, "platform": found.platform}
    if another and given is None:
        text = _("the copy of its lock was changed after the installation")
        return found, bad("drift.lock", text, name_one, data=data)
    if another:
        text = _("compared with {path}, which is not the lock it was made from").format(path=lock.path)
        return found, warn("drift.lock", text, data=data)
    text = _("compared with the {count} packages of {path}").format(count=count, path=lock.path)
    return found, ok("drift.lock", text, data)
