"""JSON lines from a job, read with a deadline, and put together to what is known of it."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from envkit.checks.outcome import Link, Part
from envkit.files import parse_json

__all__ = ["Late", "Records", "Tally"]

_READ_SIZE = 1 << 16
# How often a silent process is looked after: one that died may have left children that hold the pipe open.
_LOOK_AGAIN = 0.25


class Late(Exception):
    """The deadline passed."""


class Records:
    """The reading end of a job's pipe."""

    def __init__(self, descriptor: int, alive: Callable[[], bool]) -> None:
        self._descriptor = descriptor
        self._alive = alive
        self._buffer = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(descriptor, selectors.EVENT_READ)

    def next(self, deadline: float) -> dict[str, Any] | None:
        """The next record; None when there will be no more. Raises Late at `deadline` (time.monotonic)."""
        while True:
            line, separator, rest = self._buffer.partition(b"\n")
            if separator:
                self._buffer = rest
                record = _parsed(line)
                if record is not None:
                    return record
                continue
            if not self._fill(deadline):
                return None

    def close(self) -> None:
        self._selector.close()
        os.close(self._descriptor)

    def _fill(self, deadline: float) -> bool:
        last_look = False
        while True:
            left = deadline - time.monotonic()
            if self._selector.select(0 if last_look else max(0.0, min(left, _LOOK_AGAIN))):
                raw = os.read(self._descriptor, _READ_SIZE)
                self._buffer += raw
                return bool(raw)
            if last_look:
                return False
            if left <= 0:
                raise Late
            last_look = not self._alive()


def _parsed(line: bytes) -> dict[str, Any] | None:
    # What is under test also holds this pipe: what it writes there that is no record is not ours to read.
    try:
        record = parse_json(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("kind"), str) else None


@dataclass(kw_only=True)
class Tally:
    """What the records of one job have said so far."""

    parts: dict[str, Part] = field(default_factory=dict)
    chain: tuple[Link, ...] = ()
    at: str = ""
    done: bool = False
    pid: int | None = None
    code: int | None = None
    ended: bool = False
    owned: list[str] = field(default_factory=list)

    def take(self, record: dict[str, Any]) -> None:
        """Note one record. A malformed one raises KeyError, TypeError or ValueError."""
        kind = record["kind"]
        if kind == "part":
            part = Part(data=dict(record["data"]), seconds=float(record["seconds"]))
            self.parts[str(record["part"])] = part
        elif kind == "at":
            self.at = str(record["at"])
        elif kind == "owns":
            self.owned.append(str(record["path"]))
        elif kind == "error":
            self.chain = tuple(_link(link) for link in record["chain"])
        elif kind == "done":
            self.done = True
        elif kind == "start":
            self.pid = int(record["pid"])
        elif kind == "end":
            self.ended = True
            self.code = int(record["code"])


def _link(fields: dict[str, Any]) -> Link:
    return Link(
        type=str(fields["type"]),
        text=str(fields["text"]),
        frames=tuple(map(str, fields["frames"])),
        ours=bool(fields["ours"]),
    )
