"""The packages of a prefix against those of its lock: missing, extra, another version, build or archive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.install.drift.records import Record
from envkit.install.plan import Plan
from envkit.lock.diff import Change, channel_of, diff
from envkit.lock.installed import packages_of
from envkit.model import Package

__all__ = ["Packages", "compare", "said"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Packages:
    """What differs, by name. `extra` are conda's, `added` are pip's that the lock does not name."""

    missing: tuple[Package, ...]
    extra: tuple[Package, ...]
    added: tuple[Package, ...]
    other: tuple[Change, ...]
    present: int


def compare(prefix: Path, records: Sequence[Record], wanted: Plan) -> Packages:
    """What differs between the packages of a plan and those that a prefix's records name.

    Another channel is no difference where the archive is known to be the same.
    """
    locked = (*wanted.conda, *wanted.pip)
    present = packages_of(prefix, [record.document for record in records], wanted.platform)
    made = diff(locked, map(_comparable, present), archives_only=True)
    come = [change.package for change in made.changes if change.old is None]
    return Packages(
        missing=tuple(change.package for change in made.changes if change.new is None),
        extra=tuple(package for package in come if package.manager == "conda"),
        added=tuple(package for package in come if package.manager == "pip"),
        other=tuple(change for change in made.changes if change.old and change.new and not _same(change)),
        present=len(present),
    )


def said(packages: Iterable[Package | Change]) -> tuple[str, ...]:
    """Packages and changes as people read them: "numpy 1.26.4", "numpy 1.26.4 -> 2.0.1 (conda-forge)"."""
    return tuple(_said(one) for one in packages)


def _said(one: Package | Change) -> str:
    if isinstance(one, Package):
        return f"{one.name} {one.version}"
    old, new = one.old, one.new
    assert old is not None
    assert new is not None
    if old.version != new.version:
        return f"{new.name} {old.version} -> {new.version}"
    if old.build != new.build:
        return f"{new.name} {new.version}: {old.build} -> {new.build}"
    if one.kind == "moved":
        return f"{new.name} {new.version}: {channel_of(old)} -> {channel_of(new)}"
    return f"{new.name} {new.version}: sha256 {old.sha256[:12]}... -> {new.sha256[:12]}..."


def _comparable(package: Package) -> Package:
    """pip notes from where it took a wheel, which may have been the cache: that says nothing."""
    return replace(package, url="") if package.manager == "pip" else package


def _same(change: Change) -> bool:
    old, new = change.old, change.new
    return (
        change.kind == "moved"
        and old is not None
        and new is not None
        and bool(old.sha256)
        and old.sha256 == new.sha256
    )
