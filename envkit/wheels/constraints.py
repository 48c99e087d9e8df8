"""From the wheel world's words to conda's: names, versions, version constraints, tags.

PEP 440 is https://packaging.python.org/en/latest/specifications/version-specifiers/, conda's match
specifications https://conda.org/learn/ceps/cep-0029/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

__all__ = [
    "accelerator_label", "build_label", "conda_name", "conda_version", "glibc_floor", "match_spec",
    "parse_requirement",
]  # fmt: skip

_CONDA_NAMES = {"torch": "pytorch"}

_OLD_MANYLINUX = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
"""The glibc that the names of PEP 513, 571 and 599 stand for."""

_MANYLINUX = re.compile(r"(?P<old>manylinux(?:1|2010|2014))_|manylinux_(?P<major>\d+)_(?P<minor>\d+)_")


def conda_name(distribution: str) -> str:
    """The conda package that holds a distribution: `Torch` is `pytorch`, others keep their normal form."""
    name = canonicalize_name(distribution)
    return _CONDA_NAMES.get(name, name)


def conda_version(version: str) -> str:
    """The version without its local part, which goes into the build string."""
    return Version(version).public


def build_label(version: str) -> str:
    """The local part of a version as a word of a build string: "cpu" of 2.13.0+cpu, "cuda130" of +cu130."""
    return accelerator_label(Version(version).local or "")


def accelerator_label(accelerator: str) -> str:
    """The same of an accelerator: "cpu" is "cpu", "cu126" is "cuda126"."""
    word = re.sub(r"[^a-z0-9]+", "_", accelerator)
    return re.sub(r"^cu(?=\d)", "cuda", word)


def parse_requirement(text: str) -> Requirement | None:
    """A requirement, or None where it is written in a way that PEP 508 no longer allows."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def match_spec(name: str, specifiers: SpecifierSet) -> str:
    """A conda match spec for a distribution: `numpy~=1.26.1,!=1.26.3` is `numpy >=1.26.1,1.26.*,!=1.26.3`.

    A local version that is asked for becomes a constraint on the build string.
    """
    constraints: list[str] = []
    builds: list[str] = []
    for specifier in sorted(specifiers, key=str):
        constraints += _constraints(specifier)
        if specifier.operator in ("==", "===") and (label := _label(specifier.version)):
            builds.append(f"{label}_*")
    words = [conda_name(name)]
    if constraints:
        words.append(",".join(constraints))
    if constraints and builds:
        words.append(builds[0])
    return " ".join(words)


def _constraints(specifier: Specifier) -> Iterable[str]:
    operator, text = specifier.operator, specifier.version
    if text.endswith(".*"):
        return [text if operator == "==" else f"!={text}"]
    try:
        version = Version(text)
    except InvalidVersion:
        return [f"=={text}"] if operator == "===" else []
    public = version.public
    if operator == "~=":
        series = ".".join(str(part) for part in version.release[:-1])
        epoch = f"{version.epoch}!" if version.epoch else ""
        return [f">={public}", f"{epoch}{series}.*"]
    if operator == "<" and not (version.is_prerelease or version.is_postrelease):
        # PEP 440's <2 leaves 2.0rc1 out; conda's does not, but for this ending.
        return [f"<{public}a0"]
    if operator == "===":
        return [f"=={public}"]
    return [f"{operator}{public}"]


def _label(version: str) -> str:
    try:
        return build_label(version)
    except InvalidVersion:
        return ""


def glibc_floor(platforms: Iterable[str]) -> str | None:
    """The oldest glibc that a wheel's platform tags ask for ("2.28"); None where they name none."""
    floors = []
    for platform in platforms:
        if found := _MANYLINUX.match(platform):
            old = found["old"]
            floors.append(_OLD_MANYLINUX[old] if old else (int(found["major"]), int(found["minor"])))
    if not floors:
        return None
    major, minor = min(floors)
    return f"{major}.{minor}"
