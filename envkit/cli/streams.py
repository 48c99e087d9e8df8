"""The standard streams as they may come: closed, full, broken, or unable to encode a character."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO

__all__ = ["flush", "legible", "prepare", "say"]

_MODES = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
# Terminals obey control characters, and the marks that turn the direction of writing hide what stands there.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def prepare() -> None:
    """Make the three streams usable, whatever the caller did to them.

    A closed one becomes /dev/null: else the next file opened gets its number, and the words of a library
    end up in it. No character stops a print: bytes of file names go out as they came in, what an encoding
    lacks is written as `\\u4e2d`.
    """
    for number, (name, mode) in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)
            if opened != number:
                os.close(opened)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        unicode = sys.stdout.encoding.lower().replace("-", "") == "utf8"
        sys.stdout.reconfigure(errors="surrogateescape" if unicode else "backslashreplace")


def legible(text: str) -> str:
    """`text` with what a terminal would obey or hide written out: a stranger's file may hold anything."""
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line for people on stderr (or `stream`); that nobody can hear it is no reason to stop."""
    with suppress(OSError, ValueError):
        print(legible(text), file=stream or sys.stderr, flush=True)


def flush() -> bool:
    """Flush stdout and stderr; whether stdout took everything."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return False
    return True
