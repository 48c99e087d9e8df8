"""What an audit is made of: a subject, facts beside it, and rules that look for findings.

A rule is a pure function from the two to findings. Adding one is writing the function and a line in
`envkit.lock.audit.rules.RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from envkit.lock.read import Draft, Entry
from envkit.model import Host, Severity

if TYPE_CHECKING:
    from envkit.lock.audit.channel import Records

__all__ = [
    "Facts",
    "Finding",
    "Result",
    "Rule",
    "Subject",
    "about",
    "conda_key",
    "found",
    "good",
    "rule",
    "skipped",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What an audit may know beside the lock.

    `accelerator` is what was asked for ("cpu", "11.8"), None where nobody said. `host` is the machine that
    is to run it, None to leave that out; `named` says that a user described it, rather than it being this
    machine. `allowed_hosts` are servers that are trusted beside the known ones. `records` are the channels'
    own, where they were asked.
    """

    accelerator: str | None = None
    host: Host | None = None
    named: bool = False
    allowed_hosts: frozenset[str] = frozenset()
    records: Records | None = None


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The lock under audit."""

    draft: Draft

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that are listed or have packages, in that order."""
        own = (entry.package.platform for entry in self.draft.entries)
        return tuple(dict.fromkeys((*self.draft.lock.platforms, *own)))

    def on(self, platform: str) -> tuple[Entry, ...]:
        """The packages of one platform, in the order of the file."""
        return self._by_platform.get(platform, ())

    def conda(self, platform: str) -> Mapping[str, Entry]:
        """The conda packages of one platform by name; the first where one stands there twice."""
        return self._conda.get(platform, {})

    @cached_property
    def _by_platform(self) -> Mapping[str, tuple[Entry, ...]]:
        sorted_out: dict[str, list[Entry]] = {}
        for entry in self.draft.entries:
            sorted_out.setdefault(entry.package.platform, []).append(entry)
        return {platform: tuple(entries) for platform, entries in sorted_out.items()}

    @cached_property
    def _conda(self) -> Mapping[str, Mapping[str, Entry]]:
        result: dict[str, dict[str, Entry]] = {}
        for entry in self.draft.entries:
            if entry.package.manager == "conda":
                here = result.setdefault(entry.package.platform, {})
                here.setdefault(conda_key(entry.package.name), entry)
        return result


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that is wrong. `place` is where in the file; `severity` replaces the rule's own."""

    place: str
    text: str
    platform: str | None = None
    package: str | None = None
    severity: Severity | None = None
    hint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a rule says: findings, or in `summary` why there are none; `skipped` where it could not judge."""

    findings: tuple[Finding, ...] = ()
    summary: str = ""
    skipped: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)


Judge = Callable[[Subject, Facts], Result]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One kind of finding. `id` never changes; `hint` gives the remedy in the language in use."""

    id: str
    severity: Severity
    hint: Callable[[], str]
    judge: Judge


def rule(id: str, severity: Severity, hint: Callable[[], str]) -> Callable[[Judge], Rule]:
    """Make the decorated judge a rule."""

    def made(judge: Judge) -> Rule:
        return Rule(id=id, severity=severity, hint=hint, judge=judge)

    return made


def found(findings: Iterable[Finding], otherwise: str, **data: Any) -> Result:
    """The findings; `otherwise` is the summary where there are none."""
    return Result(findings=tuple(findings), summary=otherwise, data=data)


def good(summary: str, **data: Any) -> Result:
    return Result(summary=summary, data=data)


def skipped(reason: str, **data: Any) -> Result:
    return Result(summary=reason, skipped=True, data=data)


def conda_key(name: str) -> str:
    """A conda package's name as the solver compares it."""
    return name.lower()


def about(
    entry: Entry, text: str, *, key: str = "", severity: Severity | None = None, hint: str = ""
) -> Finding:
    """A finding about a package, or about one of its keys."""
    package = entry.package
    return Finding(
        place=f"{entry.place}.{key}" if key else entry.place,
        text=text,
        platform=package.platform,
        package=package.name,
        severity=severity,
        hint=hint,
    )
