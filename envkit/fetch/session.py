"""One run's connections: the HTTP client, how long to wait, and which hosts are known not to answer."""

from __future__ import annotations

import netrc
import os
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from envkit import __version__
from envkit.errors import InputError
from envkit.fetch.failures import Attempt, host_of
from envkit.fetch.urls import shown
from envkit.messages import _

if TYPE_CHECKING:
    import httpx

__all__ = ["Patience", "Session", "Stopped"]

DEAD_AFTER = 2
DEAD_AFTER_LIFE = 6
"""Failures to connect, in a row, after which a host is left out: one never heard of, one once alive."""


class Stopped(Exception):
    """The work was called off (Ctrl-C, or another file failed for good)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long to wait, in seconds, and how hard to press.

    There is no limit on the time of a whole download: `stall` is the time without a single byte.
    `connect` is for each try; two tries at every host, all hosts at once after the first failure, stay
    within about ten seconds. `per_host` is kind to campus mirrors. `rounds` counts the passes over all
    hosts without any progress, `pause` is the time before the second of them, `longest_wait` the longest
    Retry-After that is waited for.
    """

    connect: float = 4.0
    stall: float = 30.0
    per_host: int = 3
    rounds: int = 3
    pause: float = 0.5
    longest_wait: float = 10.0


@dataclass(slots=True)
class _Host:
    """What this run has seen of one host."""

    slots: threading.BoundedSemaphore
    answered: bool = False
    failures: list[Attempt] = field(default_factory=list)

    @property
    def dead(self) -> bool:
        return len(self.failures) >= (DEAD_AFTER_LIFE if self.answered else DEAD_AFTER)


class Session:
    """The connections of one run, shared by its threads. Nothing is opened before the first request."""

    def __init__(self, patience: Patience | None = None) -> None:
        self.patience = patience or Patience()
        self._hosts: dict[str, _Host] = {}
        self._lock = threading.Lock()
        self._triage = threading.Lock()
        self._client: httpx.Client | None = None
        self._told: set[str] = set()

    @property
    def client(self) -> httpx.Client:
        """The HTTP client, made on first use."""
        with self._lock:
            if self._client is None:
                self._client = _client(self.patience)
            return self._client

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

    def resolve(self, url: str) -> Attempt | None:
        """None where the host's name can be resolved within the time to connect; else the failure.

        Asked for the first contact only, and never where a proxy does the resolving: the resolver's own
        time-out can be half a minute, which no socket option shortens.
        """
        parts = urlsplit(url)
        host = parts.hostname or ""
        if self._host(url).answered or _proxied(host):
            return None
        outcome: list[OSError] = []
        done = threading.Event()

        def look_up() -> None:
            try:
                socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
            except OSError as problem:
                outcome.append(problem)
            done.set()

        threading.Thread(target=look_up, daemon=True).start()
        if not done.wait(self.patience.connect):
            return timed_out(url, host_of(url))
        if outcome:
            return Attempt(
                host=host_of(url), url=shown(url), kind="dns", detail=_("the name cannot be resolved")
            )
        return None

    def _probe(self, url: str) -> None:
        import httpx

        from envkit.fetch.diagnosis import diagnose

        try:
            self.client.request("HEAD", url, timeout=self.patience.connect, auth=auth_for(url))
        except httpx.HTTPError as problem:
            self.failed(url, diagnose(problem, url, answered=False))
        else:
            self.answered(url)

    def _host(self, url: str) -> _Host:
        name = host_of(url)
        with self._lock:
            if name not in self._hosts:
                self._hosts[name] = _Host(slots=threading.BoundedSemaphore(self.patience.per_host))
            return self._hosts[name]


def timed_out(url: str, host: str) -> Attempt:
    """The failure of a host that did not answer in time."""
    return Attempt(host=host, url=shown(url), kind="timeout", detail=_("no answer in time"))


def auth_for(url: str) -> httpx.Auth | None:
    """The credentials for one request: those in the URL, else the host's entry in ~/.netrc, else none.

    Asked anew for every redirect, so that credentials go to their own host alone.
    """
    import httpx

    parts = urlsplit(url)
    if parts.username:
        return httpx.BasicAuth(unquote(parts.username), unquote(parts.password or ""))
    try:
        return httpx.NetRCAuth(os.environ.get("NETRC"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, netrc.NetrcParseError) as problem:
        raise InputError(
            _("~/.netrc cannot be used: {reason}").format(reason=problem),
            _("correct it, or set NETRC=/dev/null to do without"),
        ) from None


def _client(patience: Patience) -> httpx.Client:
    import httpx

    try:
        return httpx.Client(
            verify=_certificates(),
            headers={"User-Agent": f"envkit/{__version__}"},
            follow_redirects=False,
            timeout=httpx.Timeout(patience.stall, connect=patience.connect, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
        )
    except (ImportError, ValueError, httpx.InvalidURL) as problem:
        raise InputError(
            _("the proxy settings cannot be used: {reason}").format(reason=problem),
            _("HTTPS_PROXY, HTTP_PROXY and ALL_PROXY look like http://host:port"),
        ) from None


def _certificates() -> ssl.SSLContext:
    """The system's certificates and certifi's; where a variable names a file or folder, that alone."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if value := os.environ.get(name):
            try:
                return _certificates_in(value)
            except OSError as problem:
                raise InputError(
                    _("{name}={value} holds no usable certificates: {reason}").format(
                        name=name, value=value, reason=problem
                    ),
                    _("name a file of certificates in PEM form, or unset {name}").format(name=name),
                ) from None
    return _certificates_in(None)


@cache
def _certificates_in(place: str | None) -> ssl.SSLContext:
    import certifi

    if place is None:
        context = ssl.create_default_context()
        context.load_verify_locations(cafile=certifi.where())
        return context
    if Path(place).is_dir():
        return ssl.create_default_context(capath=place)
    return ssl.create_default_context(cafile=place)


def _proxied(host: str) -> bool:
    import urllib.request

    proxies = urllib.request.getproxies()
    return any(scheme in proxies for scheme in ("http", "https", "all")) and not (
        urllib.request.proxy_bypass(host)
    )
