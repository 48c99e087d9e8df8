"""How fast each mirror is from here: one small real request to each, all at once, a few seconds in all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from envkit.channels import Mirror
from envkit.fetch.credentials import auth_for
from envkit.fetch.failures import host_of
from envkit.fetch.trust import Untrusted
from envkit.messages import _

if TYPE_CHECKING:
    import httpx

    from envkit.fetch.session import Session

__all__ = ["SECONDS", "Measurement", "Target", "measure", "target_at", "targets"]

SECONDS = 3.0
"""How long measuring may take in all."""

_SAMPLE = 1 << 18
_USUAL = 8 << 20
"""Bytes that are asked for, and bytes for which mirrors are compared: about a large package."""

_LEAST, _SHORTEST, _LONG = 1 << 15, 0.02, 0.5
"""Bytes and seconds below which a transfer says nothing of the speed; seconds in which fewer bytes do."""

_CHANNEL = "conda-forge"
_MOST_REDIRECTS = 3
_BEGINNINGS = {".zst": (b"\x28\xb5\x2f\xfd",), ".json": (b"{",)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What to ask one mirror for."""

    id: str
    url: str

    @property
    def host(self) -> str:
        return host_of(self.url)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """What came of it.

    `latency` is in seconds from the question to the first byte, connection included; None without an
    answer, and `problem` then says why. `speed` is in bytes a second over the sample, None where that was
    too short to tell. `changed` is when the file was last changed there, where the host says so, and `at`
    when it was asked; both in seconds since the epoch.
    """

    id: str
    host: str
    latency: float | None = None
    speed: float | None = None
    changed: float | None = None
    problem: str = ""
    at: float = field(default_factory=time.time)

    @property
    def answered(self) -> bool:
        return self.latency is not None and not self.problem

    @property
    def cost(self) -> float:
        """Seconds that a large package would take, infinite without an answer: mirrors are ordered by it."""
        if self.latency is None or self.problem:
            return float("inf")
        return self.latency + (_USUAL / self.speed if self.speed else 0.0)


def targets(mirrors: Iterable[Mirror]) -> tuple[Target, ...]:
    """What to ask each mirror for: the beginning of an index that all of them have."""
    found = []
    for mirror in mirrors:
        url = mirror.url(_CHANNEL, "noarch", sure=False)
        if url is not None:
            found.append(target_at(mirror.id, url, zst=mirror.zst))
    return tuple(found)


def target_at(name: str, channel: str, *, zst: bool = True) -> Target:
    """What to ask for where a channel lies: the index of the subdir that every channel has."""
    return Target(id=name, url=f"{channel}/noarch/repodata.json{'.zst' if zst else ''}")


def measure(
    wanted: Sequence[Target], session: Session, *, seconds: float = SECONDS
) -> tuple[Measurement, ...]:
    """Ask all of them in parallel, `seconds` at most in all; one Measurement each, in the same order.

    The session hears which hosts answered and which could not be reached, as of any other request.
    """
    end = time.monotonic() + seconds
    trials = [_Trial(target, session, end) for target in wanted]
    threads = [threading.Thread(target=trial.run, daemon=True) for trial in trials]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return tuple(trial.result() for trial in trials)


class _Trial:
    """One request, and what is known of it at any moment."""

    def __init__(self, target: Target, session: Session, end: float) -> None:
        self._target = target
        self._session = session
        self._end = end
        self._began = time.monotonic()
        self._latency: float | None = None
        self._received = 0
        self._took = 0.0
        self._changed: float | None = None
        self._problem = ""

    def run(self) -> None:
        import httpx

        from envkit.fetch.diagnosis import diagnose

        try:
            self._ask(self._target.url, 0)
        except httpx.HTTPError as problem:
            attempt = diagnose(problem, self._target.url, answered=self._latency is not None)
            if not self._received:
                self._problem = attempt.detail
            if attempt.connection and time.monotonic() < self._end:
                self._session.failed(self._target.url, attempt)
        except (Untrusted, httpx.InvalidURL) as problem:
            self._problem = str(problem)

    def result(self) -> Measurement:
        told = self._took >= (_SHORTEST if self._received >= _LEAST else _LONG)
        speed = self._received / self._took if told else None
        problem = self._problem or ("" if self._received else _("no answer in time"))
        return Measurement(
            id=self._target.id,
            host=self._target.host,
            latency=self._latency,
            speed=speed,
            changed=self._changed,
            problem=problem,
        )

    def _ask(self, url: str, hops: int) -> None:
        left = self._end - time.monotonic()
        if reason := self._session.trust.refusal(url, origin=self._target.url if hops else None):
            raise Untrusted(reason)
        if left <= 0:
            return
        with self._session.client.stream(
            "GET",
            url,
            headers={"Accept-Encoding": "identity", "Range": f"bytes=0-{_SAMPLE - 1}"},
            auth=auth_for(url),
            timeout=left,
        ) as response:
            self._session.answered(self._target.url)
            if not response.has_redirect_location:
                self._read(response)
                return
            target = str(response.url.join(response.headers["Location"]))
        if hops >= _MOST_REDIRECTS:
            self._problem = _("redirected too often")
        else:
            self._ask(target, hops + 1)

    def _read(self, response: httpx.Response) -> None:
        if response.status_code not in (200, 206):
            self._problem = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
            return
        self._changed = _seconds_of(response.headers.get("Last-Modified", ""))
        began = time.monotonic()
        for block in response.iter_raw():
            now = time.monotonic()
            if self._latency is None and block:
                self._latency = now - self._began
                if not block.startswith(_beginnings(self._target.url)):
                    self._problem = _("something else instead of the file")
                    return
            self._received += len(block)
            self._took = max(now - began, 1e-6)
            if self._received >= _SAMPLE or now >= self._end:
                return


def _beginnings(url: str) -> tuple[bytes, ...]:
    return next(known for ending, known in _BEGINNINGS.items() if url.endswith(ending))


def _seconds_of(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return None
