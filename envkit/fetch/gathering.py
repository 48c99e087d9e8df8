"""Many files at once: the threads of one call, who stops them, and what a user sees of it."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from envkit.channels import shown
from envkit.errors import Error, InputError
from envkit.fetch.disk import is_file, require_room, writing
from envkit.fetch.failures import FetchError, offline
from envkit.fetch.session import Session, Stopped
from envkit.fetch.transfer import fetch, needs_network
from envkit.fetch.wanted import Candidate, Served, Wanted
from envkit.files import sha256_of
from envkit.messages import _
from envkit.model import Package
from envkit.progress import Observer

if TYPE_CHECKING:  # it brings asyncio along: a twentieth of a second that a no-op need not pay
    import filelock

__all__ = ["Gathering", "Item", "held", "item"]

_WORKERS = 8
_WIND_DOWN = 0.5
"""Seconds that stopped threads get to put things in order; one waiting for a silent host is left behind."""
_TICK = 0.2
"""Seconds between looks for a signal: one that comes just before a wait would not be seen until its end."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.))*")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One file to have: its name, what it must be, where to ask for it, and how such a file begins."""

    file: str
    sha256: str
    urls: tuple[str, ...]
    magic: tuple[bytes, ...]


def item(package: Package, file: str, urls: tuple[str, ...], magic: tuple[bytes, ...]) -> Item:
    """The file of a package. Raises InputError for one without a sha256, or with a name that is none.

    A lock that was read was checked; this is the last door before its words become names of files.
    """
    if not _NAME.fullmatch(package.name):
        raise InputError(_("'{name}' is not a package name").format(name=package.name), _("lock again"))
    if not _SHA256.fullmatch(package.sha256):
        raise InputError(
            _("{url} has no sha256, and nothing else can be trusted").format(url=shown(package.url)),
            _("lock again"),
        )
    if "/" in file or "\0" in file or file in ("", ".", ".."):
        raise InputError(_("{url} names no file").format(url=shown(package.url)), _("lock again"))
    return Item(file=file, sha256=package.sha256, urls=urls, magic=magic)


@dataclass(kw_only=True, slots=True)
class Gathering:
    """One call's threads and what they share. `sizes` are bytes by sha256, where they are known."""

    session: Session
    downloads: Path
    observer: Observer
    sizes: Mapping[str, int]
    bytes_task: str = field(default_factory=lambda: _("downloading"))
    files_task: str = field(default_factory=lambda: _("packages ready"))
    stop: threading.Event = field(default_factory=threading.Event)

    def all(self, items: Sequence[T], of: Callable[[T], Item], have: Callable[[T], None]) -> None:
        """Have them all; the first failure, or Ctrl-C, stops the others at their next block.

        Raises before the first byte where the disk has no room, or where no connection may be made and
        something would need one.
        """
        if not items:
            return
        if self.session.offline and (lacking := [of(one).file for one in items if self._lacks(of(one))]):
            raise offline(lacking)
        known = [size for one in items if (size := self.sizes.get(of(one).sha256)) is not None]
        require_room(self.downloads, sum(known))
        # The largest first: one that begins last is what everybody waits for.
        largest_first = sorted(items, key=lambda one: -self.sizes.get(of(one).sha256, 0))
        self.observer.start(self.bytes_task, sum(known) if len(known) == len(items) else None)
        self.observer.start(self.files_task, len(items), _("packages"))
        try:
            self._run(largest_first, have)
        finally:
            self.observer.finish(self.bytes_task)
            self.observer.finish(self.files_task)
            self.session.summarise(self.observer, _("packages fetched: {parts}"))

    def fetch(self, one: Item) -> tuple[Served, Path]:
        """One file, whole and checked, and the `.partial` file it was (or would have been) written to."""
        partial = self.downloads / f"{one.sha256}.partial"
        wanted = Wanted(
            name=one.file,
            candidates=tuple(Candidate(url=url, magic=one.magic) for url in one.urls),
            sha256=one.sha256,
            size=self.sizes.get(one.sha256),
        )
        served = fetch(
            self.session, wanted, partial, observer=self.observer, task=self.bytes_task, stop=self.stop
        )
        return served, partial

    def _lacks(self, one: Item) -> bool:
        """Whether a file would have to come over the network; what an earlier run downloaded is here."""
        left = self.downloads.glob(f"{one.sha256}.*")
        return needs_network(one.urls) and not any(self.has(one, path) for path in left)

    def has(self, one: Item, path: Path) -> bool:
        """Whether `path` is that very file: a whole one, hashed now."""
        return is_file(path) and sha256_of(path) == one.sha256

    def keep(self, one: Item, path: Path, *, copy: bool = False) -> Path:
        """One file kept at `path`; its own path where it lies in a directory, unless `copy`."""
        if self.has(one, path):
            return path
        served, partial = self.fetch(one)
        with writing(path.parent):
            if served.path != partial and served.path is not None:
                if not copy:
                    return served.path
                shutil.copyfile(served.path, partial)
                if sha256_of(partial) != one.sha256:
                    raise Error(_("{file} changed while it was copied").format(file=served.path))
            partial.replace(path)
        return path

    def _run(self, items: Sequence[T], have: Callable[[T], None]) -> None:
        def one(what: T) -> None:
            if self.stop.is_set():
                raise Stopped
            have(what)
            self.observer.advance(self.files_task)

        pool = ThreadPoolExecutor(min(_WORKERS, len(items)), thread_name_prefix="fetch")
        futures: list[Future[None]] = []
        try:
            futures += [pool.submit(one, what) for what in items]
            while not _ended(*wait(futures, timeout=_TICK, return_when=FIRST_EXCEPTION)):
                pass
        finally:
            self.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            wait([future for future in futures if not future.cancelled()], timeout=_WIND_DOWN)
        _raise_first(futures)


@contextmanager
def held(lock: filelock.FileLock, what: str, observer: Observer, stop: threading.Event) -> Iterator[None]:
    """Keep other processes from `what`; waits for one that has it, and says so. Raises Stopped."""
    from filelock import Timeout

    with writing(Path(lock.lock_file).parent):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            observer.note(_("waiting for another envkit process that fetches {name}").format(name=what))
            while not lock.is_locked:
                if stop.is_set():
                    raise Stopped from None
                with suppress(Timeout):
                    lock.acquire(timeout=0.5, poll_interval=0.05)
    try:
        yield
    finally:
        lock.release()


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
