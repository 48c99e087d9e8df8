"""What a failed solve lacks: a name, a version, a build, a machine's property, or a channel's turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from envkit.channels import shown as shown_url
from envkit.matrix.nearest import listing, nearest_versions
from envkit.messages import _
from envkit.model import VirtualPackage
from envkit.solve.conflict import name_of
from envkit.solve.engine import Index, Solved, compare_versions, parts_of
from envkit.solve.import_names import meant_by
from envkit.solve.reason import Reason

__all__ = ["Lack", "lacks"]

_SHOWN = 3
_SOUGHT = 5
"""Unknown names for which the one that may be meant is looked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lack:
    """One thing that is not there.

    `kind` says what of `spec` nothing has: its "name", "version", "build", a property of the "machine"; or
    "priority", where `channel` has it and strict priority takes the name from `taken_from`. `nearest` holds
    what there is instead.
    """

    kind: Literal["name", "version", "build", "machine", "priority"]
    spec: str
    channel: str = ""
    taken_from: str = ""
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        there = listing(self.nearest)
        if self.kind == "name":
            return _("{channel} has no package '{name}'").format(
                channel=self.channel, name=self.spec.split()[0]
            ) + (_("; it has {there}").format(there=there) if there else "")
        if self.kind == "version":
            return _("{channel} has no {spec}; the nearest versions are {there}").format(
                channel=self.channel, spec=self.spec, there=there
            )
        if self.kind == "build":
            return _("{channel} has no such build of {spec}; there are {there}").format(
                channel=self.channel, spec=self.spec, there=there
            )
        if self.kind == "machine":
            if not there:
                return _(
                    "{spec} is asked for, which the machines of this platform are not said to have"
                ).format(spec=self.spec)
            return _("{spec} is asked for, the machines of this platform are said to have {there}").format(
                spec=self.spec, there=there
            )
        return _(
            "{channel} has {spec}, but {taken_from} comes first and has a package of that name: "
            "strict priority takes it from there alone"
        ).format(channel=self.channel, spec=self.spec, taken_from=self.taken_from)

    def to_json(self) -> Mapping[str, Any]:
        return {
            "kind": self.kind,
            "spec": self.spec,
            "channel": shown_url(self.channel),
            "taken_from": shown_url(self.taken_from),
            "nearest": list(self.nearest),
        }


def lacks(
    index: Index, virtual_packages: Sequence[VirtualPackage], reason: Reason, specs: Sequence[str] = ()
) -> tuple[Lack, ...]:
    """What the solver found nothing for, looked up in the channels; the most decisive first.

    The solver names one of them and stops: the names among `specs` that no channel has are all found.
    """
    found = [_hidden(index, excluded.name, excluded.channel) for excluded in reason.excluded]
    found += [_lack(index, virtual_packages, spec) for spec in reason.missing]
    told = {lack.spec.split(" ")[0] for lack in found}
    unknown = [spec for spec in specs if (name := name_of(spec)) not in index.names and name not in told]
    found += [
        _unknown(index, spec, look=number < _SOUGHT)
        for number, spec in enumerate(unknown)
        if not spec.startswith("__")
    ]
    order = ("name", "version", "build", "priority", "machine")
    return tuple(sorted(dict.fromkeys(found), key=lambda lack: order.index(lack.kind)))


def _unknown(index: Index, spec: str, *, look: bool = True) -> Lack:
    name = name_of(spec)
    nearest: tuple[str, ...] = ()
    if look:
        meant = meant_by(name)
        nearest = (meant,) if meant is not None and meant in index.names else index.alike(name)
    return Lack(kind="name", spec=spec.removesuffix(" *"), channel=listing(index.channels), nearest=nearest)


def _hidden(index: Index, name: str, url: str) -> Lack:
    channels = list(index.records(name))
    channel = index.named(url)
    taken_from = next((other for other in channels if other != channel), "")
    return Lack(kind="priority", spec=name, channel=channel, taken_from=taken_from)


def _lack(index: Index, virtual_packages: Sequence[VirtualPackage], spec: str) -> Lack:
    name, version, build = parts_of(spec)
    shown = spec.removesuffix(" *")
    if name.startswith("__"):
        own = tuple(f"{one.name} {one.version}" for one in virtual_packages if one.name == name)
        return Lack(kind="machine", spec=shown, nearest=own)
    channels = index.records(name)
    if not channels:
        return _unknown(index, spec)
    first, *lower = channels
    records = channels[first]
    for channel in lower:
        if index.has(spec, channel):
            return Lack(kind="priority", spec=shown, channel=channel, taken_from=first)
    fitting = index.matching(f"{name} {version}") if version else records
    if build and fitting:
        return Lack(
            kind="build",
            spec=f"{name} {version or ''}".strip(),
            channel=first,
            nearest=_builds(fitting, build),
        )
    versions = compare_versions(sorted({record.version for record in records}))
    wanted = "".join(letter for letter in version or "" if letter.isdigit() or letter == ".").strip(".")
    return Lack(
        kind="version", spec=shown, channel=first, nearest=nearest_versions(wanted, versions)[:_SHOWN]
    )


def _builds(records: Iterable[Solved], wanted: str) -> tuple[str, ...]:
    """The builds of the highest version, without their hashes and numbers; those of the kind wanted first."""
    kinds: dict[str, None] = {}
    every = sorted(records, key=lambda record: record.build_number, reverse=True)
    highest = compare_versions(sorted({record.version for record in every}))[0]
    for record in every:
        if record.version == highest:
            kinds.setdefault(f"{record.version} {record.build}")
    cuda = "cuda" in wanted
    return tuple(sorted(kinds, key=lambda kind: ("cuda" in kind) != cuda)[:_SHOWN])
