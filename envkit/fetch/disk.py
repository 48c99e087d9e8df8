"""Room on the disk, and file system errors as one line with a hint."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envkit.errors import Error
from envkit.messages import _

__all__ = ["disk_full", "require_room", "writing"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def require_room(folder: Path, needed: int) -> None:
    """Raise Error, with the numbers, where the file system of `folder` has less than `needed` bytes free."""
    if needed > (free := _free(folder)):
        raise disk_full(folder, needed=needed, free=free)


def disk_full(folder: Path, *, needed: int | None = None, free: int | None = None) -> Error:
    """The error for a file system without room; sizes in bytes."""
    if free is None:
        free = _free(folder)
    numbers = _("{free} MB free").format(free=free // 10**6)
    if needed is not None:
        numbers = _("{needed} MB needed, {numbers}").format(needed=-(-needed // 10**6), numbers=numbers)
    return Error(
        _("no space left on the disk of {folder} ({numbers})").format(folder=folder, numbers=numbers),
        _("free some space, or put the cache elsewhere: ENVKIT_CACHE=/a/larger/disk"),
    )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an OSError of writing below `folder` into an Error that says what to do."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _FULL:
            raise disk_full(folder) from None
        raise Error(
            _("cannot write to {folder}: {reason}").format(folder=folder, reason=problem.strerror or problem),
            _("make it writable, or put the cache elsewhere: ENVKIT_CACHE=/a/folder/of/yours"),
        ) from None


def _free(folder: Path) -> int:
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free
