"""What to fetch, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from envkit.channels import shown
from envkit.fetch.failures import Attempt, host_of

__all__ = ["Candidate", "Failed", "Rejected", "Served", "Wanted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A URL to ask. `magic` are the bytes one of which such a file begins with; any, where it is empty."""

    url: str
    magic: tuple[bytes, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def host(self) -> str:
        return host_of(self.url)

    def attempt(self, kind: str, detail: str, *, allow: str = "") -> Attempt:
        """A failure at this URL."""
        return Attempt(host=self.host, url=shown(self.url), kind=kind, detail=detail, allow=allow)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """One file; `name` is for messages.

    `sha256` (hex) is the only thing that is trusted; a file that has one is resumed across hosts and
    runs. `size` is in bytes; where it is not known, more than `largest` is not accepted. `accept` looks at
    what arrived and raises Rejected. `missing` says in words what it means that a host does not have the
    file.
    """

    name: str
    candidates: tuple[Candidate, ...]
    sha256: str | None = None
    size: int | None = None
    largest: int = 64 << 30
    accept: Callable[[Path, Candidate], None] | None = None
    missing: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """The file and who gave it. `path` is None where the host said "not modified".

    `received` counts the bytes that came over the network; `headers` are the answer's, names in lower case.
    """

    path: Path | None
    candidate: Candidate
    received: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


class Rejected(Exception):
    """What arrived is not what was wanted; the text says why."""


class Failed(Exception):
    """One attempt failed, after `gained` bytes that are kept; for `needed` bytes there is no room."""

    def __init__(self, attempt: Attempt, *, gained: int = 0, needed: int | None = None) -> None:
        super().__init__(attempt.detail)
        self.attempt = attempt
        self.gained = gained
        self.needed = needed
