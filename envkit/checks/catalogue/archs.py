"""Which GPUs the code in a torch build runs on: the binary rule and the PTX rule.

Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capability and
https://docs.nvidia.com/cuda/ampere-compatibility-guide/#application-compatibility.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

__all__ = ["Fit", "fit"]

_ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)\Z")


class Fit(str, Enum):
    """How a build serves a device: with machine code, by compiling its PTX first, or not at all."""

    BINARY = "binary"
    PTX = "ptx"
    NONE = "none"


def fit(capability: str, archs: Iterable[str]) -> Fit:
    """How a list such as `torch.cuda.get_arch_list()` gives serves a device of this capability ("8.6").

    Machine code for X.Y runs on X.Z where Z >= Y; with the suffix "a" only on X.Y itself. PTX for X.Y can be
    compiled on any device from X.Y on, by a driver as new as the toolkit that made it.
    """
    major, minor = map(int, capability.split("."))
    best = Fit.NONE
    for arch in archs:
        match = _ARCH.match(arch)
        if match is None:
            continue
        kind, arch_major, arch_minor, suffix = match[1], int(match[2]), int(match[3]), match[4]
        if kind == "sm" and arch_major == major:
            if minor == arch_minor or (minor > arch_minor and suffix != "a"):
                return Fit.BINARY
        elif kind == "compute" and not suffix and (arch_major, arch_minor) <= (major, minor):
            best = Fit.PTX
    return best
