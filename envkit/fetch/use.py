"""Who uses the cache: each process that takes something from it, until it ends.

`<cache>/.in-use` is locked, shared, by every such process; whoever cleans needs it alone. What a process
was told to be in the cache must not go before it has used it, and no call here can know when that is: so the
lock is given back by the kernel, when the process ends or is killed.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from envkit.messages import _
from envkit.progress import SILENT, Observer

__all__ = ["alone", "use"]

_NAME = ".in-use"
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_guard = threading.Lock()
_held: dict[str, int] = {}


def use(cache: Path, observer: Observer = SILENT) -> None:
    """Keep `envkit clean` from this cache from now on; waits, and says so, while one is at work.

    Where the file system has no locks or the cache cannot be written to, nothing is done: nobody cleans it.
    """
    place = os.path.realpath(cache)
    with _guard:
        if place in _held:
            return
        try:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(cache / _NAME, _FLAGS | os.O_CREAT, 0o600)
        except OSError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            observer.note(_("waiting for another envkit process that cleans {path}").format(path=cache))
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        except OSError:
            os.close(descriptor)
            return
        _held[place] = descriptor


@contextmanager
def alone(cache: Path, *, dry_run: bool = False) -> Iterator[bool]:
    """Whether no other process uses the cache; inside, none begins to. With `dry_run` no file is made."""
    with _guard:
        mine = _held.get(os.path.realpath(cache))
        descriptor = mine
        try:
            if descriptor is None:
                flags = _FLAGS if dry_run else _FLAGS | os.O_CREAT
                descriptor = os.open(cache / _NAME, flags, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except FileNotFoundError:
            free = True  # nobody ever used it
        except OSError:
            free = False
        try:
            yield free
        finally:
            if mine is not None:
                with suppress(OSError):
                    fcntl.flock(mine, fcntl.LOCK_SH)
            elif descriptor is not None:
                os.close(descriptor)
