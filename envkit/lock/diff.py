"""What differs between two sets of packages: two locks, two states of one lock, a lock and an environment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Literal, get_args

from envkit.lock.order import compare_versions
from envkit.model import Package

__all__ = ["KINDS", "Change", "Diff", "Kind", "apply", "channel_of", "diff", "diff_json"]

Kind = Literal["up", "down", "added", "removed", "moved", "rebuilt", "amended"]
"""What became of a package. "moved" is the same version from another channel, "rebuilt" another build or
archive of it from the same one, "amended" the same archive of which the lock says something else."""

KINDS: tuple[Kind, ...] = get_args(Kind)

_Key = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One package on one platform: as it was (None where it is new) and as it is (None where it is gone)."""

    kind: Kind
    old: Package | None
    new: Package | None

    @property
    def package(self) -> Package:
        """The package as it is, or as it was where it is gone."""
        package = self.new or self.old
        assert package is not None
        return package

    @property
    def moved(self) -> bool:
        """Whether it comes from another channel, whatever else changed. A mirror is no other channel."""
        return self.old is not None and self.new is not None and _moved(self.old, self.new)


@dataclass(frozen=True, kw_only=True, slots=True)
class Diff:
    """The changes, by platform, manager and name. `before` and `after` count packages by platform."""

    changes: tuple[Change, ...]
    before: Mapping[str, int]
    after: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def platforms(self) -> tuple[str, ...]:
        """Every platform of either side."""
        return tuple(sorted({*self.before, *self.after}))

    @property
    def new_platforms(self) -> tuple[str, ...]:
        return tuple(sorted(self.after.keys() - self.before.keys()))

    @property
    def gone_platforms(self) -> tuple[str, ...]:
        return tuple(sorted(self.before.keys() - self.after.keys()))

    def on(self, platform: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.package.platform == platform)


def diff(a: Iterable[Package], b: Iterable[Package], *, archives_only: bool = False) -> Diff:
    """What turns the packages `a` into the packages `b`.

    With `archives_only` nothing is "amended": for an environment, whose records say less than a lock or say
    it in other words. What a side does not know (a hash, a URL) is then no difference.
    """
    before, after = _by_key(a), _by_key(b)
    changes = []
    for key in sorted(before.keys() | after.keys(), key=lambda key: (key[2], key[0], key[1])):
        for old, new in _pairs(before.get(key, []), after.get(key, [])):
            kind = _kind(old, new)
            if kind is not None and not (kind == "amended" and archives_only):
                changes.append(Change(kind=kind, old=old, new=new))
    return Diff(changes=tuple(changes), before=_counts(before), after=_counts(after))


def apply(made: Diff, a: Iterable[Package]) -> tuple[Package, ...]:
    """The packages that a diff makes of those it was made from, in the order of a lock.

    Raises ValueError where a package that it changes is not among `a`.
    """
    packages = _by_key(a)
    for change in made.changes:
        if change.old is not None:
            group = packages.get(_key(change.old), [])
            if change.old not in group:
                raise ValueError(f"{change.old.name} {change.old.version} is not among the packages")
            group.remove(change.old)
        if change.new is not None:
            packages.setdefault(_key(change.new), []).append(change.new)
    return tuple(sorted((package for group in packages.values() for package in group), key=_lock_order))


def channel_of(package: Package) -> str:
    """Where a package comes from, in one word: a channel's name, an index's host; empty where unknown."""
    if not package.url:
        return ""
    base = package.url if package.manager == "pip" else package.url.rsplit("/", 2)[0]
    return _source(base, package.manager)


def diff_json(made: Diff) -> dict[str, Any]:
    """A diff as JSON: counts of each kind, and by platform every change with both sides whole."""
    counts = Counter(change.kind for change in made.changes)
    return {
        "different": bool(made),
        "counts": {kind: counts[kind] for kind in KINDS},
        "new_platforms": list(made.new_platforms),
        "gone_platforms": list(made.gone_platforms),
        "platforms": {
            platform: {
                "before": made.before.get(platform, 0),
                "after": made.after.get(platform, 0),
                "changes": [
                    {
                        "kind": change.kind,
                        "manager": change.package.manager,
                        "name": change.package.name,
                        "moved": change.moved,
                        "old": _side(change.old),
                        "new": _side(change.new),
                    }
                    for change in made.on(platform)
                ],
            }
            for platform in made.platforms
        },
    }


def _side(package: Package | None) -> dict[str, Any] | None:
    from envkit.channels import shown

    if package is None:
        return None
    return {
        "version": package.version,
        "build": package.build,
        "channel": channel_of(package),
        "url": shown(package.url),
        "sha256": package.sha256 or None,
        "md5": package.md5,
        "depends": dict(package.depends),
        "category": package.category,
    }


def _kind(old: Package | None, new: Package | None) -> Kind | None:
    if old is None:
        return "added"
    if new is None:
        return "removed"
    order = compare_versions(new.manager, old.version, new.version)
    if order:
        return "up" if order < 0 else "down"
    if _moved(old, new):
        return "moved"
    if old.version != new.version or _rebuilt(old, new):
        return "rebuilt"
    return None if old == new else "amended"


def _moved(old: Package, new: Package) -> bool:
    if old.url == new.url:
        return False
    sources = {channel_of(old), channel_of(new)}
    return len(sources) == 2 and "" not in sources


def _rebuilt(old: Package, new: Package) -> bool:
    files = {_archive(old), _archive(new)} - {""}
    return len(files) == 2 or any(
        mine and theirs and mine != theirs for mine, theirs in ((old.sha256, new.sha256), (old.md5, new.md5))
    )


def _archive(package: Package) -> str:
    """What tells one archive of a version from another; for wheels the hash alone does."""
    if package.manager == "pip" or not package.url:
        return ""
    return f"{package.subdir}/{package.file_name}"


def _pairs(old: Sequence[Package], new: Sequence[Package]) -> Iterator[tuple[Package | None, Package | None]]:
    """What became what among packages of one name; there is one on either side but in a broken lock."""
    gone, come = list(old), list(new)
    for package in old:
        if package in come:
            gone.remove(package)
            come.remove(package)
    yield from zip_longest(gone, come)


def _by_key(packages: Iterable[Package]) -> dict[_Key, list[Package]]:
    found: dict[_Key, list[Package]] = {}
    for package in packages:
        found.setdefault(_key(package), []).append(package)
    return found


def _key(package: Package) -> _Key:
    """pip's names are compared as PEP 503 normalises them."""
    name = package.name
    if package.manager == "pip":
        name = re.sub(r"[-_.]+", "-", name).lower()
    return package.manager, name, package.platform


def _counts(packages: Mapping[_Key, Sequence[Package]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for key, group in packages.items():
        counts[key[2]] += len(group)
    return dict(sorted(counts.items()))


def _lock_order(package: Package) -> tuple[str, ...]:
    return package.manager, package.name, package.platform, package.version, package.url, package.category


@lru_cache(maxsize=256)
def _source(base: str, manager: str) -> str:
    # Not imported above: whoever only reads a lock need not wait for the table of mirrors.
    from envkit.channels import canonicalise_url, shown

    found = canonicalise_url(base)
    if manager == "pip":
        return "PyPI" if found.tree == "files" else found.host or shown(base.rsplit("/", 1)[0])
    return found.channel or shown(found.url)
