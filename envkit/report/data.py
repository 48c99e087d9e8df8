"""A Report as JSON. The schema is versioned: fields are added, never changed."""

from __future__ import annotations

from typing import Any

from envkit.model import Check, Report

__all__ = ["SCHEMA", "to_json"]

SCHEMA = 1


def to_json(report: Report) -> dict[str, Any]:
    """What `json.dumps` takes: the subject, the verdict and every field of every check. Times in seconds."""
    return {
        "schema": SCHEMA,
        "subject": report.subject,
        "ok": report.ok,
        "seconds": report.seconds,
        "checks": [_check(check) for check in report.checks],
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "status": check.status.value,
        "severity": check.severity.value,
        "bad": check.bad,
        "summary": check.summary,
        "detail": check.detail,
        "hint": check.hint,
        "data": dict(check.data),
        "seconds": check.seconds,
    }
