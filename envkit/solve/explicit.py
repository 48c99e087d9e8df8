"""`@EXPLICIT` files: a list of archive URLs with their hashes, which conda and conda-lock exchange.

The format: https://docs.conda.io/projects/conda/en/latest/user-guide/tasks/manage-environments.html
(`conda list --explicit --md5`, and `--sha256` since conda 24.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from envkit.errors import InputError
from envkit.files import read_text
from envkit.messages import _

__all__ = ["Archive", "read_explicit"]

_HASH = re.compile(r"(?:(?P<md5>[0-9a-fA-F]{32})|(?:sha256:)?(?P<sha256>[0-9a-fA-F]{64}))")
_ENDINGS = (".conda", ".tar.bz2")


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """One line of an explicit file. `channel` is the URL above the subdir; one of the hashes is there."""

    url: str
    channel: str
    subdir: str
    name: str
    md5: str | None
    sha256: str | None

    def agrees(self, md5: str | None, sha256: str | None) -> bool:
        """Whether a record with these hashes is the archive of this line."""
        return (self.sha256 or sha256) == sha256 and (self.md5 or md5) == md5


def read_explicit(path: Path) -> tuple[Archive, ...]:
    """The archives an explicit file lists. Raises InputError with the line of what is not one."""
    lines = [line.strip() for line in read_text(path).splitlines()]
    if "@EXPLICIT" not in lines:
        raise InputError(_("not an explicit file: no line says @EXPLICIT"), path=path)
    return tuple(
        _archive(line, path, number)
        for number, line in enumerate(lines, 1)
        if line and not line.startswith("#") and line != "@EXPLICIT"
    )


def _archive(line: str, path: Path, number: int) -> Archive:
    url, _sharp, fragment = line.partition("#")
    parts = urlsplit(url)
    segments = unquote(parts.path).split("/")
    file_name = segments[-1]
    stem = next((file_name.removesuffix(end) for end in _ENDINGS if file_name.endswith(end)), None)
    if stem is None or parts.scheme not in ("https", "http", "file") or ".." in segments or len(segments) < 3:
        raise InputError(_("not the URL of a conda package"), path=path, line=number)
    if stem.count("-") < 2:
        raise InputError(_("not the file name of a conda package"), path=path, line=number)
    found = _HASH.fullmatch(fragment)
    if found is None:
        raise InputError(
            _("no md5 or sha256 after the URL: the archive could not be verified"),
            _("write the file with `conda-lock render --kind explicit`"),
            path=path,
            line=number,
        )
    channel, subdir, _file = url.rsplit("/", 2)
    return Archive(
        url=url,
        channel=channel,
        subdir=subdir,
        name=stem.rsplit("-", 2)[0],
        md5=found["md5"].lower() if found["md5"] else None,
        sha256=found["sha256"].lower() if found["sha256"] else None,
    )
