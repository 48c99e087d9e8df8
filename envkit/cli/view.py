"""Progress on stderr: bars on a terminal, plain lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from envkit.cli.streams import legible, say
from envkit.progress import SILENT, Observer

__all__ = ["Bars", "Lines", "terminal_columns", "view"]

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
            self._say(f"  {task}: {_progress(self._done[task], total, unit)}")

    def finish(self, task: str) -> None:
        with self._lock:
            self._tasks.pop(task, None)

    def note(self, text: str) -> None:
        with self._lock:
            self._say(text)

    def _say(self, text: str) -> None:
        say(text, self._stream)


class _Amount(ProgressColumn):
    """How far a task is, in its own unit, with the speed where that is bytes."""

    def render(self, task: Task) -> Text:
        unit = str(task.fields["unit"])
        text = _progress(int(task.completed), int(task.total) if task.total else None, unit)
        if unit == "B" and task.speed:
            text += f", {task.speed / 1e6:.1f} MB/s"
        return Text(text)


class Bars(Observer):
    """One bar a task, with bytes, speed and time left; notes scroll above them."""

    def __init__(self, stream: TextIO) -> None:
        self._progress = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=24),
            _Amount(),
            TimeRemainingColumn(),
            console=Console(file=stream, highlight=False, markup=False),
            transient=True,
        )
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}

    def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
        with self._lock:
            if not self._tasks:
                self._progress.start()
            self._tasks[task] = self._progress.add_task(task, total=total, unit=unit)

    def advance(self, task: str, amount: int = 1) -> None:
        with self._lock:
            if task in self._tasks:
                self._progress.advance(self._tasks[task], amount)

    def finish(self, task: str) -> None:
        with self._lock:
            known = self._tasks.pop(task, None)
            if known is not None:
                self._progress.remove_task(known)
            if not self._tasks:
                self._progress.stop()

    def close(self) -> None:
        """Give the cursor back, also when the work was cut short."""
        with self._lock:
            self._progress.stop()

    def note(self, text: str) -> None:
        with self._lock:
            self._progress.console.print(legible(text), soft_wrap=True)


def _progress(done: int, total: int | None, unit: str) -> str:
    if unit != "B":
        return f"{done} / {total} {unit}" if total else f"{done} {unit}"
    scale, name = (1e6, "MB") if (total or done) < 1e9 else (1e9, "GB")
    return f"{done / scale:.1f} / {total / scale:.1f} {name}" if total else f"{done / scale:.1f} {name}"
