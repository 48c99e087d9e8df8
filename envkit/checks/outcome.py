"""How one job in the interpreter under test went, as it was seen from outside."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Link", "Outcome", "Part"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One exception of a chain. `ours`: it was raised in the probe itself, not in what it probes."""

    type: str
    text: str
    frames: tuple[str, ...] = ()
    ours: bool = False

    def __str__(self) -> str:
        return f"{self.type}: {self.text}" if self.text else self.type


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The data a job gave to one check, and the seconds that took."""

    data: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a job went.

    `at` is the last breadcrumb, `code` the exit code (negative: a signal; None: never seen to end), `chain`
    the exception, outermost first; `done` says that the work was finished, whatever came after;
    `not_started` is the reason why there was nothing to run; `output` the end of stderr and stdout.
    """

    job: str
    limit: float
    parts: Mapping[str, Part] = field(default_factory=dict)
    chain: tuple[Link, ...] = ()
    at: str = ""
    code: int | None = None
    done: bool = False
    timed_out: bool = False
    out_of_memory: bool = False
    not_started: str = ""
    output: str = ""
    seconds: float = 0.0

    @property
    def ended_well(self) -> bool:
        return self.done and self.code == 0 and not self.timed_out

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it: "SIGSEGV"."""
        if self.code is None or self.code >= 0:
            return None
        try:
            return signal.Signals(-self.code).name
        except ValueError:
            return str(-self.code)

    @property
    def text(self) -> str:
        """Everything that was said about the failure, outermost exception first."""
        return "\n".join([*map(str, self.chain), self.output])
