"""A Report as text for a terminal: a line a check, what to do about the bad ones, the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from envkit.messages import _
from envkit.model import Check, Report, Status
from envkit.report.width import pad, width, wrap

__all__ = ["to_text"]

_COLORS = {
    Status.OK: "32",
    Status.WARN: "33",
    Status.FAIL: "31",
    Status.SKIP: "2",
    Status.CRASH: "35",
}
_GAP = 2
_INDENT = "  "
_LEAST_SUMMARY = 24


def to_text(report: Report, color: bool, verbose: int = 0, *, columns: int = 80) -> str:
    """The report, in lines of at most `columns` where its words allow.

    `color` only adds to what the words say. `verbose` shows the hints of good checks too from 1, and
    the detail of everything from 1.
    """
    lines = list(_table(report, color, columns))
    for check in report.checks:
        if _told(check, verbose):
            lines += ["", *_told_more(check, color, verbose, columns)]
    lines += ["", *_verdict(report, color, columns)]
    return "\n".join(lines)


def _words(status: Status) -> str:
    return {
        Status.OK: _("ok"),
        Status.WARN: _("warning"),
        Status.FAIL: _("FAILED"),
        Status.SKIP: _("skipped"),
        Status.CRASH: _("CRASHED"),
    }[status]


def _table(report: Report, color: bool, columns: int) -> Iterator[str]:
    status_width = max((width(_words(status)) for status in Status), default=0)
    id_width = max((width(check.id) for check in report.checks), default=0)
    seconds_width = 6
    left = status_width + id_width + 2 * _GAP
    room = max(_LEAST_SUMMARY, columns - left - _GAP - seconds_width)
    for check in report.checks:
        first, *rest = wrap(_one_line(check.summary), room)
        head = pad(_painted(check.status, color), status_width + _unseen(check.status, color))
        seconds = f"{check.seconds:.1f} s".rjust(seconds_width)
        yield f"{head}{' ' * _GAP}{pad(check.id, id_width)}{' ' * _GAP}{pad(first, room)}{' ' * _GAP}{seconds}"
        for line in rest:
            yield " " * left + line


def _painted(status: Status, color: bool) -> str:
    word = _words(status)
    return f"\x1b[{_COLORS[status]}m{word}\x1b[0m" if color else word


def _unseen(status: Status, color: bool) -> int:
    """Columns that `width` counts for the color codes, which a terminal does not show."""
    return width(_painted(status, color)) - width(_words(status)) if color else 0


def _told(check: Check, verbose: int) -> bool:
    if check.status in (Status.FAIL, Status.CRASH, Status.WARN):
        return bool(check.hint or (verbose and check.detail))
    return bool(check.hint and check.status is Status.SKIP) or bool(verbose and (check.hint or check.detail))


def _told_more(check: Check, color: bool, verbose: int, columns: int) -> Iterator[str]:
    yield f"{_painted(check.status, color)}  {check.id}"
    if check.hint:
        for line in wrap(_one_line(check.hint), columns - len(_INDENT)):
            yield _INDENT + line
    if verbose:
        for line in check.detail.splitlines():
            yield f"{_INDENT}| {_printable(line)}"


def _verdict(report: Report, color: bool, columns: int) -> Iterator[str]:
    counts = Counter(check.status for check in report.checks)
    told = ", ".join(f"{counts[status]} {_words(status)}" for status in Status if counts[status])
    status = Status.OK if report.ok else Status.FAIL
    word = _("everything works") if report.ok else _("this environment does not work here as it is")
    painted = f"\x1b[{_COLORS[status]}m{word}\x1b[0m" if color else word
    line = _("{subject}: {verdict} ({counts}; {seconds:.1f} s)").format(
        subject=_printable(report.subject), verdict=painted, counts=told, seconds=report.seconds
    )
    yield from [line] if color else wrap(line, columns)


def _one_line(text: str) -> str:
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    """Without control characters: an exception's text must not move the cursor or set the window's title."""
    return "".join(character if character.isprintable() or character == "\t" else "?" for character in text)
