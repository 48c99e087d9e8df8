"""How far a task is, how fast it goes and how long it will take, for whoever shows progress."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from envkit.messages import _

__all__ = ["Pace", "duration", "how_far"]

_WINDOW = 10.0
"""Seconds over which the speed is taken: a mirror that was slow a minute ago says nothing of the next one."""
_STEP = 0.5


@dataclass(kw_only=True, slots=True)
class Pace:
    """One task: `done` of `total`, in `unit` ("B" for bytes), as `now` (a clock in seconds) goes on."""

    total: int | None
    unit: str
    done: int = 0
    now: Callable[[], float] = time.monotonic
    begun: float = field(init=False)
    _seen: deque[tuple[float, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.now()
        self._seen = deque([(self.begun, 0)])

    def advance(self, amount: int) -> None:
        """`amount` more is done."""
        self.done += amount
        at = self.now()
        if at - self._seen[-1][0] >= _STEP:
            self._seen.append((at, self.done))
        while len(self._seen) > 2 and at - self._seen[0][0] > _WINDOW:
            self._seen.popleft()

    @property
    def speed(self) -> float | None:
        """Units a second over the last seconds; None where nothing can be said yet."""
        (since, before), at = self._seen[0], self.now()
        return (self.done - before) / (at - since) if at - since >= _STEP else None

    @property
    def left(self) -> float | None:
        """Seconds until the end at this speed; None where that is not known."""
        if self.total is None or not self.speed:
            return None
        return max(0, self.total - self.done) / self.speed

    def __str__(self) -> str:
        parts = [how_far(self.done, self.total, self.unit)]
        if self.unit == "B" and (speed := self.speed):
            parts.append(f"{speed / 1e6:.1f} MB/s")
        if (left := self.left) is not None:
            parts.append(_("{time} left").format(time=duration(left)))
        return ", ".join(parts)


def how_far(done: int, total: int | None, unit: str) -> str:
    """How far a task is, in its unit; "B" is shown in MB or GB."""
    if unit != "B":
        return f"{done} / {total} {unit}" if total else f"{done} {unit}"
    scale, name = (1e6, "MB") if (total or done) < 1e9 else (1e9, "GB")
    return f"{done / scale:.1f} / {total / scale:.1f} {name}" if total else f"{done / scale:.1f} {name}"


def duration(seconds: float) -> str:
    """A time as people read it: 8 s, 1:05 min, 2:07 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"
