"""What a killed job leaves behind: shared memory, semaphores and temporary folders of this run alone."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from envkit.host.processes import alive

__all__ = ["clear", "shared_memory"]

SHARED_MEMORY = Path("/dev/shm")
_OWNED_NAMES = ("pymp-", "envkit-")
_TORCH_NAME = re.compile(r"torch_(\d+)_")


def shared_memory(folder: Path = SHARED_MEMORY) -> frozenset[str]:
    """The names in /dev/shm now."""
    try:
        return frozenset(path.name for path in folder.iterdir())
    except OSError:
        return frozenset()


def clear(
    before: frozenset[str], token: str, owned: Iterable[str], folder: Path = SHARED_MEMORY
) -> tuple[str, ...]:
    """Remove what the run left and return the paths.

    That is: semaphores named after the run's token, what its jobs said they own, and torch's own shared
    memory that was not there `before`, is this user's, and whose maker is dead.
    """
    found = [folder / name for name in sorted(shared_memory(folder) - before) if _is_ours(name, token)]
    found += [path for path in map(Path, owned) if path.name.startswith(_OWNED_NAMES)]
    return tuple(str(path) for path in found if _remove(path))


def _is_ours(name: str, token: str) -> bool:
    if name.startswith(f"sem.{token}"):
        return True
    match = _TORCH_NAME.match(name)
    return match is not None and not alive(int(match[1]))


def _remove(path: Path) -> bool:
    with contextlib.suppress(OSError):
        there = path.lstat()
        if there.st_uid != os.getuid():
            return False
        if stat.S_ISDIR(there.st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
        return True
    return False
