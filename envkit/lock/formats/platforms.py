"""For which platform a file was written, where its packages give it away."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

__all__ = ["platform_marks"]


def platform_marks(names: Iterable[str]) -> dict[str, str]:
    """The platforms that packages give away, each with the first name that did so."""
    found: dict[str, str] = {}
    for name in names:
        for row in _rows():
            if name in row.get("names", ()) or name.endswith(tuple(row.get("endings", ()))):
                found.setdefault(row["platform"], name)
                break
    return found


@cache
def _rows() -> tuple[Any, ...]:
    text = files("envkit").joinpath("data/platform_marks.yaml").read_text(encoding="utf-8")
    return tuple(yaml.load(text, Loader=yaml.CSafeLoader)["platforms"])
