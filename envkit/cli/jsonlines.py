"""Progress for programs (`--progress json`): one JSON object a line on stderr, and nothing else there.

    event   "start", "progress", "finish": of a task; "note": a line for people; "error": the last one of a
            run that failed
    time    seconds since the epoch
    task    the task's name, in the language of the run (`--lang en` for programs that compare it)
    done    how much is done, in `unit`
    total   how much there is, in `unit`; null where that is not known
    unit    "B" for bytes, else the word for the things that are counted
    speed   `unit` a second over the last ten seconds; null where nothing can be said yet
    eta     seconds until the end at that speed; null where that is not known
    text    of a note; of an error, with its `hint` and the process's `exit` code

A task has all the fields from `event` to `eta`. It is told at most twice a second between its start and its
finish, whatever the number of files. Fields may be added.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any, TextIO

from envkit.cli.pace import Pace
from envkit.cli.streams import say
from envkit.progress import Observer

__all__ = ["JsonLines", "tell"]

_SECONDS_BETWEEN_LINES = 0.5


def tell(event: str, stream: TextIO | None = None, **fields: Any) -> None:
    """Print one event."""
    say(json.dumps({"event": event, "time": round(time.time(), 3), **fields}), stream)


class JsonLines(Observer):
    """An event for the start and the finish of each task, for each note, and now and then in between."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._tasks: dict[str, Pace] = {}
        self._said: dict[str, float] = {}

    def start(self, task: str, total: int | None = None, unit: str = "B") -> None:
        with self._lock:
            self._tasks[task] = Pace(total=total, unit=unit)
            self._tell("start", task)

    def advance(self, task: str, amount: int = 1) -> None:
        with self._lock:
            if task not in self._tasks:
                return
            self._tasks[task].advance(amount)
            if time.monotonic() - self._said[task] >= _SECONDS_BETWEEN_LINES:
                self._tell("progress", task)

    def finish(self, task: str) -> None:
        with self._lock:
            if task in self._tasks:
                self._tell("finish", task)
                del self._tasks[task]

    def note(self, text: str) -> None:
        with self._lock:
            tell("note", self._stream, text=text)

    def _tell(self, event: str, task: str) -> None:
        self._said[task] = time.monotonic()
        pace = self._tasks[task]
        tell(
            event,
            self._stream,
            task=task,
            done=pace.done,
            total=pace.total,
            unit=pace.unit,
            speed=None if pace.speed is None else round(pace.speed, 1),
            eta=None if pace.left is None else round(pace.left, 1),
        )
