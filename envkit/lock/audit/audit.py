"""Run the rules over a lock and make a Report of what they say."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

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
    return audit(draft, facts, subject=subject or str(path))


def audit(draft: Draft, facts: Facts, *, subject: str = "") -> Report:
    """One Check for each rule, all findings of a rule in its `data`.

    Severities fatal and high make a check fail, the milder ones a warning. A rule that cannot judge is
    skipped with the reason; it never counts as good.
    """
    began = time.monotonic()
    own = Subject(draft=draft)
    checks = tuple(_check(rule, own, facts) for rule in RULES)
    return Report(subject=subject or str(draft.lock.path), checks=checks, seconds=time.monotonic() - began)


def fits(lock: Lock, host: Host) -> tuple[Check, ...]:
    """Whether a machine can run a lock that was read: the rules of the audit that are about machines."""
    entries = tuple(
        Entry(place=f"package[{number}]", package=package, raw={})
        for number, package in enumerate(lock.packages)
    )
    subject = Subject(draft=Draft(lock=lock, entries=entries, faults=(), document={}))
    return tuple(_check(rule, subject, Facts(host=host)) for rule in MACHINE)


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


def _check(rule: Rule, subject: Subject, facts: Facts) -> Check:
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
        summary=_summary(result),
        detail="\n".join(_line(finding) for finding in result.findings),
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


def _summary(result: Result) -> str:
    if not result.findings:
        return result.summary
    first, others = _line(result.findings[0]), len(result.findings) - 1
    if not others:
        return first
    return _("{first} (and {count} more)").format(first=first, count=others)


def _line(finding: Finding) -> str:
    return f"{finding.place}: {finding.text}" if finding.place else finding.text


def _as_data(rule: Rule, finding: Finding) -> dict[str, str | None]:
    return {
        "place": finding.place,
        "text": finding.text,
        "platform": finding.platform,
        "package": finding.package,
        "severity": (finding.severity or rule.severity).value,
    }
