"""Run the rules over a lock and make a Report of what they say."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from envkit.errors import InputError
from envkit.files import read_text
from envkit.lock.audit.channel import read_records
from envkit.lock.audit.rule import Facts, Finding, Result, Rule, Subject
from envkit.lock.audit.rules import MACHINE, RULES
from envkit.lock.read import Draft, Entry, parse_draft
from envkit.messages import _
from envkit.model import Check, Host, Lock, Report, Severity, Status

__all__ = ["audit", "audit_file", "fits", "read_draft", "unreadable"]

_BAD = (Severity.FATAL, Severity.HIGH)
_ORDER = tuple(Severity)

Lines = Mapping[str, int]


def read_draft(path: Path) -> Draft:
    """A lock read to its end whatever is wrong with it; InputError where it is no conda-lock v1 file."""
    return parse_draft(read_text(path), path)


def audit_file(
    path: Path, facts: Facts, *, repodata: Callable[[str, str], Path] | None = None, subject: str = ""
) -> Report:
    """Audit the lock in a file, against the channels' records too where `repodata` gives them.

    `subject` is what the report is called, the path without it.
    """
    draft = read_draft(path)
    if repodata is not None:
        facts = replace(facts, records=read_records(draft, repodata))
    return audit(draft, facts, subject=subject or str(path), lines=_lines(path, draft))


def audit(draft: Draft, facts: Facts, *, subject: str = "", lines: Lines = MappingProxyType({})) -> Report:
    """One Check for each rule, all findings of a rule in its `data`. `lines` are where packages begin.

    Severities fatal and high make a check fail, the milder ones a warning. A rule that cannot judge is
    skipped with the reason; it never counts as good.
    """
    began = time.monotonic()
    own, places = Subject(draft=draft), _Places.of(draft.entries, lines)
    checks = tuple(_check(rule, own, facts, places) for rule in RULES)
    return Report(subject=subject or str(draft.lock.path), checks=checks, seconds=time.monotonic() - began)


def fits(lock: Lock, host: Host) -> tuple[Check, ...]:
    """Whether a machine can run a lock that was read: the rules of the audit that are about machines."""
    entries = tuple(
        Entry(place=f"package[{number}]", package=package, raw={})
        for number, package in enumerate(lock.packages)
    )
    subject = Subject(draft=Draft(lock=lock, entries=entries, faults=(), document={}))
    return tuple(_check(rule, subject, Facts(host=host), _Places.of(entries)) for rule in MACHINE)


def unreadable(path: Path, problem: InputError) -> Report:
    """The report on a file that cannot be audited at all, among others that can."""
    check = Check(
        id="lock.readable",
        status=Status.FAIL,
        severity=Severity.FATAL,
        summary=str(problem),
        hint=problem.hint or _("restore it: git checkout {path}").format(path=path),
    )
    return Report(subject=str(path), checks=(check,))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Places:
    """What a place like `package[3]` is called, and the line on which it begins, where that is known."""

    names: Mapping[str, str]
    lines: Lines

    @classmethod
    def of(cls, entries: Iterable[Entry], lines: Lines = MappingProxyType({})) -> _Places:
        return cls(names={entry.place: entry.package.name for entry in entries}, lines=lines)

    def told(self, place: str) -> str:
        """`package[3].hash` as `numpy.hash, line 34`."""
        own = re.match(r"package\[\d+\]", place)
        if own is None or own.group() not in self.names:
            return place
        key = f"{self.names[own.group()]}{place[own.end() :]}"
        line = self.lines.get(own.group())
        return key if line is None else _("{place}, line {line}").format(place=key, line=line)


def _lines(path: Path, draft: Draft) -> Lines:
    """The line on which each package begins, where the file is laid out as conda-lock does it."""
    head, found, rest = read_text(path).partition("\npackage:\n")
    listed = draft.document.get("package")
    first = head.count("\n") + 3
    starts = [number for number, line in enumerate(rest.split("\n"), first) if line.startswith("- ")]
    if not found or not isinstance(listed, list) or len(starts) != len(listed):
        return {}
    return {f"package[{index}]": line for index, line in enumerate(starts)}


def _check(rule: Rule, subject: Subject, facts: Facts, places: _Places) -> Check:
    began = time.monotonic()
    try:
        result = rule.judge(subject, facts)
    except Exception as problem:  # a rule of ours that a stranger's text upsets must not hide the others
        return Check(
            id=rule.id,
            status=Status.CRASH,
            severity=rule.severity,
            summary=_("this rule failed: {kind}: {problem}").format(
                kind=type(problem).__name__, problem=problem
            ),
            hint=_("that is a bug in envkit: please report it with the lock"),
            seconds=time.monotonic() - began,
        )
    worst = _worst(rule, result.findings)
    return Check(
        id=rule.id,
        status=_status(result, worst),
        severity=worst,
        summary=_summary(result, places),
        detail="\n".join(_line(finding, places) for finding in result.findings),
        hint=rule.hint() if result.findings else "",
        data={**result.data, "findings": [_as_data(rule, finding) for finding in result.findings]},
        seconds=time.monotonic() - began,
    )


def _worst(rule: Rule, findings: tuple[Finding, ...]) -> Severity:
    severities = [finding.severity or rule.severity for finding in findings]
    return min(severities, key=_ORDER.index, default=rule.severity)


def _status(result: Result, worst: Severity) -> Status:
    if result.skipped:
        return Status.SKIP
    if not result.findings:
        return Status.OK
    return Status.FAIL if worst in _BAD else Status.WARN


def _summary(result: Result, places: _Places) -> str:
    if not result.findings:
        return result.summary
    first, others = _line(result.findings[0], places), len(result.findings) - 1
    if not others:
        return first
    return _("{first} (and {count} more: -v)").format(first=first, count=others)


def _line(finding: Finding, places: _Places) -> str:
    return f"{places.told(finding.place)}: {finding.text}" if finding.place else finding.text


def _as_data(rule: Rule, finding: Finding) -> dict[str, str | None]:
    return {
        "place": finding.place,
        "text": finding.text,
        "platform": finding.platform,
        "package": finding.package,
        "severity": (finding.severity or rule.severity).value,
    }
