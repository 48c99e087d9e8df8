"""What a check is: the job that measures, the function that judges, and what they prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from envkit.checks.outcome import Outcome
from envkit.checks.target import UNKNOWN, Target
from envkit.model import Severity, Status

__all__ = ["TOKEN", "CheckInfo", "Context", "Job", "Verdict", "Where", "check", "fail", "ok", "skip", "warn"]

Data = Mapping[str, Any]

TOKEN: Final = "<token of the run>"
"""As an argument of a job: the name under which this run makes semaphores."""


class Where(str, Enum):
    """The process a job runs in."""

    BARE = "a fork of the interpreter, before anything is imported"
    HERE = "the interpreter itself: what it imports is there afterwards"
    WARM = "a fork of the interpreter with torch imported"
    FRESH = "an interpreter of its own"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One call of a probe function in the interpreter under test; it may give data to several checks.

    `call` is "file:function" under envkit/probe (or the path of a file). `limit` is in seconds of wall time.
    """

    id: str
    call: str
    where: Where
    limit: float
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What a judge makes of the data."""

    status: Status
    summary: str
    detail: str = ""
    hint: str = ""


def ok(summary: str, *, detail: str = "", hint: str = "") -> Verdict:
    return Verdict(status=Status.OK, summary=summary, detail=detail, hint=hint)


def warn(summary: str, *, detail: str = "", hint: str = "") -> Verdict:
    return Verdict(status=Status.WARN, summary=summary, detail=detail, hint=hint)


def fail(summary: str, *, detail: str = "", hint: str = "") -> Verdict:
    return Verdict(status=Status.FAIL, summary=summary, detail=detail, hint=hint)


def skip(summary: str, *, detail: str = "", hint: str = "") -> Verdict:
    return Verdict(status=Status.SKIP, summary=summary, detail=detail, hint=hint)


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What a judge may know beside its own data: the target, and the data other checks had before it."""

    target: Target
    facts: Mapping[str, Data] = field(default_factory=dict)

    @property
    def cuda_wanted(self) -> bool | None:
        """Whether this environment is for GPUs; None where neither the asking nor torch says."""
        if self.target.cuda != UNKNOWN:
            return self.target.cuda is not None
        build = self.facts.get("torch.build")
        return None if build is None else build.get("cuda") is not None


Judge = Callable[[Data, Context], Verdict]


def _no_words(outcome: Outcome, context: Context) -> Verdict | None:
    return None


def _always(context: Context) -> Verdict | None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckInfo:
    """One check of the catalogue.

    `needs` are ids of checks without which this one is not run. `words` gives the title and what the check
    proves, in the language in use. `spared` may decide without running anything. `ended` may find better
    words than the usual ones where the probe ended without giving data.
    """

    id: str
    job: Job
    severity: Severity
    source: str
    words: Callable[[], tuple[str, str]]
    judge: Judge
    needs: tuple[str, ...] = ()
    quick: bool = False
    spared: Callable[[Context], Verdict | None] = _always
    ended: Callable[[Outcome, Context], Verdict | None] = _no_words

    @property
    def title(self) -> str:
        return self.words()[0]

    @property
    def proves(self) -> str:
        return self.words()[1]

    @property
    def limit(self) -> float:
        """Seconds of wall time after which its job is killed."""
        return self.job.limit


def check(
    id: str,
    *,
    job: Job,
    severity: Severity,
    source: str,
    words: Callable[[], tuple[str, str]],
    needs: tuple[str, ...] = ("interpreter.runs",),
    quick: bool = False,
    spared: Callable[[Context], Verdict | None] = _always,
    ended: Callable[[Outcome, Context], Verdict | None] = _no_words,
) -> Callable[[Judge], CheckInfo]:
    """Make the decorated judge a check."""

    def made(judge: Judge) -> CheckInfo:
        return CheckInfo(
            id=id,
            job=job,
            severity=severity,
            source=source,
            words=words,
            judge=judge,
            needs=needs,
            quick=quick,
            spared=spared,
            ended=ended,
        )

    return made
