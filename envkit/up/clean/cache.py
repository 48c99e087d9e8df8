"""What is in the cache and may go: nothing that an environment, a lock or a running process needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from envkit.fetch.store import Store
from envkit.fetch.use import alone as alone_in
from envkit.fetch.wheels import wheel_cache
from envkit.files import read_plain
from envkit.install import marker
from envkit.install.own_index import OWN_INDEX
from envkit.up.clean.found import Found, Place

__all__ = [
    "alone", "channels", "downloads", "packages", "packages_in_use", "partial_downloads", "pip", "pip_files",
    "repodata", "unfinished",
]  # fmt: skip

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCRATCH = re.compile(r"tmp[a-z0-9_]+|\.lock")
_INDEX = re.compile(r".+\.json.*")
_CHANNEL = re.compile(r"/wheels/channels/([0-9a-f]{32})(?:/|\b)")


@contextmanager
def alone(place: Place) -> Iterator[bool]:
    """Whether no other process uses the cache."""
    if not place.cache.is_dir():
        yield True
        return
    with alone_in(place.cache, dry_run=place.dry_run) as free:
        yield free


def unfinished(place: Place) -> Iterator[Found]:
    """What killed runs left half-made, and what would not be trusted again."""
    store = Store(place.cache)
    own = store.folder / ".envkit"
    yield from (Found(path=path) for path in _children(own / "unpacking"))
    for folder in (place.cache / "wheels" / "work", place.cache / "bundles"):
        yield from (Found(path=path) for path in _children(folder) if _SCRATCH.fullmatch(path.name))
    yield from (
        Found(path=path) for path in _children(place.cache / "repodata") if path.name.startswith(".fetch-")
    )
    yield from (
        Found(path=path) for path in _children(place.cache / "downloads") if path.name.startswith(OWN_INDEX)
    )
    # ENVKIT_CACHE may name a folder that others use too: conda's own packages also lie in `pkgs`.
    whole = _whole(store)
    for name in store.entries() if own.is_dir() else ():
        if name not in whole:
            yield Found(path=store.folder / name, delete=partial(store.evict, name))
    # Locks and seals of packages that are gone; nobody waits for one, for nobody uses the cache.
    notes = [
        *_children(own / "seals"),
        *_children(own / "locks"),
        *(store.folder.glob("*.lock") if own.is_dir() else ()),
    ]
    for note in sorted(notes):
        if note.stem not in whole and note.name != ".cache.lock":
            yield Found(path=note)
    unpacked = set(whole.values())
    for path in _children(place.cache / "downloads"):
        if path.suffix == ".partial" and path.stem in unpacked:
            yield Found(path=path)


def partial_downloads(place: Place) -> Iterator[Found]:
    """Downloads that were cut off and would be resumed."""
    unpacked = set(_whole(Store(place.cache)).values())
    for path in _children(place.cache / "downloads"):
        if path.suffix == ".partial" and _SHA256.fullmatch(path.stem) and path.stem not in unpacked:
            yield Found(path=path)


def downloads(place: Place) -> Iterator[Found]:
    """Whole archives."""
    for path in _children(place.cache / "downloads"):
        if path.suffix != ".partial" and _SHA256.match(path.name):
            yield Found(path=path)


def packages(place: Place) -> Iterator[Found]:
    """Unpacked packages that no environment uses."""
    store = Store(place.cache)
    recorded = _recorded(place)
    for name in store.entries() if (store.folder / ".envkit").is_dir() else ():
        if name not in recorded and not _is_linked(store.folder / name):
            yield Found(
                path=store.folder / name,
                others=(store.folder / f"{name}.lock",),
                delete=partial(store.evict, name),
            )


def packages_in_use(place: Place) -> int:
    """The bytes of unpacked packages that environments use: most of them are the environments' own files."""
    store = Store(place.cache)
    unused = {found.path.name for found in packages(place)}
    used = (store.folder / name for name in store.entries() if name not in unused)
    return sum(
        seen.st_size for path in used for folder, _folders, names in os.walk(path)
        for name in names if (seen := Path(folder, name).lstat())
    )  # fmt: skip


def pip_files(place: Place) -> Iterator[Found]:
    """The files of pip sections."""
    for path in _children(wheel_cache(place.cache)):
        if _SHA256.fullmatch(path.name) or path.name == ".locks":
            yield Found(path=path)


def channels(place: Place) -> Iterator[Found]:
    """Channels made from wheels that neither a lock in the state folder nor an environment names, and the
    packages that are in no other."""
    root = place.cache / "wheels"
    named = set(_channels_named(place))
    gone = [path for path in _children(root / "channels") if path.name not in named]
    yield from (Found(path=path) for path in gone)
    staying = {
        (seen.st_dev, seen.st_ino)
        for path in _children(root / "channels")
        if path not in gone
        for archive in path.glob("*/*.conda")
        if (seen := archive.stat())
    }
    for path in _children(root / "packages"):
        archives = [archive.stat() for archive in path.glob("*.conda")]
        if not any((seen.st_dev, seen.st_ino) in staying for seen in archives):
            yield Found(path=path)


def pip(place: Place) -> Iterator[Found]:
    """What pip and the resolver of pip sections keep, and the wheels of envkit itself that bundles have."""
    for name in ("pip", "pypi", "tools"):
        if (place.cache / name).is_dir():
            yield Found(path=place.cache / name)


def repodata(place: Place) -> Iterator[Found]:
    """The indexes of channels."""
    for path in _children(place.cache / "repodata"):
        if _INDEX.fullmatch(path.name):
            yield Found(path=path)


def _whole(store: Store) -> dict[str, str]:
    """The packages that would be used again, with the sha256 of their archives."""
    return {name: sha256 for name in store.entries() if (sha256 := store.archive_of(name))}


def _recorded(place: Place) -> frozenset[str]:
    """The packages of the named environments, by their records: they may lie on another file system."""
    return frozenset(record.stem for record in place.environments.glob("*/conda-meta/*.json"))


def _is_linked(entry: Path) -> bool:
    """Whether a file of an unpacked package has another name, in an environment wherever it is."""
    return any(
        Path(folder, name).lstat().st_nlink > 1
        for folder, _folders, names in os.walk(entry)
        for name in names
    )


def _channels_named(place: Place) -> Iterator[str]:
    locks = [*place.state.glob("locks/*/conda-lock.yml")]
    locks += [marker.lock_copy(prefix) for prefix in _children(place.environments)]
    for lock in locks:
        try:
            text = read_plain(lock).decode("utf-8", "replace")
        except OSError:
            continue
        yield from _CHANNEL.findall(text)


def _children(folder: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(folder.iterdir()))
    except OSError:
        return ()
