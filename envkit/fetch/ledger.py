"""What a run got from whom, and what failed where: counted while it works, told in one line at its end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from envkit.fetch.failures import Attempt
from envkit.messages import _

__all__ = ["Ledger"]


class Ledger:
    """Counts of a run, by host or folder; its threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._failures: dict[str, Counter[str]] = {}

    def served(self, place: str, received: int) -> None:
        """`place` gave a file, and `received` bytes of it came over the network."""
        with self._lock:
            self._files[place] += 1
            self._bytes[place] += received

    def failed(self, attempt: Attempt) -> None:
        """A host failed to give a file."""
        with self._lock:
            self._failures.setdefault(attempt.host, Counter())[attempt.detail] += 1

    def take(self) -> str:
        """One line for everything since the last one; empty where there was nothing."""
        with self._lock:
            files, received, failures = self._files, self._bytes, self._failures
            self._files, self._bytes, self._failures = Counter(), Counter(), {}
        if not files and not failures:
            return ""
        text = ", ".join(_served(place, count, received[place]) for place, count in files.most_common())
        if not failures:
            return text
        failed = ", ".join(_failed(host, reasons) for host, reasons in failures.items())
        return _("{served}; failed: {failures}").format(served=text or "0", failures=failed)


def _served(place: str, count: int, received: int) -> str:
    if not received:
        return _("{count} from {place}").format(count=count, place=place)
    return _("{count} from {host} ({size:.1f} MB)").format(count=count, host=place, size=received / 1e6)


def _failed(host: str, reasons: Mapping[str, int]) -> str:
    (reason, _times), *others = Counter(reasons).most_common()
    text = _("{count} at {host} ({reason}").format(count=sum(reasons.values()), host=host, reason=reason)
    return text + (_(" and other reasons)") if others else ")")
