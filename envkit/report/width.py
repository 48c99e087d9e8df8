"""Text in columns of a terminal, where a Chinese character is two columns wide.

Source: Unicode Standard Annex #11, East Asian Width.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["pad", "width", "wrap"]

_QUOTED = re.compile(r"`[^`\n]+`")


def width(text: str) -> int:
    """The columns a text takes."""
    return sum(_columns(character) for character in text)


def pad(text: str, columns: int) -> str:
    """The text, filled up with spaces to a number of columns."""
    return text + " " * max(0, columns - width(text))


def wrap(text: str, columns: int) -> list[str]:
    """The text in lines of at most that many columns.

    Lines break at spaces, and before and after wide characters; what has no such place (a path, a URL) is
    left whole, so that it can still be copied, and so is a command in backticks.
    """
    lines: list[str] = []
    current = ""
    for piece in _pieces(text):
        if current and width(current + piece.rstrip()) > columns:
            lines.append(current.rstrip())
            current = piece.lstrip()
        else:
            current += piece
    lines.append(current.rstrip())
    return lines


def _pieces(text: str) -> Iterator[str]:
    """What must stay together, each with the space after it."""
    whole = {place for quoted in _QUOTED.finditer(text) for place in range(quoted.start() + 1, quoted.end())}
    piece = ""
    for place, character in enumerate(text):
        if piece and place not in whole and _may_break(piece[-1], character):
            yield piece
            piece = ""
        piece += character
    if piece:
        yield piece


def _may_break(before: str, after: str) -> bool:
    if after == " ":
        return False
    if before == " ":
        return True
    # No line starts with closing punctuation or ends with an opening bracket, in Chinese as in English.
    if unicodedata.category(after) in ("Pe", "Pf", "Po") or unicodedata.category(before) in ("Ps", "Pi"):
        return False
    return 2 in (_columns(before), _columns(after))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cc", "Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
