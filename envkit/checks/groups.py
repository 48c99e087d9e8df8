"""The process groups of a run: every one is ended, however the run ends."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

__all__ = ["Groups"]


class Groups:
    """Process groups that are alive, by the id of their leader. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alive: set[int] = set()
        self._over = False

    def add(self, group: int) -> None:
        """A group was started. After `end_all` it is ended at once: nothing starts any more."""
        with self._lock:
            self._alive.add(group)
            over = self._over
        if over:
            self.end(group)

    def end(self, group: int) -> None:
        """Kill whatever is left of a group."""
        with self._lock:
            known = group in self._alive
            self._alive.discard(group)
        if known:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)

    def end_all(self) -> None:
        with self._lock:
            self._over = True
            alive = tuple(self._alive)
        for group in alive:
            self.end(group)

    @property
    def over(self) -> bool:
        return self._over
