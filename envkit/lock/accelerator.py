"""Whether the builds in a lock are those of the accelerator that was asked for.

A solver sees nothing wrong with a CPU build where a CUDA build was meant: conda and pip both install it
without a word (conda/conda#14761, rapidsai/cugraph-gnn#395). The build string tells them apart:

    channel pytorch      py3.11_cuda11.8_cudnn8.7.0_0   py311_cu118   py3.11_cpu_0
    conda-forge          cuda126_mkl_py311_hcada2b2_300   cuda_py311_h8b6ad9a_1   cpu_generic_py311_…
    wheels               local version 2.3.0+cu121, 2.13.0+cpu; or the CUDA runtime wheel beside it
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from envkit.messages import _
from envkit.model import Package

__all__ = ["TORCH_NAMES", "build_cuda", "check_accelerator"]

TORCH_NAMES = ("pytorch", "torch")
"""PyTorch itself, in the words of conda and of pip."""

UNSTATED = ""
"""The CUDA version of a build that is one for CUDA without saying which."""

_CHECKED = (*TORCH_NAMES, "torchvision", "torchaudio")
_CUDA = re.compile(r"(?<![a-z])cu(?:da)?_?(?P<major>\d+)(?:\.(?P<minor>\d+))?|(?<![a-z])cuda(?![a-z])")
_RUNTIME_WHEEL = re.compile(r"nvidia-cuda-runtime(?:-cu\d+)?")


def check_accelerator(packages: Sequence[Package], cuda: str | None) -> list[str]:
    """What is wrong with the torch builds among `packages`, one line each; empty where all is well.

    `cuda` is the CUDA runtime version asked for ("11.8"), None for a CPU build. With CUDA, every platform
    needs PyTorch, and PyTorch, torchvision and torchaudio must be builds of that version (but for the builds
    of torchvision that do not say which). Without, none of them may be a CUDA build.
    """
    problems = []
    for platform in sorted({package.platform for package in packages}):
        here = [package for package in packages if package.platform == platform]
        checked = [package for package in here if package.name in _CHECKED]
        runtime = _runtime_of_wheels(here)
        if cuda is not None and not any(package.name in TORCH_NAMES for package in checked):
            problems.append(
                _("{platform}: CUDA {cuda} was asked for, but PyTorch is not among the packages").format(
                    platform=platform, cuda=cuda
                )
            )
        for package in checked:
            found = build_cuda(package)
            if found is None and package.manager == "pip" and package.name == "torch":
                found = runtime
            if found != cuda and not (found == UNSTATED and cuda and package.name not in TORCH_NAMES):
                problems.append(_problem(package, found, cuda))
    return problems


def build_cuda(package: Package) -> str | None:
    """The CUDA version of a build ("11.8"), from its build string or local version; None for no CUDA build.

    UNSTATED where the build is for CUDA but does not say which (conda-forge's torchvision of 2025). Without
    a dot the last digit is the minor version: cu118 is 11.8, cuda126 is 12.6, cu130 is 13.0.
    """
    text = package.build if package.manager == "conda" else package.version.partition("+")[2]
    match = _CUDA.search(text)
    if match is None:
        return None
    major, minor = match["major"], match["minor"]
    if major is None:
        return UNSTATED
    return f"{major}.{minor}" if minor is not None else f"{major[:-1]}.{major[-1]}"


def _runtime_of_wheels(packages: Iterable[Package]) -> str | None:
    """The CUDA version of the runtime wheel that a CUDA build of torch from the Python index brings along."""
    for package in packages:
        if package.manager == "pip" and _RUNTIME_WHEEL.fullmatch(package.name):
            return ".".join(package.version.split(".")[:2])
    return None


def _problem(package: Package, found: str | None, cuda: str | None) -> str:
    what = f"{package.platform}: {package.name} {package.version} {package.build}".rstrip()
    if found is None:
        return _("{what} is not a CUDA build, CUDA {cuda} was asked for").format(what=what, cuda=cuda)
    if cuda is None:
        return _("{what} is a CUDA build, a CPU build was asked for").format(what=what)
    if found == UNSTATED:
        return _("{what} does not say for which CUDA it is, {cuda} was asked for").format(
            what=what, cuda=cuda
        )
    return _("{what} is a CUDA {found} build, CUDA {cuda} was asked for").format(
        what=what, found=found, cuda=cuda
    )
