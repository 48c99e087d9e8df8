"""Rows of text in aligned columns."""

from __future__ import annotations

from collections.abc import Sequence

from envkit.report.width import pad, width

__all__ = ["table"]

_GAP = "  "


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows under their header, columns aligned for wide characters too. Lines end without spaces."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(width(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        _GAP.join(pad(cell, columns) for cell, columns in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
