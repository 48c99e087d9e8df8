"""A Report as text for a terminal: a line a check, what to do about the bad ones, the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

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


def to_text(
    report: Report,
    color: bool,
    verbose: int = 0,
    *,
    columns: int = 80,
    verdicts: tuple[str, str] | None = None,
    shown: Callable[[Check], bool] = lambda check: True,
    timed: bool = True,
) -> str:
    """The report, in lines of at most `columns` where its words allow.

    `verdicts` are the last line's words for a good and a bad report; without them it is about an environment.
    Checks that are not `shown` have no line of their own and are counted only.

    `color` only adds to what the words say. From `verbose` 1 on the hints of good checks are shown too,
    and the detail of every check; below 0 only bad checks have a line, and nothing has a hint. Without
    `timed` there are no seconds.
    """
    told = [check for check in report.checks if (check.bad if verbose < 0 else shown(check))]
    lines = list(_table(told, color, columns, timed))
    for checks in _by_hint(report.checks, verbose) if verbose >= 0 else ():
        lines += ["", *_told_more(checks, color, verbose, columns)]
    words = verdicts or (_("everything works"), _("this environment does not work here as it is"))
    lines += [*([""] if lines else []), *_verdict(report, color, columns, words, timed)]
    return "\n".join(lines)


def _words(status: Status) -> str:
    return {
        Status.OK: _("ok"),
        Status.WARN: _("warning"),
        Status.FAIL: _("FAILED"),
        Status.SKIP: _("skipped"),
        Status.CRASH: _("CRASHED"),
    }[status]


def _table(checks: Sequence[Check], color: bool, columns: int, timed: bool) -> Iterator[str]:
    status_width = max((width(_words(status)) for status in Status), default=0)
    id_width = max((width(check.id) for check in checks), default=0)
    seconds_width = 6 if timed else -_GAP
    left = status_width + id_width + 2 * _GAP
    room = max(_LEAST_SUMMARY, columns - left - _GAP - seconds_width)
    for check in checks:
        first, *rest = wrap(_one_line(check.summary), room)
        head = pad(_painted(check.status, color), status_width + _unseen(check.status, color))
        seconds = f"{check.seconds:.1f} s".rjust(seconds_width)
        cells = (head, pad(check.id, id_width), pad(first, room), seconds)
        yield (" " * _GAP).join(cells if timed else cells[:3]).rstrip()
        for line in rest:
            yield " " * left + line


def _painted(status: Status, color: bool) -> str:
    word = _words(status)
    return f"\x1b[{_COLORS[status]}m{word}\x1b[0m" if color else word


def _unseen(status: Status, color: bool) -> int:
    """Columns that `width` counts for the color codes, which a terminal does not show."""
    return width(_painted(status, color)) - width(_words(status)) if color else 0


def _by_hint(checks: Sequence[Check], verbose: int) -> list[list[Check]]:
    """The checks that more is to be said of; those with one remedy together, so that it stands there once."""
    groups: dict[tuple[Status, str], list[Check]] = {}
    for check in checks:
        if check.hint or (verbose and check.detail):
            groups.setdefault((check.status, check.hint), []).append(check)
    return [group for (status, _hint), group in groups.items() if verbose or status is not Status.OK]


def _told_more(checks: Sequence[Check], color: bool, verbose: int, columns: int) -> Iterator[str]:
    ids = ", ".join(check.id for check in checks)
    head, *rest = wrap(f"{_words(checks[0].status)}  {ids}", columns)
    yield head.replace(_words(checks[0].status), _painted(checks[0].status, color), 1)
    yield from rest
    for line in wrap(_one_line(checks[0].hint), columns - len(_INDENT)):
        if line:
            yield _INDENT + line
    for check in checks if verbose else ():
        if check.detail and len(checks) > 1:
            yield f"{_INDENT}{check.id}:"
        for line in check.detail.splitlines():
            yield f"{_INDENT}| {_printable(line)}"


def _verdict(report: Report, color: bool, columns: int, words: tuple[str, str], timed: bool) -> Iterator[str]:
    counts = Counter(check.status for check in report.checks)
    told = ", ".join(f"{counts[status]} {_words(status)}" for status in Status if counts[status])
    status = Status.OK if report.ok else Status.FAIL
    word = words[0] if report.ok else words[1]
    painted = f"\x1b[{_COLORS[status]}m{word}\x1b[0m" if color else word
    if timed:
        told = _("{counts}; {seconds:.1f} s").format(counts=told, seconds=report.seconds)
    line = _("{subject}: {verdict} ({counts})").format(
        subject=_printable(report.subject), verdict=painted, counts=told
    )
    yield from [line] if color else wrap(line, columns)


def _one_line(text: str) -> str:
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    """Without control characters: an exception's text must not move the cursor or set the window's title."""
    return "".join(character if character.isprintable() or character == "\t" else "?" for character in text)
