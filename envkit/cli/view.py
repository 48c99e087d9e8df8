"""Progress on stderr: bars on a terminal, plain lines elsewhere, JSON lines or nothing where asked for."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TextIO

from envkit.cli.invocation import worded
from envkit.cli.pace import Pace
from envkit.cli.streams import say
from envkit.progress import SILENT, Observer

__all__ = ["PROGRESS", "Lines", "Mode", "terminal_columns", "view"]

Mode = Literal["auto", "plain", "json", "none"]
PROGRESS: tuple[Mode, ...] = ("auto", "plain", "json", "none")

_SECONDS_BETWEEN_LINES = 10.0


def terminal_columns() -> int | None:
    """How wide stdout is; None where it is no terminal and lines may be of any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextmanager
def view(mode: Mode = "auto", *, stream: TextIO | None = None) -> Iterator[Observer]:
    """The observer that was asked for, or suits the stream (stderr unless given).

    The terminal is left as it was.
    """
    stream = stream or sys.stderr
    if mode == "none":
        yield SILENT
    elif mode == "json":
        from envkit.cli.jsonlines import JsonLines

        yield JsonLines(stream)
    elif mode == "plain" or not stream.isatty() or os.environ.get("TERM") in (None, "dumb", "unknown"):
        yield Lines(stream)
    else:
        # rich takes a tenth of a second to import, which a run without a terminal can save.
        from envkit.cli.bars import Bars

        bars = Bars(stream)
        try:
            yield bars
        finally:
            bars.close()


class Lines(Observer):
    """A line for each note; for a task that takes long, a line now and then with how far it is."""

    def __init__(self, stream: TextIO, *, seconds: float = _SECONDS_BETWEEN_LINES) -> None:
        self._stream = stream
        self._seconds = seconds
        self._lock = threading.Lock()
        self._tasks: dict[str, Pace] = {}
        self._said: dict[str, float] = {}

    def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
        with self._lock:
            self._tasks[task] = Pace(total=total, unit=unit)
            self._said[task] = time.monotonic()

    def advance(self, task: str, amount: int = 1) -> None:
        with self._lock:
            if (pace := self._tasks.get(task)) is None:
                return
            pace.advance(amount)
            if time.monotonic() - self._said[task] >= self._seconds:
                self._said[task] = time.monotonic()
                say(f"  {task}: {pace}", self._stream)

    def finish(self, task: str) -> None:
        with self._lock:
            self._tasks.pop(task, None)

    def note(self, text: str) -> None:
        with self._lock:
            say(worded(text), self._stream)
