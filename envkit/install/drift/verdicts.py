"""Checks in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envkit.messages import _
from envkit.model import Check, Severity, Status

__all__ = ["bad", "ok", "skip", "some", "warn"]

_SHOWN = 5
_DETAILED = 200


def ok(id: str, text: str, data: Mapping[str, Any] | None = None) -> Check:
    """As the lock says."""
    return Check(id=id, status=Status.OK, severity=Severity.LOW, summary=text, data=data or {})


def skip(id: str, text: str, hint: str) -> Check:
    """What could not be told, and why."""
    return Check(id=id, status=Status.SKIP, severity=Severity.HIGH, summary=text, hint=hint)


def warn(
    id: str, text: str, hint: str = "", lines: Sequence[str] = (), data: Mapping[str, Any] | None = None
) -> Check:
    """What nobody accounts for and may be wanted; `lines` are the whole list."""
    return _check(id, Status.WARN, Severity.LOW, text, hint, lines, data)


def bad(
    id: str, text: str, hint: str = "", lines: Sequence[str] = (), data: Mapping[str, Any] | None = None
) -> Check:
    """What is not as the lock says; `lines` are the whole list."""
    return _check(id, Status.FAIL, Severity.HIGH, text, hint, lines, data)


def some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = _(" and {count} more").format(count=len(names) - _SHOWN) if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _check(
    id: str,
    status: Status,
    severity: Severity,
    text: str,
    hint: str,
    lines: Sequence[str],
    data: Mapping[str, Any] | None,
) -> Check:
    more = [_("and {count} more").format(count=len(lines) - _DETAILED)] if len(lines) > _DETAILED else []
    return Check(
        id=id,
        status=status,
        severity=severity,
        summary=text,
        detail="\n".join([*lines[:_DETAILED], *more]),
        hint=hint,
        data=data or {},
    )
