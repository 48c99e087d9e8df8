"""For the tests of fetch: routes that give up soon, and an observer that keeps what it hears."""

from __future__ import annotations

import socket
from collections.abc import Collection
from dataclasses import replace

from envkit.fetch import Patience, Routes, Session, Trust
from envkit.fetch.routes import routes as make_routes
from envkit.progress import Observer


class Notes(Observer):
    """An observer that keeps what it hears."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.bytes = 0
        self.done = 0

    def note(self, text: str) -> None:
        self.lines.append(text)

    def advance(self, task: str, amount: int = 1) -> None:
        if task == "downloading":
            self.bytes += amount
        else:
            self.done += amount

    def about(self, host: str, *words: str) -> list[str]:
        """The lines about a host with all these words."""
        return [
            line
            for line in self.lines
            if line.startswith((f"{host}:", f"{host} ")) and all(word in line for word in words)
        ]


IMPATIENT = Patience(connect=0.5, stall=0.6, rounds=2, pause=0.02, longest_wait=0.2)


def resolve(host: str) -> tuple[str, ...]:
    """No test asks a resolver: addresses stand for themselves, `*.inside.example` is this machine."""
    if host[0].isdigit() or ":" in host:
        return (host,)
    if host == "localhost" or host.endswith("inside.example"):
        return ("127.0.0.1",)
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def impatient(
    *urls: str,
    only: bool = True,
    patience: Patience = IMPATIENT,
    trusted: Collection[str] = (),
    offline: bool = False,
) -> Routes:
    """Routes over these mirrors and nothing else, that give up within a second or two.

    `trusted` are further hosts that may be asked, for URLs that name their own.
    """
    made = make_routes(",".join(urls), only=only)
    trust = Trust(hosts=frozenset({*urls, *trusted}), resolve=resolve)
    return replace(made, session=Session(patience, trust=trust, offline=offline))
