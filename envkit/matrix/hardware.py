"""Whether a machine runs a CUDA build: the driver's floor, the GPUs' architectures, glibc.

Three answers, for *unknown* is never *yes*: it runs, it is not known, it does not. The rules are those of
data/driver_cuda.yaml and data/compute_capability.yaml, the targets of each build data/torch_arch_lists.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources
from typing import Any

from envkit.files import load_yaml
from envkit.host.drivers import driver_floor, numbers
from envkit.matrix.constraint import Constraint, parse_constraint
from envkit.matrix.existence import admitted
from envkit.matrix.layout import Matrix
from envkit.messages import _
from envkit.model import Gpu, Host, Source, Variant

__all__ = ["Answer", "Build", "Verdict", "arch_ok", "build_runs", "driver_ok", "judge"]


class Verdict(IntEnum):
    """Whether a build runs, the better the greater."""

    NO = 0
    UNKNOWN = 1
    YES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A verdict with its reason in one clause (empty where nothing stands in the way)."""

    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """One build of PyTorch, as a lock pins it: "2.3.1" for CUDA "11.8" from a source, for one platform."""

    source: Source
    torch: str
    cuda: str
    platform: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Targets:
    """The GPU code in one build: cubins ("8.6" as (8, 6)), those for exactly one device, and PTX."""

    torch: str
    cuda: str
    cubins: frozenset[tuple[int, int]]
    exact: frozenset[tuple[int, int]]
    ptx: tuple[int, int] | None


def judge(matrix: Matrix, variant: Variant, host: Host) -> Answer:
    """Whether this machine runs a variant: the worst of what glibc, the driver and each GPU say.

    A CPU variant needs glibc only. A driver that could not be read makes a CUDA variant unknown.
    """
    answers = [_platform(variant, host), _glibc(matrix, variant, host)]
    if variant.cuda is not None:
        answers.append(driver_ok(variant.cuda, host))
        answers += [arch_ok(matrix, variant, gpu, host) for gpu in host.gpus]
    worst = min(answers, key=lambda answer: answer.verdict)
    if worst.verdict is not Verdict.YES:
        return worst
    notes = dict.fromkeys(answer.reason for answer in answers if answer.reason)
    return Answer(verdict=Verdict.YES, reason="; ".join(notes))


def arch_ok(matrix: Matrix, variant: Variant, gpu: Gpu, host: Host) -> Answer:
    """Whether a CUDA variant has code for a GPU.

    A cubin for X.Y runs on X.Z with Z >= Y; one with a suffix ("90a") on that device alone; PTX on any
    device from its own on, if the driver is at least as new as the toolkit that made it. Where no build of
    this torch is on record, the nearest one of the same source and CUDA is taken, and the reason says so;
    where there is none, the toolkit's own range can still exclude a GPU but never admit it.
    """
    builds, assumed = _targets(matrix, variant)
    return _covers(builds, assumed, gpu, host, variant.source, variant.cuda or "")


def build_runs(build: Build, gpu: Gpu, host: Host) -> Answer:
    """Whether one build has code for a GPU, by the rules of `arch_ok`."""
    rows = [row for row in _made_of(build.source, build.cuda) if row["platform"] == build.platform]
    exact = [row for row in rows if _constraint(row).admits(build.torch)]
    assumed = any(row.get("verified") is False for row in exact)
    if rows and not exact:
        exact, assumed = [_nearest(rows, build.torch)], True
    targets = tuple(_parsed(row, build.cuda) for row in exact)
    return _covers(targets, assumed, gpu, host, build.source, build.cuda)


def _covers(
    builds: tuple[Targets, ...], assumed: bool, gpu: Gpu, host: Host, source: Source, cuda: str
) -> Answer:
    device = _capability(gpu)
    if device is None:
        return Answer(
            verdict=Verdict.UNKNOWN,
            reason=_("the compute capability of {gpu} could not be read").format(gpu=gpu.name),
        )
    if not builds:
        if _beyond_toolkit(device, cuda):
            return Answer(verdict=Verdict.NO, reason=_no_code(gpu, source, cuda))
        return Answer(
            verdict=Verdict.UNKNOWN,
            reason=_("which GPUs the CUDA {cuda} builds of {source} run on is not on record").format(
                cuda=cuda, source=source
            ),
        )
    if not all(_runs(build, device, host) for build in builds):
        return Answer(verdict=Verdict.NO, reason=_no_code(gpu, source, cuda))
    note = ""
    if assumed:
        note = _("GPU support assumed from torch {torch} of {source}").format(
            torch=builds[-1].torch, source=source
        )
    return Answer(verdict=Verdict.YES, reason=note)


def _no_code(gpu: Gpu, source: Source, cuda: str) -> str:
    return _("{gpu} ({capability}) is not among the GPUs that CUDA {cuda} builds of {source} run on").format(
        gpu=gpu.name, capability=gpu.capability, cuda=cuda, source=source
    )


def _runs(build: Targets, device: tuple[int, int], host: Host) -> bool:
    if device in build.exact:
        return True
    if any(major == device[0] and minor <= device[1] for major, minor in build.cubins):
        return True
    compiles = host.driver_cuda is not None and numbers(host.driver_cuda) >= numbers(build.cuda)
    return build.ptx is not None and device >= build.ptx and compiles


