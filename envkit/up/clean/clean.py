"""The kinds in order, and one call over some of them."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from envkit import paths
from envkit.errors import Error
from envkit.messages import _
from envkit.up.clean import beside, cache, processes
from envkit.up.clean.found import Found, Kind, Place, freed_by

__all__ = ["KINDS", "Cleaned", "clean", "here"]

KINDS = (
    Kind(name="staging", free=True, find=beside.staging, alone=beside.alone),
    Kind(name="temporary", free=True, find=processes.temporary, alone=processes.alone_in_temporary),
    Kind(name="shared-memory", free=True, find=processes.shared_memory, alone=processes.namespace_is_ours),
    Kind(name="unfinished", free=True, find=cache.unfinished, alone=cache.alone),
    Kind(name="partial", free=False, find=cache.partial_downloads, alone=cache.alone),
    Kind(name="downloads", free=False, find=cache.downloads, alone=cache.alone),
    Kind(
        name="packages",
        free=False,
        find=cache.packages,
        alone=cache.alone,
        kept=cache.packages_in_use,
    ),
    Kind(name="pip-files", free=False, find=cache.pip_files, alone=cache.alone),
    Kind(name="channels", free=False, find=cache.channels, alone=cache.alone),
    Kind(name="pip", free=False, find=cache.pip, alone=cache.alone),
    Kind(name="repodata", free=False, find=cache.repodata, alone=cache.alone),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleaned:
    """What became of one kind. `size` are the bytes freed, or that would be; `kept` those that are in use.

    `chosen` is whether it was to be cleaned (others are only counted), `skipped` why it was not, `failed`
    what could not be deleted, and why.
    """

    kind: Kind
    chosen: bool
    paths: tuple[Path, ...] = ()
    size: int = 0
    kept: int = 0
    skipped: str = ""
    failed: tuple[tuple[Path, str], ...] = ()


def here(*, dry_run: bool = False) -> Place:
    """The folders of this user on this machine."""
    return Place(
        environments=paths.environments(),
        state=paths.state(),
        cache=paths.cache(),
        temporary=Path(tempfile.gettempdir()),
        shared_memory=Path("/dev/shm"),
        dry_run=dry_run,
    )


def clean(place: Place, kinds: Collection[str] = (), *, every: bool = False) -> tuple[Cleaned, ...]:
    """Clean the named kinds, all, or without either those that nobody can miss; the others are counted.

    What another process uses is left, and said. With `place.dry_run` nothing at all is written or deleted.
    """
    named = frozenset(kinds)
    return tuple(
        _one(kind, place, chosen=every or (kind.name in named if named else kind.free))
        for kind in KINDS
        if every or not named or kind.name in named
    )


def _one(kind: Kind, place: Place, *, chosen: bool) -> Cleaned:
    with kind.alone(place) as free:
        if not free:
            return Cleaned(kind=kind, chosen=chosen, skipped=_why(kind))
        found = tuple(kind.find(place))
        size, kept = freed_by(found), kind.kept(place)
        failed = _removed(found) if chosen and not place.dry_run else ()
        if failed:
            size -= freed_by(one for one in found if one.path in dict(failed))
    return Cleaned(
        kind=kind,
        chosen=chosen,
        paths=tuple(one.path for one in found),
        size=size,
        kept=kept,
        failed=failed,
    )


def _removed(found: Collection[Found]) -> tuple[tuple[Path, str], ...]:
    failed = []
    for one in found:
        try:
            one.remove()
        except FileNotFoundError:
            continue  # somebody else was quicker
        except (OSError, Error) as problem:
            failed.append((one.path, (getattr(problem, "strerror", None) or str(problem))))
    return tuple(failed)


def _why(kind: Kind) -> str:
    if kind.name == "shared-memory":
        return _("this container shares its memory with processes that cannot be seen from here")
    return _("another envkit process uses the cache, or it cannot be written to")
