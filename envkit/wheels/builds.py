"""For which CUDA a plan's wheels are: what torch says of itself, held against what comes with it."""

from __future__ import annotations

import re

from packaging.version import Version

from envkit.messages import _
from envkit.wheels.plan import WheelPlan

__all__ = ["TORCH_FAMILY", "cuda_of", "is_torch_wheel", "wrong_build"]

TORCH_FAMILY = ("torchvision", "torchaudio")
"""Built together with torch, for one accelerator."""

_LABEL = re.compile(r"cu(\d+)(\d)")
_RUNTIME = re.compile(r"nvidia-(?!ml-py).*-cu(?P<major>\d+)")


def cuda_of(accelerator: str) -> str | None:
    """The CUDA version of a label: "cu126" is "12.6"; None for "cpu" and for a CUDA that is not known."""
    found = _LABEL.fullmatch(accelerator)
    return f"{found[1]}.{found[2]}" if found else None


def is_torch_wheel(key: str) -> bool:
    """Whether a distribution is of torch's own or of the CUDA runtime, and so large."""
    return key in ("torch", *TORCH_FAMILY, "triton") or key.startswith(("nvidia-", "cuda-"))


def wrong_build(plan: WheelPlan, wanted: str) -> str | None:
    """What in a plan is not for the accelerator `wanted` ("cu126"), in words; None where all is.

    torch is that build; torchvision and torchaudio say the same where torch does; NVIDIA's runtime wheels
    are those of the same major version.
    """
    torch = plan.find("torch")
    if plan.accelerator != wanted:
        return _("it gives torch for {accelerator}").format(accelerator=plan.accelerator)
    cuda = cuda_of(wanted)
    if torch is None or cuda is None:
        return None
    labelled = Version(torch.version).local is not None
    major = cuda.partition(".")[0]
    for item in plan.items:
        local = Version(item.version).local
        if item.key in TORCH_FAMILY and labelled and (local or "").split(".")[0] != wanted:
            return _("it gives {name} {version}, which is no {wanted} build").format(
                name=item.name, version=item.version, wanted=wanted
            )
        runtime = _RUNTIME.fullmatch(item.key)
        if runtime and runtime["major"] != major:
            return _("it gives {name}, which is for another CUDA than {wanted}").format(
                name=item.name, wanted=wanted
            )
    return None
