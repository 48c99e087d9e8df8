"""What a probe says: JSON lines on an inherited descriptor, away from whatever is printed on stdout."""

from __future__ import annotations

import json
import os
import time
import traceback
from typing import Any, Dict, List, Optional

_LONGEST_TEXT = 8000
_LONGEST_CHAIN = 10


class Channel:
    """Writes records to a descriptor. Each is one JSON object with its `kind`, in ASCII, on one line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, kind: str, **fields: Any) -> None:
        line = json.dumps(dict(fields, kind=kind), default=str) + "\n"
        raw = memoryview(line.encode("ascii"))
        while raw:
            raw = raw[os.write(self._descriptor, raw) :]


class Emit:
    """What one probe function is given to report with.

    `emit("area.check", {...})` gives a check its data; `emit.at(text)` leaves a breadcrumb that names what
    is being tried, for when it never returns; `emit.owns(path)` names what must not outlive the run.
    """

    def __init__(self, channel: Channel, job: str) -> None:
        self._channel = channel
        self._job = job
        self._since = time.monotonic()

    def __call__(self, part: str, data: Dict[str, Any]) -> None:
        now = time.monotonic()
        self._channel.send("part", job=self._job, part=part, data=data, seconds=round(now - self._since, 4))
        self._since = now

    def at(self, what: str) -> None:
        self._channel.send("at", job=self._job, at=what)

    def owns(self, path: str) -> None:
        self._channel.send("owns", job=self._job, path=path)


def describe(error: BaseException) -> List[Dict[str, Any]]:
    """An exception and what led to it, outermost first.

    The decisive text is often further in: a DataLoader says "exited unexpectedly" and keeps the signal
    in `__context__`, even where that is suppressed.
    """
    links: List[Dict[str, Any]] = []
    seen = set()
    current: Optional[BaseException] = error
    while current is not None and id(current) not in seen and len(links) < _LONGEST_CHAIN:
        seen.add(id(current))
        frames = traceback.extract_tb(current.__traceback__)
        links.append(
            {
                "type": type(current).__name__,
                "text": _text(current),
                "errno": getattr(current, "errno", None),
                "frames": ["%s:%s in %s" % (f.filename, f.lineno, f.name) for f in frames[-6:]],
                "ours": bool(frames) and os.path.dirname(frames[-1].filename) == os.path.dirname(__file__),
            }
        )
        current = current.__cause__ or current.__context__
    return links


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as problem:
        text = "(its text cannot be had: %r)" % (problem,)
    return text[-_LONGEST_TEXT:]
