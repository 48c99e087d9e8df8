"""Whether the packages of each platform need only each other: names, then version constraints.

conda-lock's format keeps the name and the version constraint of a dependency. It loses build strings and
`constrains`; `envkit.lock.audit.channel` judges those by the channel's own records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envkit.lock.audit.match import Candidate, Unreadable, matches
from envkit.lock.audit.rule import Facts, Finding, Result, Subject, about, conda_key, found, rule, skipped
from envkit.lock.pypi_names import conda_name
from envkit.lock.read import Entry
from envkit.messages import _
from envkit.model import Package, Severity
from envkit.render import virtual_names

__all__ = ["closure", "constraints", "pip_closure"]


def _lock_again() -> str:
    return _("lock the environment.yml again: packages were taken out, added or changed by hand")


@rule("lock.closure", Severity.FATAL, _lock_again)
def closure(subject: Subject, facts: Facts) -> Result:
    """Every dependency of a conda package is there, or is a virtual package that the platform can have."""
    return found(_missing(subject), _("every dependency is among the packages"))


def _missing(subject: Subject) -> Iterator[Finding]:
    for platform in subject.platforms:
        here, virtual = subject.conda(platform), virtual_names(platform)
        for entry in subject.on(platform):
            for name in entry.package.depends:
                if conda_key(name) in here:
                    continue
                if not name.startswith("__"):
                    text = _("{package} needs {name}, which is not among the packages for {platform}")
                elif name not in virtual:
                    text = _("{package} needs {name}, which no machine of {platform} has")
                else:
                    continue
                yield about(
                    entry,
                    text.format(package=entry.package.name, name=name, platform=platform),
                    key=f"dependencies.{name}",
                )


@rule("lock.constraints", Severity.FATAL, _lock_again)
def constraints(subject: Subject, facts: Facts) -> Result:
    """Every dependency is there in a version that its dependant allows."""
    if facts.records is None:
        summary = _(
            "every version constraint is kept (the format has no build strings: --records compares those too)"
        )
    else:
        summary = _("every version constraint is kept")
    return found(_violated(subject), summary)


def _violated(subject: Subject) -> Iterator[Finding]:
    for platform in subject.platforms:
        here = {name: candidate(entry.package) for name, entry in subject.conda(platform).items()}
        for entry in subject.on(platform):
            for name, constraint in entry.package.depends.items():
                other = here.get(conda_key(name))
                if other is None or not constraint.strip():
                    continue
                yield from _judged(entry, name, constraint, other)


def _judged(entry: Entry, name: str, constraint: str, other: Candidate) -> Iterator[Finding]:
    key = f"dependencies.{name}"
    try:
        if matches(f"{name} {constraint}", other):
            return
    except Unreadable as problem:
        text = _("the constraint '{constraint}' on {name} cannot be read: {reason}")
        yield about(
            entry,
            text.format(constraint=constraint, name=name, reason=problem),
            key=key,
            severity=Severity.MEDIUM,
        )
        return
    text = _("{package} {version} needs {name} {constraint}, but {other} is there, on {platform}")
    yield about(
        entry,
        text.format(
            package=entry.package.name,
            version=entry.package.version,
            name=name,
            constraint=constraint,
            other=f"{other.version} {other.build}".strip(),
            platform=entry.package.platform,
        ),
        key=key,
    )


def candidate(package: Package) -> Candidate:
    """A package of the lock as something that a constraint may allow or not."""
    return Candidate(name=package.name, version=package.version, build=package.build, subdir=package.platform)


@rule(
    "lock.pip-closure",
    Severity.MEDIUM,
    lambda: _("run `pip check` once it is installed; where that complains, lock again"),
)
def pip_closure(subject: Subject, facts: Facts) -> Result:
    """The same for pip packages, which conda packages may serve.

    Milder, because the format has no environment markers: a dependency that is for another Python or system
    alone stands there like the others.
    """
    if not any(entry.package.manager == "pip" for entry in subject.draft.entries):
        return skipped(_("no package comes by pip"))
    return found(_pip_problems(subject), _("every pip dependency is there in a version that is allowed"))


def _pip_problems(subject: Subject) -> Iterator[Finding]:
    for platform in subject.platforms:
        pip = {
            canonicalize_name(entry.package.name): entry.package
            for entry in subject.on(platform)
            if entry.package.manager == "pip"
        }
        conda = {name: entry.package for name, entry in subject.conda(platform).items()}
        for entry in subject.on(platform):
            if entry.package.manager != "pip":
                continue
            for name, constraint in _pip_depends(entry.raw).items():
                other = pip.get(canonicalize_name(name)) or conda.get(conda_name(name))
                words = {"package": entry.package.name, "name": name, "platform": platform}
                if other is None:
                    text = _("{package} may need {name}, which is not among the packages for {platform}")
                    yield about(entry, text.format(**words), key=f"dependencies.{name}")
                elif _allows(constraint, other.version) is False:
                    text = _("{package} needs {name} {constraint}, but {version} is there, on {platform}")
                    yield about(
                        entry,
                        text.format(**words, constraint=constraint, version=other.version),
                        key=f"dependencies.{name}",
                    )


def _pip_depends(raw: Mapping[Any, Any]) -> Mapping[str, str]:
    depends = raw.get("dependencies")
    if not isinstance(depends, dict):
        return {}
    return {name: text for name, text in depends.items() if isinstance(name, str) and isinstance(text, str)}


@cache
def _allows(constraint: str, version: str) -> bool | None:
    """Whether a pip constraint as conda-lock writes it allows a version; None where it cannot be read.

    conda-lock writes Poetry's: `*` for any, a bare version for exactly that one, `||` between alternatives.
    """
    try:
        found = Version(version)
        for alternative in constraint.split("||"):
            clauses = [clause.strip() for clause in alternative.split(",") if clause.strip() not in ("", "*")]
            written = ",".join(clause if clause[0] in "=!<>~" else f"=={clause}" for clause in clauses)
            if SpecifierSet(written).contains(found, prereleases=True):
                return True
    except (InvalidSpecifier, InvalidVersion):
        return None
    return False
