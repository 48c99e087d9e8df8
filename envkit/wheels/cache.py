"""Finished conda packages, kept by what they were made from, so that nothing is packed twice.

<cache>/wheels/lock              held while packing
<cache>/wheels/packages/<key>/   one package and its record.json; appears whole or not at all
<cache>/wheels/channels/<key>/   one channel, linux-64/ and noarch/; its archives are links to the packages
<cache>/wheels/hashes.json       sha256 of wheels whose index gives none, by URL and size
<cache>/wheels/work/             unfinished things; emptied by whoever holds the lock
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from envkit.errors import Error
from envkit.fetch.use import use
from envkit.files import parse_json
from envkit.messages import _
from envkit.progress import Observer
from envkit.wheels.writer import BLOCK

__all__ = ["PackageCache", "digest_of", "link_or_copy"]


def digest_of(*parts: object) -> str:
    """A sha256 (hex) of values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class PackageCache:
    """The cache below `root`; only used inside `with cache.held(observer):`."""

    def __init__(self, root: Path) -> None:
        self.root = root / "wheels"
        self.work = self.root / "work"
        self.hashes = self.root / "hashes.json"

    @contextlib.contextmanager
    def held(self, observer: Observer) -> Iterator[None]:
        """Hold the cache for this process alone; what a killed one left half-made is removed."""
        use(self.root.parent, observer)
        with _disk_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = FileLock(self.root / "lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                observer.note(_("another envkit is packing wheels; waiting for it"))
                lock.acquire()
            try:
                shutil.rmtree(self.work, ignore_errors=True)
                self.work.mkdir()
                yield
            finally:
                shutil.rmtree(self.work, ignore_errors=True)
                lock.release()

    def record(self, key: str) -> dict[str, Any] | None:
        """The repodata record of a finished package (its file name under "fn"), or None."""
        folder = self._package(key)
        try:
            record: dict[str, Any] = parse_json((folder / "record.json").read_bytes())
            size = (folder / record["fn"]).stat().st_size
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return record if size == record.get("size") else None

    def archive(self, key: str, record: dict[str, Any]) -> Path:
        """The archive of a finished package."""
        return self._package(key) / str(record["fn"])

    def make(self, key: str, file_name: str, write: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """Let `write` make the archive `file_name` and tell its index; the record, hashes and size added."""
        folder = self.scratch()
        archive = folder / file_name
        record = write(archive)
        sha256, md5 = _digests(archive)
        record |= {"fn": file_name, "md5": md5, "sha256": sha256, "size": archive.stat().st_size}
        (folder / "record.json").write_text(json.dumps(record, indent=1, sort_keys=True))
        self.publish(folder, self._package(key))
        return record

    def scratch(self) -> Path:
        """A new folder in which something may lie half-made."""
        return Path(tempfile.mkdtemp(dir=self.work))

    def publish(self, folder: Path, place: Path) -> None:
        """Move a finished folder to its place, for good; a broken one that lies there goes."""
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            place.rename(self.scratch() / "old")
        folder.chmod(0o755)
        folder.rename(place)

    def channel(self, key: str) -> Path:
        """Where the channel of that key is or will be."""
        return self.root / "channels" / key[:32]

    def _package(self, key: str) -> Path:
        return self.root / "packages" / key


def link_or_copy(source: Path, target: Path) -> None:
    """The same file under another name; a copy where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _digests(path: Path) -> tuple[str, str]:
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            sha256.update(block)
            md5.update(block)
    return sha256.hexdigest(), md5.hexdigest()


@contextlib.contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    """What the disk refuses, as an Error."""
    try:
        yield
    except OSError as problem:
        reason = str(problem.strerror or problem)
        if problem.filename is not None:
            reason += f" ({problem.filename})"
        raise Error(
            _("packing wheels into {folder} failed: {reason}").format(folder=root, reason=reason),
            _("free some space, or set ENVKIT_CACHE to a folder on a larger disk that you may write to"),
        ) from None
