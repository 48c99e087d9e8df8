"""Combinations of packages that are known not to work: data/bad_combos.yaml, read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from envkit.files import load_yaml
from envkit.model import Severity

__all__ = ["Combo", "Part", "combo_rows", "locked_combos"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One package of a combination: a conda constraint on its version, a glob on its build, its channel."""

    version: str | None = None
    build: str | None = None
    channel: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Combo:
    """A combination that can be seen in a lock.

    `parts` are by conda name, "torch" for PyTorch however it comes. `platforms` is None for all of them.
    `glibc` limits the trouble to machines whose glibc is older. `pin` is the remedy.
    """

    id: str
    severity: Severity
    symptom: str
    pin: str
    source: str
    parts: Mapping[str, Part] = field(default_factory=dict)
    platforms: frozenset[str] | None = None
    glibc: str | None = None


@cache
def combo_rows() -> tuple[dict[str, Any], ...]:
    """The rows of the table, as they stand there."""
    text = (resources.files("envkit") / "data" / "bad_combos.yaml").read_text(encoding="utf-8")
    return tuple(load_yaml(text)["rules"])


@cache
def locked_combos() -> tuple[Combo, ...]:
    """The combinations that can be seen in a lock."""
    return tuple(_combo(row, row["locked"]) for row in combo_rows() if "locked" in row)


def _combo(row: dict[str, Any], locked: dict[str, Any]) -> Combo:
    return Combo(
        id=row["id"],
        severity=Severity(row["severity"]),
        symptom=row.get("symptom", row["when"]),
        pin=row["pin"],
        source=row["source"],
        parts={name: Part(**conditions) for name, conditions in locked["packages"].items()},
        platforms=frozenset(locked["platforms"]) if "platforms" in locked else None,
        glibc=locked.get("glibc"),
    )
