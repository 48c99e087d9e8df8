"""A folder of the cache for what a bundle has, gone when it has been used."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["scratch"]


@contextmanager
def scratch(cache: Path) -> Iterator[Path]:
    """A new folder below the cache, on the file system that packages are unpacked to.

    Those of processes that were killed are removed first: a live one holds the lock of its folder. Raises
    Error where the cache cannot be written to.
    """
    from filelock import FileLock

    from envkit.fetch.disk import private_folder, writing
    from envkit.fetch.use import use

    use(cache)
    parent = cache / "bundles"
    private_folder(parent)
    with writing(parent):
        with FileLock(parent / ".lock", mode=0o600):
            for left in parent.iterdir():
                _remove_dead(left)
            folder = Path(tempfile.mkdtemp(dir=parent))
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with suppress(OSError):  # a file system without locks: nobody removes there
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _remove_dead(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir():
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass  # in use
    finally:
        os.close(descriptor)
