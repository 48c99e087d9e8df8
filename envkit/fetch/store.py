"""The package cache: rattler's folder of unpacked packages, each sealed so that a change is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error
from envkit.fetch.disk import private_folder, read_note, writing
from envkit.fetch.gathering import held
from envkit.fetch.unpack import entries, unpack
from envkit.fetch.use import use
from envkit.fetch.wanted import Rejected
from envkit.files import parse_json, write_atomically
from envkit.messages import _
from envkit.progress import Observer

if TYPE_CHECKING:  # it brings asyncio along: a twentieth of a second that a no-op need not pay
    import filelock

__all__ = ["Store", "package_cache"]

_SCHEMA = 1
_REVISION = (1).to_bytes(8, "big")


def package_cache(cache: Path) -> Path:
    """The folder to give to rattler's `PackageCache.new_layered` as its only layer."""
    return cache / "pkgs"


class Store:
    """The packages unpacked below `package_cache(cache)`, for one user alone.

    An entry is a folder named like the archive without its ending and, beside it, `<name>.lock` in
    rattler's own format (revision, eight bytes big-endian, and the sha256 of the archive), by which rattler
    refuses an entry of another archive. rattler never looks at the content again, and environments share
    it by hard links, so each entry has a seal: the sha256 of the names, sizes, modes and modification
    times of its files. An entry is complete once its seal is there; it is written last, removed first.
    """

    def __init__(self, cache: Path) -> None:
        self.folder = package_cache(cache)
        self._own = self.folder / ".envkit"
        self._seals = self._own / "seals"
        self._locks = self._own / "locks"
        self._unpacking = self._own / "unpacking"

    def prepare(self) -> None:
        """Make the folders, for this user alone, and remove what a killed run left half unpacked."""
        from filelock import Timeout

        use(self.folder.parent)
        if not self._own.is_dir() and self.entries():
            raise Error(
                _("{folder} holds packages of another program").format(folder=self.folder),
                _("set ENVKIT_CACHE to a folder of its own"),
            )
        with writing(self.folder):
            for folder in (self.folder, self._own, self._seals, self._locks, self._unpacking):
                private_folder(folder)
            for left in tuple(self._unpacking.iterdir()):
                with suppress(Timeout), self._lock_of(left.name).acquire(blocking=False):
                    _remove(left)

    def entries(self) -> tuple[str, ...]:
        """The names of all entries, whole or not, sorted."""
        try:
            found = [entry.name for entry in os.scandir(self.folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return ()
        return tuple(sorted(name for name in found if not name.startswith(".")))

    def archive_of(self, name: str) -> str | None:
        """The sha256 of the archive that the entry `name` is; None where it is not as it was unpacked."""
        sha256 = self._seal(name).get("sha256")
        return sha256 if isinstance(sha256, str) and self.holds(name, sha256) else None

    def holds(self, name: str, sha256: str) -> bool:
        """Whether the entry `name` was unpacked from the archive with this sha256 and is unchanged since."""
        seal = self._seal(name)
        return seal.get("sha256") == sha256 and seal.get("files") == _fingerprint(self.folder / name)

    def was_changed(self, name: str, sha256: str) -> bool:
        """Whether the entry is from this archive, but somebody changed a file of it."""
        seal = self._seal(name)
        return seal.get("sha256") == sha256 and seal.get("files") != _fingerprint(self.folder / name)

    @contextmanager
    def lock(self, name: str, observer: Observer, stop: threading.Event) -> Iterator[None]:
        """Keep other processes from the entry `name`; waits for one that has it, and says so."""
        with held(self._lock_of(name), name, observer, stop):
            yield

    def add(self, name: str, archive: Path, sha256: str) -> None:
        """Unpack `archive` as the entry `name`, whole or not at all; the caller holds its lock.

        Raises Rejected for an archive that is damaged, unsafe or not the one with this sha256.
        """
        fresh = self._unpacking / name
        with writing(self.folder):
            _remove(fresh)
        try:
            with writing(self.folder):  # a full disk is measured before what was unpacked is cleared away
                if unpack(archive, fresh) != sha256:
                    raise Rejected(_("wrong sha256"))
                self.evict(name)
                fresh.rename(self.folder / name)
                write_atomically(self._rattlers(name), _REVISION + bytes.fromhex(sha256))
                seal = {"files": _fingerprint(self.folder / name), "schema": _SCHEMA, "sha256": sha256}
                write_atomically(self._seals / f"{name}.json", json.dumps(seal, sort_keys=True) + "\n")
        finally:
            _remove(fresh)

    def evict(self, name: str) -> None:
        """Remove an entry; the caller holds its lock. Environments made from it keep their files."""
        with writing(self.folder):
            (self._seals / f"{name}.json").unlink(missing_ok=True)
            self._rattlers(name).unlink(missing_ok=True)
            _remove(self.folder / name)

    def _rattlers(self, name: str) -> Path:
        return self.folder / f"{name}.lock"

    def _lock_of(self, name: str) -> filelock.FileLock:
        from filelock import FileLock

        return FileLock(self._locks / f"{name}.lock", mode=0o600)

    def _seal(self, name: str) -> dict[str, object]:
        try:
            seal = parse_json(read_note(self._seals / f"{name}.json"))
            current = isinstance(seal, dict) and seal.get("schema") == _SCHEMA
        except (OSError, ValueError):
            return {}
        return seal if current else {}


def _fingerprint(folder: Path) -> str:
    """One sha256 over what can be seen of a tree without reading its files; "" where there is no tree.

    An edit through a hard link changes size or modification time; linking does not.
    """
    digest = hashlib.sha256()
    try:
        for name, entry in entries(folder):
            seen = entry.stat(follow_symlinks=False)
            target = Path(entry.path).readlink() if entry.is_symlink() else ""
            line = f"{name}\0{seen.st_mode:o}\0{seen.st_size}\0{seen.st_mtime_ns}\0{target}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
    except OSError:
        return ""
    return digest.hexdigest()


def _remove(folder: Path) -> None:
    """Remove whatever is there, though a package may have folders that their owner cannot write to."""
    if folder.is_dir() and not folder.is_symlink():
        try:
            shutil.rmtree(folder)
        except PermissionError:
            for path, _folders, _files in os.walk(folder):
                Path(path).chmod(0o700)
            shutil.rmtree(folder)
    elif os.path.lexists(folder):
        folder.unlink()
