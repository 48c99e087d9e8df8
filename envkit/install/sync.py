"""Exact sync: what an environment has, what its lock wants, and so what comes, changes and goes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envkit.errors import Error
from envkit.install import marker
from envkit.install.plan import Plan, plan
from envkit.model import Package

if TYPE_CHECKING:
    from envkit.lock import Change

__all__ = ["Sync", "added_by_user", "sync"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sync:
    """What differs between an environment and a plan, by package.

    `change` leads from what is there to what is wanted. `added` are those of `remove` that somebody added by
    pip: the lock it was made from did not name them.
    """

    add: tuple[Package, ...] = ()
    change: tuple[Change, ...] = ()
    remove: tuple[Package, ...] = ()
    added: tuple[Package, ...] = ()


def sync(prefix: Path, wanted: Plan) -> Sync:
    """What must change at `prefix` to have what is wanted; all is to be added where nothing stands."""
    from envkit.install.drift.packages import compare
    from envkit.install.drift.records import read_records

    records, _faults = read_records(prefix)
    found = compare(prefix, records, wanted)
    earlier = _earlier(prefix)
    known = {canonicalize_name(package.name) for package in earlier.pip} if earlier else set()
    return Sync(
        add=found.missing,
        change=tuple(replace(change, old=change.new, new=change.old) for change in found.other),
        remove=(*found.extra, *found.added),
        added=tuple(package for package in found.added if canonicalize_name(package.name) not in known),
    )


def added_by_user(prefix: Path, wanted: Plan) -> tuple[str, ...]:
    """ "name version" of what was added by pip and is not wanted."""
    return tuple(f"{package.name} {package.version}" for package in sync(prefix, wanted).added)


def _earlier(prefix: Path) -> Plan | None:
    """What the environment was made of; None where its lock cannot be read."""
    from envkit.lock import read_lock

    if not marker.lock_copy(prefix).is_file():  # reading a pipe would never end
        return None
    try:
        written = marker.read(prefix)
        return plan(read_lock(marker.lock_copy(prefix)), written.platform if written else None)
    except (Error, OSError):
        return None
