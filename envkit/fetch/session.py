"""One run's connections: whom to trust, how long to wait, and which hosts are known not to answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envkit.channels import shown
from envkit.fetch.access import Access
from envkit.fetch.client import make_client
from envkit.fetch.credentials import auth_for
from envkit.fetch.failures import Attempt, host_of, offline
from envkit.fetch.ledger import Ledger
from envkit.fetch.trust import Trust, Untrusted, is_upstream
from envkit.messages import _
from envkit.progress import Observer

if TYPE_CHECKING:
    import httpx

    from envkit.fetch.measured import Ranking

__all__ = ["Patience", "Session", "Stopped"]

_TIMES_TOLD = 10
"""Lines about one host's failures, after which the rest is only counted in the last line."""

_SUSPECT_AFTER = 2
"""Files refused by a host after which it is asked last: it refuses this client, not this file."""

DEAD_AFTER = 2
DEAD_AFTER_LIFE = 6
"""Failures to connect, in a row, after which a host is left out: one never heard of, one once alive."""


class Stopped(Exception):
    """The work was called off (Ctrl-C, or another file failed for good)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long to wait, in seconds, and how hard to press.

    There is no limit on the time of a whole download: `stall` is the time without a single byte.
    `connect` is for a host not heard of yet: two tries at every host, all hosts at once after the first
    failure, stay within ten seconds. `reconnect` is for one that has answered before. `per_host` is the
    number of connections, kind to campus mirrors; upstream, behind its CDN, takes `per_upstream`.
    `rounds` counts the passes over all hosts without any progress, `pause` is the time before the second of
    them, `longest_wait` the longest Retry-After that is waited for.
    """

    connect: float = 3.0
    reconnect: float = 10.0
    stall: float = 30.0
    per_host: int = 3
    per_upstream: int = 6
    rounds: int = 3
    pause: float = 0.5
    longest_wait: float = 10.0


@dataclass(slots=True)
class _Host:
    """What this run has seen of one host."""

    slots: threading.BoundedSemaphore
    answered: bool = False
    suspect: bool = False
    refused: int = 0
    rests_until: float = 0.0
    told: int = 0
    failures: list[Attempt] = field(default_factory=list)

    @property
    def dead(self) -> bool:
        return len(self.failures) >= (DEAD_AFTER_LIFE if self.answered else DEAD_AFTER)


