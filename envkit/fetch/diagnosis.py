"""From what the HTTP library raised or the host answered to one `Attempt`."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import httpx

from envkit.channels import shown
from envkit.fetch.failures import Attempt, host_of
from envkit.messages import _

__all__ = ["diagnose", "judge"]

_PAGE_ID = re.compile(r"(?i)\b(?:page|request|trace|event|ray|incident)[ _-]?id\b\W{0,16}([\w.:-]{4,80})")
_FORBIDDEN = frozenset({401, 403, 407, 451})
_CONDITIONS = frozenset({"if-none-match", "if-modified-since"})
_MISSING = frozenset({404, 410})
_LONGEST = 7 * 24 * 3600.0


def diagnose(problem: httpx.HTTPError, url: str, *, answered: bool) -> Attempt:
    """The attempt that ended in an exception of httpx; `answered`: whether its host ever said anything."""
    kind, detail = _reason(problem)
    if not answered:
        kind = {"stalled": "silent", "cut": "reset"}.get(kind, kind)
    return Attempt(host=host_of(url), url=shown(url), kind=kind, detail=detail)


def judge(response: httpx.Response, url: str) -> Attempt | None:
    """The attempt that ended in a status other than success; None for 200, 206 and a 304 that was asked for.

    Of a refusal the page's ID is kept: it is what a mirror's operators ask for (tuna/issues#2264).
    """
    status = response.status_code
    conditional = not _CONDITIONS.isdisjoint(name.lower() for name in response.request.headers)
    if status in (200, 206) or (status == 304 and conditional):
        return None
    detail, kind, wait = f"HTTP {status} {response.reason_phrase}".rstrip(), "status", 0.0
    if status in _MISSING:
        kind = "missing"
    elif status in _FORBIDDEN:
        kind = "forbidden"
        page_id = _PAGE_ID.search(_beginning(response))
        if page_id:
            detail += _(" (page ID {id}: the mirror's operators will ask for it)").format(id=page_id.group(1))
    elif status == 429:
        kind = "busy"
    elif status >= 500:
        kind = "server"
    if kind in ("busy", "server") and (wait := _retry_after(response.headers.get("Retry-After", ""))):
        detail += _(" (asks to wait {seconds:.0f} s)").format(seconds=wait)
    return Attempt(host=host_of(url), url=shown(url), kind=kind, detail=detail, wait=wait)


def _reason(problem: httpx.HTTPError) -> tuple[str, str]:
    causes = list(_chain(problem))
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        why = next(cause for cause in causes if isinstance(cause, ssl.SSLError))
        return "tls", _("TLS failed: {reason}").format(
            reason=getattr(why, "verify_message", "") or why.reason or why
        )
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "dns", _("the name cannot be resolved")
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "refused", _("connection refused")
    if isinstance(problem, httpx.ConnectTimeout):
        return "timeout", _("no connection in time")
    if isinstance(problem, httpx.ProxyError):
        return "connect", _("the proxy failed: {reason}").format(reason=problem)
    if isinstance(problem, httpx.ConnectError):
        return "connect", _("cannot connect: {reason}").format(reason=problem)
    if isinstance(problem, httpx.TimeoutException):
        return "stalled", _("no byte came for too long")
    return "cut", _("the connection broke: {reason}").format(reason=problem)


def _chain(problem: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending: list[BaseException] = [problem]
    while pending:
        cause = pending.pop()
        if id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            pending += [other for other in (cause.__cause__, cause.__context__) if other is not None]


def _beginning(response: httpx.Response) -> str:
    text = b""
    try:
        for block in response.iter_bytes():
            text += block
            if len(text) > 8192:
                break
    except httpx.HTTPError:
        pass
    return re.sub(r"<[^>]*>", " ", text[:8192].decode("utf-8", "replace"))


def _retry_after(value: str) -> float:
    """Seconds to wait, from a number or a date (RFC 9110, section 10.2.3); 0 where neither can be read."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return 0.0
    return min(seconds, _LONGEST) if seconds > 0 else 0.0
