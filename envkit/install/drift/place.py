"""Where a prefix was installed, as its own scripts say: another place once the folder was moved or copied."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from envkit.files import open_plain
from envkit.install.drift.records import Record

__all__ = ["made_for"]

_HEAD = 4096
_MOST = 64
_SHEBANG = re.compile(rb"\A#!\s*(/[^\n]*?)/bin/[^/\s\"]+[ \t\r]*(?:\n|\Z|[ \t])")
_TRAMPOLINE = re.compile(rb"\A#!/bin/sh\n'''exec' \"?(/[^\n\"]*?)/bin/[^/\s\"]+\"? ")
_OF_THE_SYSTEM = (b"", b"/usr", b"/usr/local")


def made_for(prefix: Path, records: Sequence[Record]) -> Path | None:
    """The other place that the scripts of `prefix` lead to; None where they lead here or nowhere.

    A place that is this very folder under another name (a symbolic link, a bind mount) is no other.
    """
    named = Counter(_named(prefix, records))
    for place, _count in named.most_common():
        folder = Path(os.fsdecode(place))
        if not _same(folder, prefix):
            here = sum(count for other, count in named.items() if _same(Path(os.fsdecode(other)), prefix))
            # A script of the user's own may start any interpreter; a moved prefix has hardly one that fits.
            return folder if named[place] > here else None
    return None


def _named(prefix: Path, records: Sequence[Record]) -> Iterator[bytes]:
    """The prefixes in the first lines of the scripts in `bin` that packages brought."""
    scripts = (row.path for record in records for row in record.rows if row.path.startswith("bin/"))
    found = 0
    for path in scripts:
        try:
            file = prefix / path
            if file.is_symlink():
                continue
            with open_plain(file) as opened:
                head = opened.read(_HEAD)
        except OSError:
            continue
        match = _TRAMPOLINE.match(head) or _SHEBANG.match(head)
        if match and match.group(1) not in _OF_THE_SYSTEM:
            yield match.group(1)
            found += 1
            if found >= _MOST:
                return


def _same(place: Path, prefix: Path) -> bool:
    try:
        return place.samefile(prefix)
    except (OSError, ValueError):
        return str(place) == str(prefix)
