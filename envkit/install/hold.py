"""One process at a time on one prefix."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from envkit.install.space import cannot_write
from envkit.messages import _
from envkit.progress import Observer

__all__ = ["hold", "is_held", "lock_file", "sweep"]

# A link that somebody planted in a shared folder is not followed, a pipe not waited for.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def lock_file(prefix: Path) -> Path:
    """The file beside a prefix that is locked while somebody works on it."""
    return prefix.parent / f".{prefix.name}.envkit-lock"


def is_held(prefix: Path) -> bool:
    """Whether somebody works on a prefix at this moment. Makes no file."""
    try:
        descriptor = os.open(lock_file(prefix), _FLAGS & ~os.O_CREAT)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


@contextmanager
def hold(prefix: Path, observer: Observer) -> Iterator[bool]:
    """Hold the lock of a prefix; waits, and says so, while another process has it.

    Yields whether there was a wait. The lock is a file beside the prefix (so that it is the same one for
    every ENVKIT_HOME) and goes when it is released; the kernel releases it when a process dies. On a file
    system without locks the work goes on without one, with a note.
    """
    path = lock_file(prefix)
    waited = False
    while True:
        try:
            descriptor = os.open(path, _FLAGS, 0o600)
        except OSError as problem:
            raise cannot_write(path.parent, problem) from None
        try:
            waited = _take(descriptor, prefix, observer) or waited
            # The holder before us may have deleted the file that we waited for: then it locks nothing.
            if _same(descriptor, path):
                break
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield waited
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)


def sweep(prefix: Path) -> None:
    """Remove the lock file of a prefix if a killed process left it; one that is held stays."""
    path = lock_file(prefix)
    with suppress(OSError):
        descriptor = os.open(path, _FLAGS & ~os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(descriptor, path):
                path.unlink()
        finally:
            os.close(descriptor)


def _take(descriptor: int, prefix: Path, observer: Observer) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        observer.note(_("waiting for another envkit process that works on {prefix}").format(prefix=prefix))
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return True
    except OSError as problem:
        if problem.errno not in _UNSUPPORTED:
            raise
        observer.note(
            _("{path} is on a file system without locks: run one envkit at a time").format(path=prefix)
        )
    return False


def _same(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)
