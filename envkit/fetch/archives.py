"""The packages of a lock into the package cache: fetched from several hosts, unpacked while others arrive."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from envkit.channels import shown
from envkit.errors import Error, InputError
from envkit.fetch.disk import private_folder, writing
from envkit.fetch.gathering import Gathering, Item, item
from envkit.fetch.routes import Routes
from envkit.fetch.session import Stopped
from envkit.fetch.store import Store
from envkit.fetch.wanted import Rejected
from envkit.messages import _
from envkit.model import Package
from envkit.progress import SILENT, Observer

__all__ = ["archives", "downloads"]

_MAGIC = {".conda": (b"PK\x03\x04",), ".tar.bz2": (b"BZh",)}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Archive:
    """One archive to have. `name` is its folder in the package cache."""

    name: str
    ending: str
    item: Item

    @property
    def sha256(self) -> str:
        return self.item.sha256


def archives(
    packages: Sequence[Package],
    *,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    sizes: Mapping[str, int] | None = None,
) -> None:
    """Have every conda package of `packages` unpacked in `package_cache(cache)`, so that rattler finds it.

    Packages that are there already, from the same archive and unchanged, are left alone. Each archive is
    downloaded (or read from a `file://` directory), its sha256 checked, and unpacked while others arrive.
    `sizes` are bytes by sha256, where they are known: then a disk without room is refused before the
    first byte. Interrupted at any time, it leaves whole packages and `.partial` files, which are
    resumed. Raises InputError for a package that cannot be had from the chosen mirrors, FetchError,
    Unreachable, Offline, and Error for a damaged or unsafe archive or a full disk.
    """
    store = Store(cache)
    wanted = _unique(packages, routes)
    store.prepare()
    missing = [archive for archive in wanted if not store.holds(archive.name, archive.sha256)]
    if missing:
        _Unpacking(store=store, gathering=_gathering(routes, cache, observer, sizes)).all(missing)


def downloads(
    packages: Sequence[Package],
    *,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Path]:
    """The archives of every conda package of `packages`, by sha256: whole files, checked and not unpacked.

    One that came over the network is kept as `cache/downloads/<sha256><ending>`; one in a `file://` directory
    stays where it lies. What was downloaded already is hashed again before it counts. Raises as
    `archives` does.
    """
    store = Store(cache)
    wanted = _unique(packages, routes)
    store.prepare()
    gathering = _gathering(routes, cache, observer, sizes)
    found: dict[str, Path] = {}

    def have(archive: _Archive) -> None:
        whole = gathering.downloads / f"{archive.sha256}{archive.ending}"
        with store.lock(archive.name, gathering.observer, gathering.stop):
            found[archive.sha256] = gathering.keep(archive.item, whole)

    gathering.all(wanted, lambda archive: archive.item, have)
    return found


def _gathering(routes: Routes, cache: Path, observer: Observer, sizes: Mapping[str, int] | None) -> Gathering:
    folder = cache / "downloads"
    private_folder(folder)
    return Gathering(session=routes.session, downloads=folder, observer=observer, sizes=sizes or {})


@dataclass(kw_only=True, slots=True)
class _Unpacking:
    """What the threads of one call do with each archive; as many unpack at once as there are cores."""

    store: Store
    gathering: Gathering
    cores: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(max(1, len(os.sched_getaffinity(0))))
    )

    def all(self, missing: Sequence[_Archive]) -> None:
        self.gathering.all(missing, lambda archive: archive.item, self._one)

    def _one(self, archive: _Archive) -> None:
        observer = self.gathering.observer
        with self.store.lock(archive.name, observer, self.gathering.stop):
            if self.store.was_changed(archive.name, archive.sha256):
                observer.note(
                    _("{name}: changed in the package cache; fetching it again").format(name=archive.name)
                )
            if not self.store.holds(archive.name, archive.sha256):
                self._have(archive)

    def _have(self, archive: _Archive) -> None:
        folder = self.gathering.downloads
        whole = folder / f"{archive.sha256}{archive.ending}"
        with writing(folder), suppress(FileNotFoundError):
            # Left by a run that was killed while it unpacked, or that made a bundle.
            whole.rename(folder / f"{archive.sha256}.partial")
        served, partial = self.gathering.fetch(archive.item)
        with self.cores:
            if self.gathering.stop.is_set():
                raise Stopped
            try:
                self._unpack(archive, served.path or partial, partial, whole)
            except Rejected as problem:
                raise Error(
                    _("{file} cannot be unpacked: {reason}").format(file=archive.item.file, reason=problem),
                    _("the archive is what the lock names: ask who made the lock or the package"),
                ) from None

    def _unpack(self, archive: _Archive, path: Path, partial: Path, whole: Path) -> None:
        """Unpack a file, or a download: that is then removed; meanwhile it has the ending rattler goes by."""
        if path != partial:
            self.store.add(archive.name, path, archive.sha256)
            return
        with writing(whole.parent):
            partial.rename(whole)
        try:
            self.store.add(archive.name, whole, archive.sha256)
        except Rejected:
            whole.unlink(missing_ok=True)
            raise
        except BaseException:
            whole.rename(partial)
            raise
        whole.unlink()


def _unique(packages: Sequence[Package], routes: Routes) -> list[_Archive]:
    """The archives of the conda packages, each once, with where to ask for them."""
    found: dict[str, _Archive] = {}
    for package in packages:
        if package.manager != "conda":
            continue
        archive = _archive(package, routes)
        other = found.setdefault(archive.name, archive)
        if other.sha256 != archive.sha256:
            raise InputError(
                _("the lock has two different archives of {name}").format(name=archive.name),
                _("lock again"),
            )
    return list(found.values())


def _archive(package: Package, routes: Routes) -> _Archive:
    file = unquote(package.file_name)
    ending = next((known for known in _MAGIC if file.endswith(known)), "")
    name = file.removesuffix(ending)
    if not ending or name.rpartition("-")[0] != f"{package.name}-{package.version}":
        raise InputError(
            _("the lock says {name} {version}, but its URL is {url}").format(
                name=package.name, version=package.version, url=shown(package.url)
            ),
            _("lock again, or correct the URL"),
        )
    return _Archive(
        name=name, ending=ending, item=item(package, file, routes.urls(package.url), _MAGIC[ending])
    )
