"""What a kind finds, what deleting it frees, and the deleting."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from envkit.install.stage import remove_tree

__all__ = ["Found", "Kind", "Place", "freed_by"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where one call cleans. `dry_run` forbids any change, also to lock files."""

    environments: Path
    state: Path
    cache: Path
    temporary: Path
    shared_memory: Path
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One thing to delete: the path it is known by, and what goes with it.

    `delete` does it where unlinking the paths is not enough; it raises OSError or Error.
    """

    path: Path
    others: tuple[Path, ...] = ()
    delete: Callable[[], None] | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path, *self.others)

    def remove(self) -> None:
        """Delete it; OSError or Error where that fails. What is gone already is no failure."""
        if self.delete is not None:
            self.delete()
            return
        for path in self.paths:
            if path.is_dir() and not path.is_symlink():
                remove_tree(path, patience=0.0)
                if path.exists():
                    path.rmdir()  # says why
            else:
                path.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One kind of thing to clean. `free`: nobody can miss it.

    `alone` gives, for the time of the work, whether nobody else is at work there; `find` lists what may go.
    `kept` are bytes that stay because something uses them.
    """

    name: str
    free: bool
    find: Callable[[Place], Iterable[Found]]
    alone: Callable[[Place], AbstractContextManager[bool]]
    kept: Callable[[Place], int] = field(default=lambda _place: 0)


def freed_by(found: Iterable[Found]) -> int:
    """The bytes on disk that deleting all of these frees: those of files of which no other name is left."""
    names: Counter[tuple[int, int]] = Counter()
    blocks: dict[tuple[int, int], tuple[int, int]] = {}
    for path in {path for one in found for path in one.paths}:
        for seen in _everything(path):
            key = (seen.st_dev, seen.st_ino)
            names[key] += 1
            blocks[key] = (1 if stat.S_ISDIR(seen.st_mode) else seen.st_nlink, seen.st_blocks * 512)
    return sum(size for key, (links, size) in blocks.items() if names[key] >= links)


def _everything(path: Path) -> Iterator[os.stat_result]:
    pending = [str(path)]
    while pending:
        current = pending.pop()
        try:
            seen = os.lstat(current)
            yield seen
            if stat.S_ISDIR(seen.st_mode):
                pending += [entry.path for entry in os.scandir(current)]
        except OSError:
            continue
