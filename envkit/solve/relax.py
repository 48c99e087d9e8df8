"""One change that makes an unsolvable spec solvable, found by trying: no guess is ever proposed.

Tried in this order, within a time limit: the order of channels, one more channel, the names that were meant,
another PyTorch for the same CUDA version, what the machine is said to have, another CUDA version, one
constraint less, two constraints less.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envkit.errors import Error
from envkit.lock import TORCH_NAMES
from envkit.matrix.nearest import nearest_versions
from envkit.messages import _
from envkit.model import Spec, VirtualPackage
from envkit.solve.conflict import name_of
from envkit.solve.engine import Index, Solved, Unsolvable, compare_versions, parts_of
from envkit.solve.missing import Lack
from envkit.solve.reason import parse_reason
from envkit.solve.shelf import Shelf

__all__ = ["SECONDS", "Proposal", "propose"]

SECONDS = 2.0
"""Time spent on looking for a proposal."""

_MORE_CHANNELS = ("conda-forge",)
_MOST_NAMES = 5
_CUDA_CHOICE = ("pytorch-cuda", "cuda-version", "pytorch-gpu", "cpuonly")
"""Packages whose constraint is the accelerator that was asked for: never dropped, only changed together."""
_TORCH_IN_NAME = re.compile(r"\bpt(\d)(\d+)\b")
_AT_LEAST = re.compile(r">=([\d.]*\d)")
_TIED_TO_TORCH = ("torchvision", "torchaudio")


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A change after which the spec solves. `kind` is "channels", "cuda", "machine" or "specs".

    `options` are those of the command line that make the whole change, none where they cannot.
    """

    kind: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def to_json(self) -> Mapping[str, Any]:
        return {"kind": self.kind, "text": self.text, **self.data}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Failed:
    """The request that does not solve, and until when other ones may be tried."""

    spec: Spec
    specs: tuple[str, ...]
    index: Index
    shelf: Shelf
    lacks: tuple[Lack, ...]
    text: str
    until: float

    @property
    def virtual_packages(self) -> tuple[VirtualPackage, ...]:
        return self.spec.virtual_packages[self.index.platform]

    def left(self) -> float:
        return self.until - time.monotonic()

    def solves(
        self,
        specs: Sequence[str] | None = None,
        *,
        index: Index | None = None,
        virtual_packages: Sequence[VirtualPackage] | None = None,
    ) -> tuple[Solved, ...] | Unsolvable | None:
        """The solution of a changed request, why there is none, or None once the time is over."""
        left = self.left()
        if left <= 0:
            return None
        try:
            return (index or self.index).solve(
                self.specs if specs is None else specs,
                self.virtual_packages if virtual_packages is None else virtual_packages,
                limit=left,
            )
        except Unsolvable as problem:
            return problem


def propose(
    spec: Spec,
    specs: Sequence[str],
    index: Index,
    shelf: Shelf,
    lacks: tuple[Lack, ...],
    text: str,
    *,
    seconds: float = SECONDS,
) -> tuple[Proposal, ...]:
    """The first change that was seen to work, none where none was found in time.

    Where that is another machine there is a second one, for those who cannot choose it.
    """
    failed = _Failed(
        spec=spec,
        specs=tuple(specs),
        index=index,
        shelf=shelf,
        lacks=lacks,
        text=text,
        until=time.monotonic() + seconds,
    )
    found: list[Proposal] = []
    if sum(lack.kind == "name" for lack in lacks) > _MOST_NAMES:
        return ()  # no small change helps
    ways = (
        _other_order,
        _more_channels,
        _right_names,
        _other_torch,
        _other_machine,
        _other_cuda,
        _fewer_constraints,
    )
    for way in ways:
        if found and way is not _other_machine and found[0].kind != "machine":
            continue
        proposal = way(failed)
        if proposal is not None:
            found.append(proposal)
        if len(found) == 2:
            break
    return tuple(found)


