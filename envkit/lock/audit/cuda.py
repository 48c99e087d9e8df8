"""Which CUDA the packages of a lock are for: the build that was asked for, one major version throughout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from packaging.utils import canonicalize_name

from envkit.lock.accelerator import TORCH_NAMES, build_cuda, check_accelerator
from envkit.lock.audit.rule import Facts, Finding, Result, Subject, found, good, rule, skipped
from envkit.messages import _
from envkit.model import CPU, Package, Severity

__all__ = ["accelerator", "one_major", "runtime", "torch_of"]

_NAMED_AFTER_CUDA = re.compile(
    r"cuda-(?:version|cudart|cudart-dev|cudart-static|libraries|libraries-dev|runtime|nvrtc|nvrtc-dev|nvtx|"
    r"cupti|nvcc|nvcc-tools|toolkit|tools|compiler|driver-dev|profiler-api|opencl|nvvm-tools|crt-tools|command-line-tools)"
    r"|cudatoolkit(?:-dev)?|pytorch-cuda|libcublas(?:-dev)?|libnvjitlink(?:-dev)?"
)
"""Conda packages whose version is CUDA's own, at least in its first number."""

_WHEEL = re.compile(
    r"(?:nvidia-[a-z0-9-]+|cuda-[a-z]+|cupy-cuda|tensorrt)-?cu(?P<one>\d\d)|cupy-cuda(?P<two>\d\d)x?"
)
_WHEEL_VERSION = re.compile(r"nvidia-(?:cuda-(?:runtime|nvrtc|cupti|nvcc)|cublas|nvjitlink)")
"""Wheels of CUDA 13 and later carry no `-cu13`; the version of these is CUDA's own."""


def torch_of(packages: Mapping[str, Package]) -> Package | None:
    """PyTorch among the packages of a platform, by conda or by pip."""
    return next((packages[name] for name in TORCH_NAMES if name in packages), None)


def runtime(packages: list[Package]) -> str | None:
    """The CUDA runtime version that one platform's packages are for ("11.8"); None where they are for none.

    PyTorch's own build decides; then what says it beside it.
    """
    by_name = {package.name: package for package in packages}
    torch = torch_of(by_name)
    if torch is not None and (stated := build_cuda(torch)):
        return stated
    if torch is not None and torch.manager == "conda" and build_cuda(torch) is None:
        return None
    for name in ("pytorch-cuda", "cuda-version", "cudatoolkit", "cuda-cudart"):
        if name in by_name:
            return ".".join(by_name[name].version.split(".")[:2])
    for package in packages:
        if package.manager == "pip" and re.fullmatch(r"nvidia-cuda-runtime(?:-cu\d+)?", package.name):
            return ".".join(package.version.split(".")[:2])
    return None


@rule(
    "lock.accelerator",
    Severity.FATAL,
    lambda: _(
        "lock again with the CUDA build demanded: `envkit lock --file FILE --cuda 12.4`,"
        " or pytorch=*=*cuda* in the spec"
    ),
)
def accelerator(subject: Subject, facts: Facts) -> Result:
    """The builds of PyTorch are those that were asked for; a solver is content with a CPU build."""
    builds = {
        platform: runtime([entry.package for entry in subject.on(platform)]) for platform in subject.platforms
    }
    told = ", ".join(f"{platform} {cuda or CPU}" for platform, cuda in builds.items())
    if facts.accelerator is None:
        return skipped(
            _("nobody said which build was wanted (--cuda); these are: {builds}").format(builds=told),
            builds=builds,
        )
    packages = [entry.package for entry in subject.draft.entries]
    wanted = None if facts.accelerator == CPU else facts.accelerator
    findings = (
        Finding(place="", text=problem, platform=problem.partition(":")[0])
        for problem in check_accelerator(packages, wanted)
    )
    return found(findings, _("the builds are those asked for: {builds}").format(builds=told), builds=builds)


@rule(
    "lock.cuda-major",
    Severity.HIGH,
    lambda: _(
        "pin one: cuda-version={cuda} (conda-forge), pytorch-cuda={cuda} (pytorch), one index for pip"
    ).format(cuda="12.6"),
)
def one_major(subject: Subject, facts: Facts) -> Result:
    """Libraries of two CUDA major versions in one process look up each other's symbols."""
    findings: list[Finding] = []
    majors: dict[str, list[int]] = {}
    for platform in subject.platforms:
        stated = dict(_majors([entry.package for entry in subject.on(platform)]))
        if stated:
            majors[platform] = sorted(set(stated.values()))
        if len(set(stated.values())) > 1:
            findings.append(_mixed(platform, stated))
    if not majors:
        return good(_("nothing in it is for CUDA"))
    told = ", ".join(f"{platform} CUDA {found_there[0]}" for platform, found_there in majors.items())
    return found(findings, _("one CUDA major version throughout: {told}").format(told=told), majors=majors)


def _mixed(platform: str, stated: Mapping[str, int]) -> Finding:
    parts = []
    for major in sorted(set(stated.values())):
        names = [name for name, own in stated.items() if own == major]
        listed = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        parts.append(_("CUDA {major}: {names}").format(major=major, names=listed))
    text = _("{platform} mixes {parts}").format(platform=platform, parts="; ".join(parts))
    return Finding(place="", text=text, platform=platform)


def _majors(packages: list[Package]) -> Iterator[tuple[str, int]]:
    """The CUDA major version of each package that states one."""
    for package in packages:
        stated = _stated(package)
        if stated is not None:
            yield package.name, stated


def _stated(package: Package) -> int | None:
    if package.manager == "pip":
        name = canonicalize_name(package.name)
        wheel = _WHEEL.fullmatch(name)
        if wheel is not None:
            return int(wheel["one"] or wheel["two"])
        if _WHEEL_VERSION.fullmatch(name):
            return _first_number(package.version)
    elif _NAMED_AFTER_CUDA.fullmatch(package.name):
        return _first_number(package.version)
    build = build_cuda(package)
    return _first_number(build) if build else None


def _first_number(version: str) -> int | None:
    first = version.partition(".")[0]
    return int(first) if first.isdecimal() else None