class Session:
    """The connections of one run, shared by its threads. Nothing is opened before the first request.

    With `offline` nothing is opened at all: what would ask a host raises Offline. `access` is what a
    .condarc says of proxies and certificates, `ranking` the order of mirrors that nobody chose; `notices`
    are lines to be told once, before the first file is asked for.
    """

    def __init__(
        self,
        patience: Patience | None = None,
        *,
        trust: Trust | None = None,
        offline: bool = False,
        access: Access | None = None,
        ranking: Ranking | None = None,
        notices: Iterable[str] = (),
    ) -> None:
        self.patience = patience or Patience()
        self.access = access or Access()
        self.ranking = ranking
        self._notices = tuple(notices)
        self.trust = trust or Trust()
        self.offline = offline
        self._hosts: dict[str, _Host] = {}
        self._lock = threading.Lock()
        self._triage = threading.Lock()
        self._client: httpx.Client | None = None
        self._told: set[str] = set()
        self.ledger = Ledger()

    @property
    def client(self) -> httpx.Client:
        """The HTTP client, made on first use."""
        if self.offline:
            raise offline(())
        with self._lock:
            if self._client is None:
                from envkit.fetch.connect import guard

                self._client = make_client(self.access)
                guard(self._client, self.trust)
            return self._client

    def announce(self, observer: Observer) -> None:
        """Tell the notices, the first time this is called."""
        for notice in self._notices:
            if self.first_time(notice):
                observer.note(notice)

    def summarise(self, observer: Observer, words: str) -> None:
        """Tell in one line who gave how much and what failed where since the last such line.

        `words` is the line, with `{parts}` in it. Nothing is told where nothing was asked for.
        """
        if parts := self.ledger.take():
            observer.note(words.format(parts=parts))

    def close(self) -> None:
        """Close idle connections; the session can still be used."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def first_time(self, topic: str) -> bool:
        """Whether this is the first time in this run that `topic` comes up (so that it is told once)."""
        with self._lock:
            known = topic in self._told
            self._told.add(topic)
            return not known

    @contextmanager
    def slot(self, url: str, stop: threading.Event | None = None) -> Iterator[None]:
        """Hold one of the few connections to a host. Raises Stopped when `stop` is set meanwhile."""
        slots = self._host(url).slots
        while not slots.acquire(timeout=0.2):
            if stop is not None and stop.is_set():
                raise Stopped
        try:
            yield
        finally:
            slots.release()

    def answered(self, url: str) -> None:
        """The host of `url` answered: it is alive, whatever it said."""
        host = self._host(url)
        host.answered = True
        host.failures.clear()

    def has_answered(self, url: str) -> bool:
        """Whether the host of `url` ever answered in this run."""
        return self._host(url).answered

    def suspect(self, url: str) -> bool:
        """Whether the host of `url` gave wrong bytes or refused this run: it is asked last from then on."""
        return self._host(url).suspect

    def gave_wrong_bytes(self, url: str) -> None:
        """The host of `url` gave a file that is not the right one."""
        self._host(url).suspect = True

    def refused(self, url: str) -> None:
        """The host of `url` refused a file, and may be refusing this client altogether."""
        host = self._host(url)
        host.refused += 1
        host.suspect = host.suspect or host.refused >= _SUSPECT_AFTER

    def rest(self, url: str, seconds: float) -> None:
        """The host of `url` asked not to be asked again for so long."""
        self._host(url).rests_until = time.monotonic() + seconds

    def resting(self, url: str) -> float:
        """For how many more seconds the host of `url` asked to be left alone."""
        return max(0.0, self._host(url).rests_until - time.monotonic())

    def last_resort(self, url: str) -> bool:
        """Whether the host of `url` is asked after all others: it gave wrong bytes, refused, or rests."""
        return self.suspect(url) or self.resting(url) > 0

    def tell(self, url: str, text: str, observer: Observer) -> None:
        """Tell one failure of the host of `url`; of a host that fails at everything, a few of them."""
        host = self._host(url)
        with self._lock:
            host.told += 1
            told = host.told
        if told <= _TIMES_TOLD:
            observer.note(text)
        elif told == _TIMES_TOLD + 1:
            observer.note(
                _("{host}: more failures there; the last line counts them").format(host=host_of(url))
            )

    def timeout(self, url: str) -> httpx.Timeout:
        """How long one request may wait."""
        import httpx

        patience = self.patience
        connect = patience.reconnect if self.has_answered(url) else patience.connect
        return httpx.Timeout(patience.stall, connect=connect, pool=None)

    def failed(self, url: str, attempt: Attempt) -> None:
        """The host of `url` could not be reached."""
        self._host(url).failures.append(attempt)

    def dead(self, url: str) -> Attempt | None:
        """The last failure of a host that is left out for this run; None for a host worth asking."""
        host = self._host(url)
        return host.failures[-1] if host.dead else None

    def triage(self, urls: Iterable[str]) -> None:
        """Find out at once which hosts of `urls` answer, after one of them did not.

        Hosts not heard of yet are asked in parallel, twice where need be, so that an unplugged machine
        is known within seconds and not after one time-out for each host and file.
        """
        with self._triage:
            for _try in range(DEAD_AFTER):
                pending = {
                    host_of(url): url
                    for url in urls
                    if not url.startswith("file://")
                    and self.trust.refusal(url) is None
                    and not (host := self._host(url)).answered
                    and not host.dead
                }
                threads = [
                    threading.Thread(target=self._probe, args=(url,), daemon=True) for url in pending.values()
                ]
                for thread in threads:
                    thread.start()
                for thread, (host_name, url) in zip(threads, pending.items(), strict=True):
                    thread.join(self.patience.connect + 0.5)
                    if thread.is_alive():  # the resolver has no time-out of its own
                        self.failed(url, timed_out(url, host_name))

    def _probe(self, url: str) -> None:
        import httpx

        from envkit.fetch.diagnosis import diagnose

        try:
            self.client.request("HEAD", url, timeout=self.patience.connect, auth=auth_for(url))
        except httpx.HTTPError as problem:
            self.failed(url, diagnose(problem, url, answered=False))
        except Untrusted:
            pass  # said when it is asked for a file
        else:
            self.answered(url)

    def _host(self, url: str) -> _Host:
        name = host_of(url)
        with self._lock:
            if name not in self._hosts:
                patience = self.patience
                slots = patience.per_upstream if is_upstream(url) else patience.per_host
                self._hosts[name] = _Host(slots=threading.BoundedSemaphore(slots))
            return self._hosts[name]


def timed_out(url: str, host: str) -> Attempt:
    """The failure of a host that did not answer in time."""
    return Attempt(host=host, url=shown(url), kind="timeout", detail=_("no answer in time"))
