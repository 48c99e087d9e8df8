"""What the packages ask of a machine: virtual packages, glibc, the driver, the processor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from envkit.host.drivers import driver_floor, numbers
from envkit.lock.audit.cuda import runtime
from envkit.lock.audit.match import spec_name, spec_version
from envkit.lock.audit.rule import Facts, Result, Subject, good, rule
from envkit.lock.audit.torch import combos_in
from envkit.messages import _
from envkit.model import Package, Severity

__all__ = ["Need", "cpu_level_needed", "needs", "needs_of"]

_LEAST = re.compile(r"(?:>=|==?|~=)\s*(\d+(?:\.\d+)*)")
_MANYLINUX = re.compile(r"manylinux(?:_(\d+)_(\d+)|(1|2010|2014))_")
_OLD_MANYLINUX = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
_MICROARCH = "_x86_64-microarch-level"


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """A virtual package and the constraint that one package puts on it (empty: it must be there at all)."""

    name: str
    constraint: str
    package: str

    @property
    def least(self) -> tuple[int, ...]:
        """The lowest version that the constraint can mean; empty where any will do."""
        alternatives = [_LEAST.findall(part) for part in self.constraint.split("|")]
        lowest = [max((numbers(text) for text in texts), default=()) for texts in alternatives]
        return min(lowest, default=())


@rule("lock.needs", Severity.LOW, lambda: "")
def needs(subject: Subject, facts: Facts) -> Result:
    """Never a finding: what each platform's packages need of a machine at least."""
    told, data = [], {}
    for platform in subject.platforms:
        least = _least(subject, facts, platform)
        data[platform] = least
        words = ", ".join(f"{name} {version}".strip() for name, version in least.items())
        told.append(_("{name}: {text}").format(name=platform, text=words or _("nothing")))
    return good(_("the least it needs: {needs}").format(needs="; ".join(told)), needs=data)


def _least(subject: Subject, facts: Facts, platform: str) -> dict[str, str]:
    """The least version of each thing, by a name that people know."""
    found: dict[str, tuple[int, ...]] = {}
    for need in needs_of(subject, facts, platform):
        found[need.name] = max(found.get(need.name, ()), need.least)
    least = {
        _word(name): ".".join(map(str, version))
        for name, version in sorted(found.items())
        if name not in ("__unix", "__win", "__linux") or version
    }
    packages = [entry.package for entry in subject.on(platform)]
    cuda = runtime(packages)
    floor = driver_floor(cuda) if cuda else None
    if floor is not None:
        least["driver"] = floor.driver(windows=platform.startswith("win-"))
    level = cpu_level_needed(packages)
    if level > 1:
        least["cpu"] = f"x86_64_v{level}"
    return least


def _word(name: str) -> str:
    return {"__cuda": "CUDA", "__osx": "macOS", "__win": "Windows"}.get(name, name.removeprefix("__"))


def needs_of(subject: Subject, facts: Facts, platform: str) -> Iterator[Need]:
    """Every need of one platform's packages, what only channel records and wheel tags tell included."""
    for entry in subject.on(platform):
        package = entry.package
        for name, constraint in package.depends.items():
            if name.startswith("__"):
                yield Need(name=name, constraint=constraint, package=package.name)
        yield from _by_record(package, facts)
        floor = _wheel_floor(package)
        if floor is not None:
            yield Need(name="__glibc", constraint=f">={floor}", package=package.name)
    for combo, entries in combos_in(subject, platform):
        if combo.glibc is not None:
            yield Need(name="__glibc", constraint=f">={combo.glibc}", package=entries[-1].package.name)


def _by_record(package: Package, facts: Facts) -> Iterator[Need]:
    record = facts.records.of(package) if facts.records else None
    if record is None:
        return
    for spec in (*record.depends, *record.constrains):
        if spec.startswith("__"):
            yield Need(name=spec_name(spec), constraint=spec_version(spec), package=package.name)


def _wheel_floor(package: Package) -> str | None:
    """The oldest glibc that a wheel's platform tags allow: the least demanding of several decides."""
    if package.manager != "pip" or not package.file_name.endswith(".whl"):
        return None
    floors = []
    for major, minor, old in _MANYLINUX.findall(package.file_name.rpartition("-")[2]):
        floors.append((int(major), int(minor)) if major else _OLD_MANYLINUX[old])
    return "{}.{}".format(*min(floors)) if floors else None


def cpu_level_needed(packages: list[Package]) -> int:
    """The x86-64 level that the packages are built for; 1 is any such processor.

    conda-forge pins it with a package whose version is the level:
    https://conda-forge.org/docs/how-to/advanced/microarch/
    """
    by_name: Mapping[str, Package] = {package.name: package for package in packages}
    own = by_name.get(_MICROARCH)
    first = own.version.partition(".")[0] if own else "1"
    return int(first) if first.isdecimal() else 1
