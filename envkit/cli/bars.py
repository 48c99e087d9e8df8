"""Progress as bars on a terminal. Apart from the rest, because rich takes a tenth of a second to import."""

from __future__ import annotations

import threading
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from envkit.cli.invocation import worded
from envkit.cli.pace import Pace
from envkit.cli.streams import legible
from envkit.progress import Observer

__all__ = ["Bars"]


class _Pace(ProgressColumn):
    """How far a task is, in its own unit, how fast it goes and how long it will take."""

    max_refresh = 0.5  # numbers that change ten times a second cannot be read

    def render(self, task: Task) -> Text:
        return Text(str(task.fields["pace"]))


class Bars(Observer):
    """One bar a task, with bytes, speed and time left; notes scroll above them."""

    def __init__(self, stream: TextIO) -> None:
        self._progress = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=24),
            _Pace(),
            console=Console(file=stream, highlight=False, markup=False),
            transient=True,
        )
        self._lock = threading.Lock()
        self._tasks: dict[str, tuple[TaskID, Pace]] = {}

    def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
        with self._lock:
            if not self._tasks:
                self._progress.start()
            pace = Pace(total=total, unit=unit)
            self._tasks[task] = (self._progress.add_task(task, total=total, pace=pace), pace)

    def advance(self, task: str, amount: int = 1) -> None:
        with self._lock:
            if task in self._tasks:
                bar, pace = self._tasks[task]
                pace.advance(amount)
                self._progress.advance(bar, amount)

    def finish(self, task: str) -> None:
        with self._lock:
            known = self._tasks.pop(task, None)
            if known is not None:
                self._progress.remove_task(known[0])
            if not self._tasks:
                self._progress.stop()

    def close(self) -> None:
        """Give the cursor back, also when the work was cut short."""
        with self._lock:
            self._progress.stop()

    def note(self, text: str) -> None:
        with self._lock:
            self._progress.console.print(legible(worded(text)), soft_wrap=True)
