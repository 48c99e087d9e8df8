"""Names out of a stranger's file: what to call its environment, and which packages have none that can be."""

from __future__ import annotations

import re
from pathlib import Path

from envkit.lock.formats.foreign import Pinned
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["environment_name", "usable"]

_PACKAGE = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.))*")
_PLATFORM = re.compile(r"[a-z]+-[a-z0-9]+")
"""As in every lock (lock/read.py). Both become parts of paths, so they are looked at before anything is."""

_GENERIC = {"environment", "env", "conda", "requirements", "pixi", "explicit", "spec-file", "conda-lock"}


def environment_name(written: str | None, path: Path) -> str:
    """A name safe as a folder: the one written, else the file's, else its folder's."""
    stem = path.name.partition(".")[0]
    for candidate in (written, stem if stem.lower() not in _GENERIC else path.absolute().parent.name, stem):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", candidate or "").strip("-.")
        if name:
            return name
    return "environment"


def usable(package: Pinned, source: Source) -> Pinned:
    """The package itself. Raises InputError with its line where its name or its platform can be none, or
    where its URL holds a password."""
    source.look_for_credentials(package.url, package.line)
    if not _PACKAGE.fullmatch(package.name):
        raise source.refusal(
            f"{_('not a package name')}: {package.name!r}",
            _("make the file again with the tool that wrote it"),
            package.line,
        )
    if not _PLATFORM.fullmatch(package.platform):
        raise source.refusal(
            _("'{platform}' is no platform").format(platform=package.platform),
            _("write linux-64, linux-aarch64, osx-64, osx-arm64 or win-64"),
            package.line,
        )
    return package