def _platform(variant: Variant, host: Host) -> Answer:
    if host.platform in variant.platforms:
        return Answer(verdict=Verdict.YES)
    return Answer(
        verdict=Verdict.NO,
        reason=_("no CUDA variant is for {platform}").format(platform=host.platform)
        if variant.cuda
        else _("no CPU variant is for {platform}").format(platform=host.platform),
    )


def _glibc(matrix: Matrix, variant: Variant, host: Host) -> Answer:
    floor = matrix.glibc(variant)
    if host.glibc is None or numbers(host.glibc) >= numbers(floor):
        return Answer(verdict=Verdict.YES)
    return Answer(
        verdict=Verdict.NO,
        reason=_("glibc {glibc} is older than the {floor} that {variant} needs").format(
            glibc=host.glibc, floor=floor, variant=variant.name
        ),
    )


def driver_ok(cuda: str, host: Host) -> Answer:
    """Whether the driver runs a CUDA runtime version ("12.4"): its major version's floor decides."""
    floor = driver_floor(cuda)
    major = numbers(cuda)[0]
    if floor is None:
        return Answer(
            verdict=Verdict.UNKNOWN,
            reason=_("which drivers run CUDA {major} is not on record").format(major=major),
        )
    oldest = floor.driver(windows=host.wsl)
    if host.driver is not None:
        if numbers(host.driver) >= numbers(oldest):
            return Answer(verdict=Verdict.YES)
        reason = _("driver {driver} is older than the {oldest} that CUDA {major} needs").format(
            driver=host.driver, oldest=oldest, major=major
        )
        return Answer(verdict=Verdict.NO, reason=reason)
    if host.driver_cuda is not None:
        if numbers(host.driver_cuda)[:1] >= (major,):
            return Answer(verdict=Verdict.YES)
        reason = _("a driver for CUDA {own} does not run CUDA {major}").format(
            own=host.driver_cuda, major=major
        )
        return Answer(verdict=Verdict.NO, reason=reason)
    return Answer(verdict=Verdict.UNKNOWN, reason=_("the driver's version could not be read"))


def _targets(matrix: Matrix, variant: Variant) -> tuple[tuple[Targets, ...], bool]:
    """The builds a variant may come out with, oldest first, and whether any of them is a stand-in."""
    cuda = variant.cuda or ""
    rows = [row for row in _made_of(variant.source, cuda) if row["platform"] in variant.platforms]
    releases = [release.torch for release in admitted(matrix, variant)]
    covered = {release for release in releases if any(_constraint(row).admits(release) for row in rows)}
    exact = [row for row in rows if any(_constraint(row).admits(release) for release in releases)]
    if exact:
        doubtful = len(covered) < len(releases) or any(row.get("verified") is False for row in exact)
        return tuple(_parsed(row, cuda) for row in exact), doubtful
    if not rows or not releases:
        return (), False
    return (_parsed(_nearest(rows, releases[-1]), cuda),), True


def _made_of(source: Source, cuda: str) -> list[dict[str, Any]]:
    """The rows about builds of one source for one CUDA version."""
    return [row for row in _rows() if source in row["sources"] and cuda in row["cuda"]]


def _nearest(rows: list[dict[str, Any]], torch: str) -> dict[str, Any]:
    """The row about the release that is closest to this one."""
    return min(rows, key=lambda row: _distance(numbers(torch), row["torch"]))


def _distance(release: tuple[int, ...], constraint: str) -> tuple[int, int]:
    named = numbers(constraint.lstrip("=!<>~"))
    major, minor = (*release, 0, 0)[:2]
    return abs(named[0] - major), abs(named[1] - minor)


def _parsed(row: dict[str, Any], cuda: str) -> Targets:
    plain = [target for target in row["sm"] if isinstance(target, int)]
    suffixed = [target for target in row["sm"] if not isinstance(target, int)]
    return Targets(
        torch=row["torch"],
        cuda=cuda,
        cubins=frozenset(divmod(target, 10) for target in plain),
        exact=frozenset(divmod(int(target.rstrip("af")), 10) for target in suffixed),
        ptx=divmod(row["ptx"], 10) if row.get("ptx") else None,
    )


def _constraint(row: dict[str, Any]) -> Constraint:
    constraint = parse_constraint(row["torch"])
    assert constraint is not None, row
    return constraint


def _capability(gpu: Gpu) -> tuple[int, int] | None:
    parts = numbers(gpu.capability or "")
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _beyond_toolkit(device: tuple[int, int], cuda: str) -> bool:
    """Whether a toolkit of this version could not make code for the device (PTX left aside).

    A device the table does not have is taken for the nearest one before it.
    """
    architectures = [
        (numbers(capability), row)
        for row in _table("compute_capability.yaml")["architectures"]
        for capability in row["cc"]
    ]
    before = [(capability, row) for capability, row in architectures if capability <= device]
    if not before:
        return True
    _capability_there, row = max(before, key=lambda pair: pair[0])
    first, last = row["first_toolkit"], row["last_toolkit"]
    return bool((first and numbers(cuda) < numbers(first)) or (last and numbers(cuda) > numbers(last)))


def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _table("torch_arch_lists.yaml")["builds"]
    return rows


@cache
def _table(name: str) -> dict[str, Any]:
    text = (resources.files("envkit") / "data" / name).read_text(encoding="utf-8")
    table: dict[str, Any] = load_yaml(text)
    return table
