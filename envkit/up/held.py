"""Why a package that was to be updated stayed where it is."""

from __future__ import annotations

from collections.abc import Collection

from envkit.messages import _
from envkit.model import Lock, Package, Spec
from envkit.solve.engine import Index
from envkit.solve.shelf import Shelf

__all__ = ["held_by"]

_MOST = 3


def held_by(spec: Spec, locked: Lock, names: Collection[str], shelf: Shelf) -> tuple[str, ...]:
    """A sentence for each of the packages: what keeps it from moving on the first platform that has it."""
    told = []
    for name in names:
        package = next((one for one in locked.packages if one.name == name), None)
        if package is not None and package.manager == "conda":
            told.append(_held(spec, locked, package, shelf))
    return tuple(told)


def _held(spec: Spec, locked: Lock, package: Package, shelf: Shelf) -> str:
    from envkit.solve.condalock import open_request
    from envkit.solve.engine import compare_versions

    name, version = package.name, package.version
    index = shelf.index(spec.channels, package.platform)
    newer = index.matching(f"{name} >{version}")
    if not newer:
        return _("{name} {version} is the newest that the channels have").format(name=name, version=version)
    urls = {record.url for record in newer}

    def admits(constraint: str) -> bool:
        return any(record.url in urls for record in index.matching(f"{name} {constraint}"))

    versions = ", ".join(compare_versions(sorted({record.version for record in newer}))[:_MOST])
    with open_request(spec) as request:
        specs = [one for one in request.match_specs(package.platform) if one.partition(" ")[0] == name]
    for asked in specs:
        if not admits(asked.partition(" ")[2] or "*"):
            return _("{name} {version} is the newest that `{spec}` allows; there is {newer}").format(
                name=name, version=version, spec=asked, newer=versions
            )
    for other in locked.on(package.platform):
        constraint = other.depends.get(name)
        if constraint and not admits(constraint):
            return _("{other} {its} needs {name} {constraint}, so {name} stays at {version}").format(
                other=other.name, its=other.version, name=name, constraint=constraint, version=version
            )
    newest = compare_versions(sorted({record.version for record in newer}))[0]
    unmet = [
        {need for need in record.depends if _excludes(need, locked, package.platform, index)}
        for record in newer
        if record.version == newest
    ]
    if common := sorted(set.union(*unmet) if all(unmet) else (), key=_python_first):
        return _("{name} stays at {version}: {newest} needs {need}").format(
            name=name, version=version, newest=newest, need=common[0]
        )
    return _("{name} stays at {version}: no newer one ({newer}) goes with the other packages").format(
        name=name, version=version, newer=versions
    )


def _excludes(need: str, locked: Lock, platform: str, index: Index) -> bool:
    """Whether the locked package of the name does not meet what another needs."""
    name = need.partition(" ")[0]
    own = next((one for one in locked.on(platform) if one.name == name and one.manager == "conda"), None)
    return own is not None and all(record.url != own.url for record in index.matching(need))


def _python_first(need: str) -> tuple[bool, str]:
    return not need.startswith("python "), need
