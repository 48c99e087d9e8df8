"""Rows of text in aligned columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from envkit.report.width import pad, width, wrap

__all__ = ["table"]

_GAP = "  "


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, columns: int | None = None) -> str:
    """The rows under their header, columns aligned for wide characters too. Lines end without spaces.

    With `columns`, cells are wrapped at their spaces until a line takes no more than that, where that is
    possible at all.
    """
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(width(line[column]) for line in lines) for column in range(len(header))]
    if columns is not None:
        least = [max(_least(line[column]) for line in lines) for column in range(len(header))]
        widths = _fitted(widths, least, columns - len(_GAP) * (len(header) - 1))
    return "\n".join(text for line in lines for text in _physical(line, widths))


def _least(cell: str) -> int:
    """The columns of the longest word of a cell, which is never broken."""
    return max(width(piece) for piece in wrap(cell, 1))


def _fitted(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths, the widest ones narrowed until all fit the room or only unbreakable words are left."""
    fitted = list(widths)
    while sum(fitted) > room:
        narrowable = [column for column, columns in enumerate(fitted) if columns > least[column]]
        if not narrowable:
            break
        fitted[max(narrowable, key=fitted.__getitem__)] -= 1
    return fitted


def _physical(line: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """The lines of the terminal that one row takes."""
    cells = [wrap(cell, columns) for cell, columns in zip(line, widths, strict=True)]
    for parts in zip_longest(*cells, fillvalue=""):
        yield _GAP.join(pad(part, columns) for part, columns in zip(parts, widths, strict=True)).rstrip()
