"""Progress on stderr: bars on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from envkit.cli.invocation import worded
from envkit.cli.streams import say
from envkit.progress import SILENT, Observer

__all__ = ["Lines", "how_far", "terminal_columns", "view"]

_SECONDS_BETWEEN_LINES = 10.0


def terminal_columns() -> int | None:
    """How wide stdout is; None where it is no terminal and lines may be of any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextmanager
def view(*, quiet: bool = False, stream: TextIO | None = None) -> Iterator[Observer]:
    """The observer that suits the stream (stderr unless given); the terminal is left as it was."""
    stream = stream or sys.stderr
    if quiet:
        yield SILENT
    elif stream.isatty():
        # rich takes a tenth of a second to import, which a run without a terminal can save.
        from envkit.cli.bars import Bars

        bars = Bars(stream)
        try:
            yield bars
        finally:
            bars.close()
    else:
        yield Lines(stream)


class Lines(Observer):
    """A line for each note; for a task that takes long, a line now and then with how far it is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._tasks: dict[str, tuple[int | None, str]] = {}
        self._done: dict[str, int] = {}
        self._said: dict[str, float] = {}

    def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
        with self._lock:
            self._tasks[task] = (total, unit)
            self._done[task] = 0
            self._said[task] = time.monotonic()

    def advance(self, task: str, amount: int = 1) -> None:
        with self._lock:
            if task not in self._tasks:
                return
            self._done[task] += amount
            if time.monotonic() - self._said[task] < _SECONDS_BETWEEN_LINES:
                return
            self._said[task] = time.monotonic()
            total, unit = self._tasks[task]
            self._say(f"  {task}: {how_far(self._done[task], total, unit)}")

    def finish(self, task: str) -> None:
        with self._lock:
            self._tasks.pop(task, None)

    def note(self, text: str) -> None:
        with self._lock:
            self._say(worded(text))

    def _say(self, text: str) -> None:
        say(text, self._stream)


def how_far(done: int, total: int | None, unit: str) -> str:
    """How far a task is, in its unit; "B" is shown in MB or GB."""
    if unit != "B":
        return f"{done} / {total} {unit}" if total else f"{done} {unit}"
    scale, name = (1e6, "MB") if (total or done) < 1e9 else (1e9, "GB")
    return f"{done / scale:.1f} / {total / scale:.1f} {name}" if total else f"{done / scale:.1f} {name}"
