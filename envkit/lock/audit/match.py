"""conda's match specs, by rattler's own reading of them. rattler is imported when the first one is asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rattler import MatchSpec, PackageRecord

__all__ = ["Candidate", "Unreadable", "allows", "matches", "spec_name", "spec_version"]


class Unreadable(Exception):
    """A match spec or version that is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """What a match spec is held against."""

    name: str
    version: str
    build: str
    subdir: str


def matches(spec: str, candidate: Candidate) -> bool:
    """Whether `name version build` allows a package. Raises Unreadable for what is no spec or no version."""
    found = _spec(spec).matches(_record(candidate))
    return bool(found)


def allows(constraint: str, version: str) -> bool:
    """Whether a version constraint (">=2.17,<3.0.a0"; empty for any) allows a version."""
    from rattler import Version, VersionSpec

    text = constraint.split(" ")[0] if constraint.strip() else "*"
    try:
        return bool(VersionSpec(text).matches(Version(version)))
    except Exception as problem:
        raise Unreadable(str(problem)) from None


def spec_name(spec: str) -> str:
    """The name that a match spec is about; empty where it is a pattern."""
    name = _spec(spec).name
    return "" if name is None else str(getattr(name, "normalized", name))


def spec_version(spec: str) -> str:
    """The version constraint of a match spec; empty where it has none."""
    return str(_spec(spec).version or "")


@lru_cache(maxsize=1 << 14)
def _spec(text: str) -> MatchSpec:
    from rattler import MatchSpec

    try:
        return MatchSpec(text, strict=False)
    except Exception as problem:  # rattler has an error class for each part of a spec
        raise Unreadable(str(problem)) from None


@lru_cache(maxsize=1 << 12)
def _record(candidate: Candidate) -> PackageRecord:
    from rattler import PackageRecord
    from rattler.package import BuildString

    number = candidate.build.rpartition("_")[2]
    try:
        return PackageRecord(
            candidate.name,
            candidate.version,
            BuildString(candidate.build),
            int(number) if number.isdecimal() else 0,
            candidate.subdir,
        )
    except Exception as problem:
        raise Unreadable(str(problem)) from None
