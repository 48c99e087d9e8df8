"""One change that makes an unsolvable spec solvable, found by trying: no guess is ever proposed.

Tried in this order, within a time limit: the order of channels, one more channel, another CUDA version, what
the machine is said to have, one constraint less, two constraints less.
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
from envkit.solve.engine import Index, Solved, Unsolvable, parts_of
from envkit.solve.missing import Lack
from envkit.solve.reason import parse_reason
from envkit.solve.shelf import Shelf

__all__ = ["SECONDS", "Proposal", "propose"]

SECONDS = 2.0
"""Time spent on looking for a proposal."""

_MORE_CHANNELS = ("conda-forge",)
_CUDA_CHOICE = ("pytorch-cuda", "cuda-version", "pytorch-gpu", "cpuonly")
"""Packages whose constraint is the accelerator that was asked for: never dropped, only changed together."""
_TIED_TO_TORCH = ("torchvision", "torchaudio")


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A change after which the spec solves. `kind` is "channels", "cuda", "machine" or "specs"."""

    kind: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


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
) -> Proposal | None:
    """The first change that was seen to work; None where none was found in time."""
    failed = _Failed(
        spec=spec,
        specs=tuple(specs),
        index=index,
        shelf=shelf,
        lacks=lacks,
        text=text,
        until=time.monotonic() + seconds,
    )
    for way in (_other_order, _more_channels, _other_cuda, _other_machine, _fewer_constraints):
        proposal = way(failed)
        if proposal is not None:
            return proposal
    return None


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
        least = (version or "").lstrip(">=")
        if lack.kind != "machine" or not re.fullmatch(r"[\d.]+", least):
            continue
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
    parts = []
    for spec, instead in relaxed.items():
        if instead:
            name = instead.split(" ")[0]
            parts.append(
                _("{name} {version} in place of `{spec}`").format(
                    name=name, version=_version_of(solved, name), spec=spec
                )
            )
        else:
            parts.append(_("no {name}").format(name=spec.split(" ")[0]))
    return Proposal(
        kind="specs",
        text=_("it solves with {changes}").format(changes=_(" and ").join(parts)),
        data={"relaxed": dict(relaxed)},
    )


def _version_of(solved: Sequence[Solved], *names: str) -> str:
    return next((package.version for package in solved if package.name in names), "-")
