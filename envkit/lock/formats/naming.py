"""What to call the environment of a file that gives it no usable name."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["environment_name"]

_GENERIC = {"environment", "env", "conda", "requirements", "pixi", "explicit", "spec-file", "conda-lock"}


def environment_name(written: str | None, path: Path) -> str:
    """A name safe as a folder: the one written, else the file's, else its folder's."""
    stem = path.name.partition(".")[0]
    for candidate in (written, stem if stem.lower() not in _GENERIC else path.absolute().parent.name, stem):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", candidate or "").strip("-.")
        if name:
            return name
    return "environment"
