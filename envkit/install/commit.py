"""Putting a finished stage in place of what stands at the prefix, in one step."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from envkit.install.stage import Stage

__all__ = ["commit", "exchange"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # linux/fs.h; the call is in Linux since 3.15, in glibc since 2.28
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def commit(stage: Stage, prefix: Path) -> None:
    """Make the staged environment the one at `prefix`; what stood there is in the stage afterwards.

    At every moment `prefix` holds the old or the new environment, complete; where the file system cannot
    exchange, it may for an instant hold none, and `stage.recover` brings the old one back after a kill.
    Raises OSError with the old environment in place.
    """
    if not prefix.exists():
        stage.prefix.rename(prefix)
    elif not exchange(stage.prefix, prefix):
        prefix.rename(stage.old)
        try:
            stage.prefix.rename(prefix)
        except BaseException:
            if not prefix.exists():
                stage.old.rename(prefix)
            raise


def exchange(one: Path, other: Path) -> bool:
    """Swap two paths on one file system in one step; False where kernel or file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    renameat2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    renameat2.restype = ctypes.c_int
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))
