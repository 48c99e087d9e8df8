"""The known PyTorch releases (data/torch_matrix.yaml), and which of them a combination of axes leaves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from packaging.version import Version

from envkit.files import load_yaml
from envkit.host.drivers import numbers
from envkit.matrix.constraint import Constraint

__all__ = [
    "Release", "known_release", "known_releases", "newest_known", "python_versions", "series_for",
]  # fmt: skip

_PATCHES = 10
"""Patch releases of a known series that are taken to be like the nearest one in the table."""

_SERIES_AHEAD = 12
"""How many minor versions beyond the table a constraint may name; nothing is known of those."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """One torch version and the Python minor versions it is for; `last_python` None means not known."""

    torch: str
    first_python: str
    last_python: str | None
    torchvision: str | None = None
    torchaudio: str | None = None

    def supports(self, python: str) -> bool:
        """Whether the release is, as far as is known, for a Python minor version ("3.11")."""
        own = numbers(python)
        after = self.last_python is not None and own > numbers(self.last_python)
        return own >= numbers(self.first_python) and not after


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    text = (resources.files("envkit") / "data" / "torch_matrix.yaml").read_text(encoding="utf-8")
    return tuple(load_yaml(text)["releases"])


@cache
def known_releases() -> tuple[Release, ...]:
    """Every release a constraint may mean, oldest first.

    Beside the rows of the table these are further patch releases of the same series, and the series after
    the last, of which only the oldest Python is known (that bound never goes down again).
    """
    found: dict[Version, Release] = {}
    first_python = "0"
    for row in _rows():
        python = row["python"] or {}
        first_python = python.get("min", first_python)
        series = Version(row["torch"])
        for patch in range(series.micro, _PATCHES):
            version = f"{series.major}.{series.minor}.{patch}"
            found[Version(version)] = Release(
                torch=version,
                first_python=first_python,
                last_python=python.get("experimental", python.get("max")),
                torchvision=row["torchvision"] if patch == series.micro else None,
                torchaudio=row["torchaudio"] if patch == series.micro else None,
            )
    newest = max(found)
    for minor in range(newest.minor + 1, newest.minor + 1 + _SERIES_AHEAD):
        version = f"{newest.major}.{minor}.0"
        found[Version(version)] = Release(torch=version, first_python=first_python, last_python=None)
    return tuple(found[version] for version in sorted(found))


def known_release(torch: str) -> Release | None:
    """The release of exactly this version, if the table has a row or a neighbour for it."""
    return next((release for release in known_releases() if release.torch == torch), None)


@cache
def python_versions() -> tuple[str, ...]:
    """The Python minor versions that some release in the table is for, oldest first."""
    ends = [
        row["python"][end]
        for row in _rows()
        if row["python"]
        for end in ("min", "max", "experimental")
        if row["python"].get(end)
    ]
    minors = sorted(numbers(end)[1] for end in ends)
    return tuple(f"3.{minor}" for minor in range(minors[0], minors[-1] + 1))


def series_for(cuda: str, python: str, preferred: Constraint) -> str:
    """Which torch to ask for in a build for a CUDA version: a constraint, `preferred` where that has one.

    Else the newest series that was published for it and for a Python minor version; where the table knows of
    no build for that CUDA, `preferred` as well.
    """
    rows = [row for row in _rows() if cuda in (row["cuda"] or ())]
    if not rows or any(preferred.admits(row["torch"]) for row in rows):
        return preferred.text
    fitting = [row for row in rows if (found := known_release(row["torch"])) and found.supports(python)]
    newest = max(Version(row["torch"]) for row in fitting or rows)
    return f"{newest.major}.{newest.minor}.*"


def newest_known() -> str:
    """The newest torch release in the table."""
    return str(max(Version(row["torch"]) for row in _rows()))
