"""How a connection is opened: to an address that was judged, with a time limit on the resolver as well."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from envkit.fetch.trust import Trust, Untrusted

__all__ = ["guard"]


def guard(client: httpx.Client, trust: Trust) -> None:
    """Let `client` connect only where `trust` allows, judged by address.

    What goes through a proxy is left alone: there the proxy looks names up, and it is the user's own.
    """
    # httpx hands no backend through to the library below it, which has one for this very purpose.
    client._transport._pool._network_backend = _Judging(trust)  # type: ignore[attr-defined]


class _Judging(httpcore.NetworkBackend):
    """Looks a name up once, judges what it stands for, and connects to one of those addresses."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to `host`. Raises Untrusted, httpcore.ConnectError, httpcore.ConnectTimeout."""
        end = time.monotonic() + (timeout if timeout is not None else 60.0)
        left = self._look_up(host, port, end)
        while True:
            address, *left = left
            wait = max(0.05, (end - time.monotonic()) / (1 + len(left)))
            try:
                return self._plain.connect_tcp(address, port, wait, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not left:
                    raise

    def _look_up(self, host: str, port: int, end: float) -> list[str]:
        # The resolver's own time-out can be half a minute, which no socket option shortens.
        outcome: list[tuple[str, ...] | OSError | UnicodeError | Untrusted] = []
        done = threading.Event()

        def look_up() -> None:
            try:
                outcome.append(self._trust.judged(host, port))
            except (OSError, UnicodeError, Untrusted) as problem:
                outcome.append(problem)
            done.set()

        threading.Thread(target=look_up, daemon=True).start()
        if not done.wait(max(0.0, end - time.monotonic())):
            raise httpcore.ConnectTimeout("the resolver does not answer")
        try:
            if isinstance(outcome[0], Exception):
                raise outcome[0]
            if not outcome[0]:
                raise socket.gaierror("no address")
        except (OSError, UnicodeError) as problem:
            raise httpcore.ConnectError(str(problem)) from problem
        return list(outcome[0])
