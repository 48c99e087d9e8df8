"""The head of a lock, read without its packages: two kilobytes instead of a few hundred."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from envkit.errors import InputError
from envkit.files import read_text
from envkit.lock.read import parse_lock

__all__ = ["Head", "locked_version", "read_head"]

_BLOCK = 4096
_LARGEST = 1 << 20
_PACKAGES = b"\npackage:"
_PACKAGE = re.compile(r"^- name: (?P<name>\S+)\n  version: '?(?P<version>[^\s']+)'?$", re.MULTILINE)
"""How conda-lock and envkit begin a package."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """What a lock says of itself before it lists its packages; the fields are those of `Lock`."""

    digest: str | None
    channels: tuple[str, ...]
    platforms: tuple[str, ...]


def read_head(path: Path) -> Head:
    """What the lock in a file says of itself.

    What conda-lock and envkit write has its packages last; the file is then read up to there and the
    packages are not looked at. In any other layout (packages first, JSON, a head that does not parse by
    itself) the whole file is read and checked as `read_lock` does. Raises InputError as that does.
    """
    try:
        cut = _before_packages(path)
        if cut is not None:
            return _head(cut.decode("utf-8-sig") + "package: []\n", path)
    except (InputError, OSError, UnicodeDecodeError):
        pass  # told by the full reader, with the place in the whole file
    return _head(read_text(path), path)


def locked_version(path: Path, names: Collection[str]) -> str | None:
    """The version of the first package of one of these names, for a table of many locks.

    The file is searched, not parsed: None for one that is laid out in another way, or is no text at all.
    """
    try:
        text = read_text(path)
    except InputError:
        return None
    return next((match["version"] for match in _PACKAGE.finditer(text) if match["name"] in names), None)


def _head(text: str, path: Path) -> Head:
    lock = parse_lock(text, path)
    return Head(digest=lock.digest, channels=lock.channels, platforms=lock.platforms)


def _before_packages(path: Path) -> bytes | None:
    """The bytes before the line `package:`, None where there is none within a reasonable distance."""
    read = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            start = max(0, len(read) - len(_PACKAGES))
            read += block
            end = read.find(_PACKAGES, start)
            if end >= 0:
                return read[: end + 1]
            if len(read) > _LARGEST:
                return None
    return None
