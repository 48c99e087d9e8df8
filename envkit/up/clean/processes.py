"""What dead processes left outside our folders: temporary folders, and shared memory of this user.

In /dev/shm only names that PyTorch and Python's multiprocessing give are looked at. One goes if it is this
user's, has rested for ten minutes, no visible process has it open or mapped and, where its name says
whose it was, that process is dead. A container that shares memory with its host (`--ipc=host`)
cannot see who uses it: nothing is deleted there.

Sources of the names: torch/lib/libshm (`torch_<pid>_…`), CPython Lib/multiprocessing/synchronize.py
(`sem.mp-…`), shared_memory.py (`psm_…`); ours are `sem.envkit-…`.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envkit.host.processes import alive
from envkit.up.clean.found import Found, Place

__all__ = ["alone_in_temporary", "namespace_is_ours", "shared_memory", "temporary"]

_RESTED_S = 600.0
_ABANDONED_S = 86_400.0
_TEMPORARY = re.compile(r"envkit-(bundle|checks|elf|lock|pip|plan)-(?:(\d+)-)?[a-z0-9_]{8}(\.txt)?\Z")
_SHARED = re.compile(r"torch_(\d+)_\S+\Z|sem\.(?:mp|envkit|loky)-\S+\Z|psm_[0-9a-f]+\Z")
# include/linux/proc_ns.h: the inodes of the first namespaces of a kernel.
_FIRST_IPC, _FIRST_PID = 4026531839, 4026531836


def temporary(place: Place) -> Iterator[Found]:
    """Our own temporary folders and files whose makers are dead; of older versions, after a day."""
    for folder in dict.fromkeys((place.temporary, place.state)):
        for entry in _entries(folder):
            named = _TEMPORARY.match(entry.name)
            if not named or not _mine(entry):
                continue
            maker = named.group(2)
            if _rested(entry, 0.0 if maker else _ABANDONED_S) and not (maker and alive(int(maker))):
                yield Found(path=Path(entry.path))


def shared_memory(place: Place) -> Iterator[Found]:
    """Shared memory that nobody uses any more."""
    candidates = []
    for entry in _entries(place.shared_memory):
        named = _SHARED.match(entry.name)
        if named and _mine(entry) and entry.is_file(follow_symlinks=False) and _rested(entry, _RESTED_S):
            maker = named.group(1)
            if not (maker and alive(int(maker))):
                candidates.append(entry)
    if not candidates:
        return
    used = _in_use()
    for entry in candidates:
        seen = entry.stat(follow_symlinks=False)
        if (seen.st_dev, seen.st_ino) not in used:
            yield Found(path=Path(entry.path))


@contextmanager
def alone_in_temporary(_place: Place) -> Iterator[bool]:
    """There is no lock on what dead processes left."""
    yield True


@contextmanager
def namespace_is_ours(_place: Place) -> Iterator[bool]:
    """Whether every process that can reach this shared memory can be seen from here."""
    try:
        ipc, pid = (Path(f"/proc/self/ns/{kind}").stat().st_ino for kind in ("ipc", "pid"))
    except OSError:
        yield False
        return
    yield pid == _FIRST_PID or ipc != _FIRST_IPC


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []


def _mine(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.geteuid() and not entry.is_symlink()
    except OSError:
        return False


def _rested(entry: os.DirEntry[str], seconds: float) -> bool:
    return time.time() - entry.stat(follow_symlinks=False).st_mtime >= seconds


def _in_use() -> frozenset[tuple[int, int]]:
    """The files (device, inode) that visible processes have mapped or open."""
    used: set[tuple[int, int]] = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            used.update(_mapped(entry.path))
            used.update(_open(entry.path))
    return frozenset(used)


def _mapped(process: str) -> Iterator[tuple[int, int]]:
    try:
        lines = Path(process, "maps").read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        # "address perms offset major:minor inode path"
        fields = line.split(None, 5)
        if len(fields) > 5 and fields[4] != b"0":
            major, _colon, minor = fields[3].partition(b":")
            yield os.makedev(int(major, 16), int(minor, 16)), int(fields[4])


def _open(process: str) -> Iterator[tuple[int, int]]:
    for entry in _entries(Path(process, "fd")):
        try:
            seen = entry.stat()
        except OSError:
            continue
        if stat.S_ISREG(seen.st_mode):
            yield seen.st_dev, seen.st_ino