def _other_order(failed: _Failed) -> Proposal | None:
    """Channels in another order: what is hidden moves up before what hides it, as often as that helps."""
    order = list(failed.index.channels)
    lacks = [lack for lack in failed.lacks if lack.kind == "priority"]
    for _step in order:
        lack = next((one for one in lacks if one.channel in order and one.taken_from in order), None)
        if lack is None:
            return None
        order.remove(lack.channel)
        order.insert(order.index(lack.taken_from), lack.channel)
        index = failed.shelf.index(order, failed.index.platform)
        answer = failed.solves(index=index)
        if answer is None:
            return None
        if not isinstance(answer, Unsolvable):
            return Proposal(
                kind="channels",
                text=_("it solves with the channels in this order: {channels}").format(
                    channels=", ".join(order)
                ),
                data={"channels": order},
            )
        lacks = _hidden(index, answer)
    return None


def _hidden(index: Index, problem: Unsolvable) -> list[Lack]:
    from envkit.solve.missing import lacks

    return [lack for lack in lacks(index, (), parse_reason(problem.text)) if lack.kind == "priority"]


def _more_channels(failed: _Failed) -> Proposal | None:
    if not any(lack.kind == "name" for lack in failed.lacks):
        return None
    for channel in _MORE_CHANNELS:
        if channel in failed.index.channels:
            continue
        order = [*failed.index.channels, channel]
        try:
            index = failed.shelf.index(order, failed.index.platform)
        except Error:
            continue  # it cannot be read from here; nothing is known of it then
        if isinstance(failed.solves(index=index), tuple):
            return Proposal(
                kind="channels",
                text=_("it solves with {channel} as a further channel, after the others").format(
                    channel=channel
                ),
                data={"channels": order},
            )
    return None


def _right_names(failed: _Failed) -> Proposal | None:
    """What each name that no channel has may be meant for, without those for which nothing is known."""
    unknown = {lack.spec.split(" ")[0]: lack.nearest for lack in failed.lacks if lack.kind == "name"}
    relaxed = {
        spec: next(iter(unknown[name_of(spec)]), "") for spec in failed.specs if name_of(spec) in unknown
    }
    if not 0 < len(relaxed) <= _MOST_NAMES:
        return None
    answer = failed.solves([other for one in failed.specs if (other := relaxed.get(one, one))])
    return _proposal(relaxed, answer) if isinstance(answer, tuple) else None


def _other_torch(failed: _Failed) -> Proposal | None:
    """Another PyTorch of the same build: nearest to what the variant's name says, else to what was asked."""
    for spec in failed.specs:
        name, version, build = parts_of(spec)
        if name not in TORCH_NAMES or not version or not build:
            continue
        minors = {".".join(one.split(".")[:2]) for one in failed.index.versions(f"{name} * {build}")}
        said = _TORCH_IN_NAME.search(failed.spec.variant.name)
        wanted = f"{said[1]}.{said[2]}" if said else "".join(re.findall(r"[\d.]+", version)[:1]).strip(".")
        for minor in nearest_versions(wanted, compare_versions(sorted(minors))):
            relaxed = {spec: f"{name} {minor}.* {build}"}
            if relaxed[spec] == spec:
                continue
            answer = failed.solves([relaxed.get(one, one) for one in failed.specs])
            if answer is None:
                return None
            if isinstance(answer, tuple):
                return _proposal(relaxed, answer)
    return None


def _other_cuda(failed: _Failed) -> Proposal | None:
    cuda = failed.spec.variant.cuda
    if cuda is None:
        return None
    chooser = next((spec.split(" ")[0] for spec in failed.specs if spec.startswith(_CUDA_CHOICE[:2])), None)
    if chooser is None:
        return None
    known = {".".join(version.split(".")[:2]) for version in failed.index.versions(chooser)} - {cuda}
    for other in nearest_versions(cuda, sorted(known)):
        virtual = [
            VirtualPackage(name=one.name, version=other) if one.name == "__cuda" else one
            for one in failed.virtual_packages
        ]
        specs = [_with_cuda(spec, cuda, other) for spec in failed.specs]
        answer = failed.solves(specs, virtual_packages=virtual)
        if answer is None:
            return None
        if isinstance(answer, tuple):
            return Proposal(
                kind="cuda",
                text=_("it solves for CUDA {cuda} (torch {torch})").format(
                    cuda=other, torch=_version_of(answer, *TORCH_NAMES)
                ),
                data={"cuda": other},
                options=(f"--cuda {other}",),
            )
    return None


