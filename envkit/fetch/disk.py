"""Room on the disk, and file system errors as one line with a hint."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envkit.errors import Error
from envkit.messages import _
from envkit.paths import existing_folder

__all__ = [
    "disk_full",
    "free_bytes",
    "is_file",
    "private_folder",
    "read_note",
    "require_room",
    "writing",
]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_file(path: Path) -> bool:
    """Whether there is a plain file: reading a pipe or a device where one should be would never end."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def read_note(path: Path) -> str:
    """The text of a small plain file of the cache. Raises OSError, for anything that is no plain file too."""
    if not is_file(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return path.read_text(encoding="utf-8")


def private_folder(folder: Path) -> None:
    """Have a folder of the cache that is this user's alone (0700), and the folders above it.

    Raises Error where it belongs to somebody else or cannot be made.
    """
    with writing(folder):
        if not folder.parent.exists():
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        seen = folder.stat()
        if seen.st_uid != os.geteuid():
            raise Error(
                _("the cache folder {folder} belongs to another user").format(folder=folder),
                _("set ENVKIT_CACHE to a folder of your own"),
            )
        if stat.S_IMODE(seen.st_mode) != 0o700:
            folder.chmod(0o700)


def require_room(folder: Path, needed: int) -> None:
    """Raise Error, with the numbers, where the file system of `folder` has less than `needed` bytes free."""
    if needed > (free := free_bytes(folder)):
        raise disk_full(folder, needed=needed, free=free)


def free_bytes(folder: Path) -> int:
    """The bytes free on the file system of `folder`, or of the first folder above it that exists."""
    return shutil.disk_usage(existing_folder(folder)).free


def disk_full(folder: Path, *, needed: int | None = None, free: int | None = None) -> Error:
    """The error for a file system without room; sizes in bytes.

    Make it before anything is cleaned away: the numbers are those of the moment.
    """
    if free is None:
        state = os.statvfs(existing_folder(folder))
        if state.f_files and not state.f_favail:
            numbers = _("no inodes left of {total}").format(total=state.f_files)
            return Error(
                _("no space left on the disk of {folder} ({numbers})").format(folder=folder, numbers=numbers),
                _("remove some files: each takes an inode; or put the cache elsewhere with ENVKIT_CACHE"),
            )
        free = free_bytes(folder)
    numbers = _("{free} MB free").format(free=free // 10**6)
    if needed is not None:
        numbers = _("{needed} MB needed, {numbers}").format(needed=-(-needed // 10**6), numbers=numbers)
    return Error(
        _("no space left on the disk of {folder} ({numbers})").format(folder=folder, numbers=numbers),
        _("free some space, or put the cache elsewhere: ENVKIT_CACHE=/a/larger/disk"),
    )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an OSError of writing below `folder` into an Error that says what to do, with numbers if full."""
    try:
        yield
    except Error as problem:
        # `write_atomically` has its own words; a full disk is told here, where the numbers are known.
        if isinstance(problem.__cause__, OSError) and problem.__cause__.errno in _FULL:
            raise disk_full(folder) from None
        raise
    except OSError as problem:
        if problem.errno in _FULL:
            raise disk_full(folder) from None
        raise Error(
            _("cannot write to {folder}: {reason}").format(folder=folder, reason=problem.strerror or problem),
            _("make it writable, or put the cache elsewhere: ENVKIT_CACHE=/a/folder/of/yours"),
        ) from None
