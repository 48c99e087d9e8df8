"""The packages of a lock into the package cache: fetched from several hosts, unpacked while others arrive."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from envkit.channels import local_path, shown
from envkit.errors import Error, InputError
from envkit.fetch.disk import require_room, writing
from envkit.fetch.failures import FetchError
from envkit.fetch.routes import Routes
from envkit.fetch.session import Stopped
from envkit.fetch.store import Store
from envkit.fetch.transfer import fetch
from envkit.fetch.wanted import Candidate, Rejected, Wanted
from envkit.messages import _
from envkit.model import Package
from envkit.progress import SILENT, Observer

__all__ = ["archives"]

_MAGIC = {".conda": (b"PK\x03\x04",), ".tar.bz2": (b"BZh",)}
_WORKERS = 8
_WIND_DOWN = 5.0
"""Seconds that stopped threads get to put things in order; one waiting for a silent host is left behind."""
_TICK = 0.5
"""Seconds between looks for a signal: one that comes just before a wait would not be seen until its end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Archive:
    """One archive to have. `name` is its folder in the package cache."""

    name: str
    ending: str
    sha256: str
    urls: tuple[str, ...]

    @property
    def file(self) -> str:
        return self.name + self.ending


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
    Unreachable, and Error for a damaged or unsafe archive or a full disk.
    """
    wanted = _unique(packages, routes)
    store = Store(cache)
    store.prepare()
    missing = [archive for archive in wanted if not store.holds(archive.name, archive.sha256)]
    if not missing:
        return
    known = [size for archive in missing if (size := (sizes or {}).get(archive.sha256)) is not None]
    require_room(store.folder, sum(known))
    run = _Run(
        store=store, routes=routes, downloads=cache / "downloads", observer=observer, sizes=sizes or {}
    )
    observer.start(run.bytes_task, sum(known) if len(known) == len(missing) else None)
    observer.start(run.packages_task, len(missing), _("packages"))
    try:
        run.all(missing)
    finally:
        observer.finish(run.bytes_task)
        observer.finish(run.packages_task)
    observer.note(run.summary())


@dataclass(kw_only=True, slots=True)
class _Run:
    """One call's threads and what they share."""

    store: Store
    routes: Routes
    downloads: Path
    observer: Observer
    sizes: Mapping[str, int]
    bytes_task: str = field(default_factory=lambda: _("downloading"))
    packages_task: str = field(default_factory=lambda: _("packages ready"))
    stop: threading.Event = field(default_factory=threading.Event)
    unpacking: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(max(1, len(os.sched_getaffinity(0))))
    )
    counting: threading.Lock = field(default_factory=threading.Lock)
    served: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)

    def all(self, missing: Sequence[_Archive]) -> None:
        """Have them all; the first failure, or Ctrl-C, stops the others at their next block."""
        pool = ThreadPoolExecutor(min(_WORKERS, len(missing)), thread_name_prefix="fetch")
        futures: list[Future[None]] = []
        try:
            for archive in missing:
                futures.append(pool.submit(self.one, archive))
            while not _ended(*wait(futures, timeout=_TICK, return_when=FIRST_EXCEPTION)):
                pass
        finally:
            self.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            wait([future for future in futures if not future.cancelled()], timeout=_WIND_DOWN)
        _raise_first(futures)

    def one(self, archive: _Archive) -> None:
        """Have one archive unpacked."""
        with self.store.lock(archive.name, self.observer, self.stop):
            if self.store.was_changed(archive.name, archive.sha256):
                self.observer.note(
                    _("{name}: changed in the package cache; fetching it again").format(name=archive.name)
                )
            if not self.store.holds(archive.name, archive.sha256):
                self._have(archive)
        self.observer.advance(self.packages_task)

    def _have(self, archive: _Archive) -> None:
        partial = self.downloads / f"{archive.sha256}.partial"
        whole = self.downloads / f"{archive.sha256}{archive.ending}"
        with writing(self.downloads), suppress(FileNotFoundError):
            whole.rename(partial)  # a run was killed while it unpacked
        wanted = Wanted(
            name=archive.file,
            candidates=tuple(Candidate(url=url, magic=_MAGIC[archive.ending]) for url in archive.urls),
            sha256=archive.sha256,
            size=self.sizes.get(archive.sha256),
        )
        served = fetch(
            self.routes.session,
            wanted,
            partial,
            observer=self.observer,
            task=self.bytes_task,
            stop=self.stop,
        )
        with self.unpacking:
            if self.stop.is_set():
                raise Stopped
            try:
                self._unpack(archive, served.path or partial, partial, whole)
            except Rejected as problem:
                raise Error(
                    _("{file} cannot be unpacked: {reason}").format(file=archive.file, reason=problem),
                    _("the archive is what the lock names: ask who made the lock or the package"),
                ) from None
        place = _("this machine's disk") if local_path(served.candidate.url) else served.candidate.host
        with self.counting:
            self.served[place] += 1
            self.received[place] += served.received

    def _unpack(self, archive: _Archive, path: Path, partial: Path, whole: Path) -> None:
        """Unpack a file, or a download: that is then removed; meanwhile it has the ending rattler goes by."""
        if path != partial:
            self.store.add(archive.name, path, archive.sha256)
            return
        with writing(self.downloads):
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

    def summary(self) -> str:
        """Which host gave how much; what lay on this machine's disk was not received."""
        parts = [
            _("{count} from {host} ({size:.1f} MB)").format(
                count=count, host=place, size=self.received[place] / 1e6
            )
            if self.received[place]
            else _("{count} from {place}").format(count=count, place=place)
            for place, count in self.served.most_common()
        ]
        return _("packages fetched: {parts}").format(parts=", ".join(parts) or "0")


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
    if not ending or name.rpartition("-")[0] != f"{package.name}-{package.version}" or "/" in name:
        raise InputError(
            _("the lock says {name} {version}, but its URL is {url}").format(
                name=package.name, version=package.version, url=shown(package.url)
            ),
            _("lock again, or correct the URL"),
        )
    return _Archive(name=name, ending=ending, sha256=package.sha256, urls=routes.urls(package.url))


def _ended(done: Set[Future[None]], others: Set[Future[None]]) -> bool:
    """Whether all are done, or one of them failed."""
    return not others or any(future.exception() is not None for future in done)


def _raise_first(futures: Sequence[Future[None]]) -> None:
    """Raise what failed, the network's failures first; that others were stopped is no news."""
    problems = [
        problem
        for future in futures
        if future.done() and not future.cancelled() and (problem := future.exception())
    ]
    real = [problem for problem in problems if not isinstance(problem, Stopped)]
    for problem in sorted(real, key=lambda problem: not isinstance(problem, FetchError)):
        raise problem
    if problems:
        raise problems[0]