def _with_cuda(spec: str, cuda: str, other: str) -> str:
    if spec.split(" ")[0] not in (*_CUDA_CHOICE, *TORCH_NAMES):
        return spec
    name, blank, rest = spec.partition(" ")
    tag = re.compile(rf"cu(da)?{cuda.replace('.', '')}(?!\d)")
    rest = re.sub(rf"(?<![\d.]){re.escape(cuda)}(?!\d)", other, rest)
    return name + blank + tag.sub(lambda match: f"cu{match[1] or ''}{other.replace('.', '')}", rest)


def _other_machine(failed: _Failed) -> Proposal | None:
    """Another glibc, macOS or CUDA of the target machine, where that is what is lacking."""
    for lack in failed.lacks:
        name, version, _build = parts_of(lack.spec)
        match = _AT_LEAST.search(version or "")
        if lack.kind != "machine" or match is None:
            continue
        least = match[1]
        virtual = [one for one in failed.virtual_packages if one.name != name]
        answer = failed.solves(virtual_packages=[*virtual, VirtualPackage(name=name, version=least)])
        if isinstance(answer, tuple):
            text = _("it solves for machines with {name} {version} or newer").format(
                name=name.removeprefix("__"), version=least
            )
            return Proposal(kind="machine", text=text, data={"name": name, "version": least})
    return None


def _fewer_constraints(failed: _Failed) -> Proposal | None:
    candidates = list(_constrained(failed))
    single = [(one,) for one in candidates]
    for chosen in (*single, *itertools.combinations(candidates, 2)):
        relaxed = dict(chosen)
        answer = failed.solves([spec for one in failed.specs if (spec := relaxed.get(one, one))])
        if answer is None:
            return None
        if isinstance(answer, tuple):
            return _proposal(relaxed, answer)
    return None


def _constrained(failed: _Failed) -> Iterator[tuple[str, str]]:
    """What may be asked for less strictly, with how: what the solver names first, Python last.

    The build of PyTorch stays demanded: without it a CPU build takes the place of a CUDA one.
    """
    found = []
    for spec in failed.specs:
        name, version, build = parts_of(spec)
        if name in _CUDA_CHOICE:
            continue
        if name in TORCH_NAMES:
            relaxed = f"{name} * {build}" if build else name
        elif version or build:
            relaxed = name
        elif unknown := [lack for lack in failed.lacks if lack.spec.split(" ")[0] == name]:
            # A name that nothing has: the one it may be meant for, or without it altogether.
            relaxed = next(iter(unknown[0].nearest), "")
        else:
            continue
        rank = 3 if name == "python" else 2 if name in TORCH_NAMES else 1 if name in _TIED_TO_TORCH else 0
        lacking = any(lack.spec.split(" ")[0] == name for lack in failed.lacks)
        if relaxed != spec:
            found.append((not lacking, name not in failed.text, rank, spec, relaxed))
    for *_order, spec, relaxed in sorted(found):
        yield spec, relaxed


def _proposal(relaxed: Mapping[str, str], solved: Sequence[Solved]) -> Proposal:
    instead = [
        _("{name} {version} in place of `{spec}`").format(
            name=(name := other.split(" ")[0]), version=_version_of(solved, name), spec=spec
        )
        for spec, other in relaxed.items()
        if other
    ]
    left_out = [spec.split(" ")[0] for spec, other in relaxed.items() if not other]
    if not left_out:
        text = _("it solves with {changes}").format(changes=_(" and ").join(instead))
    elif not instead:
        text = _("it solves without {packages}").format(packages=_(" and ").join(left_out))
    else:
        text = _("it solves with {changes}, and without {packages}").format(
            changes=_(" and ").join(instead), packages=_(" and ").join(left_out)
        )
    options = [_option(other, solved) for other in relaxed.values()]
    return Proposal(
        kind="specs",
        text=text,
        data={"relaxed": dict(relaxed)},
        options=tuple(one for one in options if one) if all(options) else (),
    )


def _option(other: str, solved: Sequence[Solved]) -> str | None:
    """The option that asks for this package in the version that was found."""
    name = other.split(" ")[0]
    option = "--python" if name == "python" else "--torch" if name in TORCH_NAMES else None
    return option and f"{option} {'.'.join(_version_of(solved, name).split('.')[:2])}"


def _version_of(solved: Sequence[Solved], *names: str) -> str:
    return next((package.version for package in solved if package.name in names), "-")
