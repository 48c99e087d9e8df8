"""The environment.yml of a wheel channel, and the variant it is made for."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import yaml

from envkit.errors import Error
from envkit.matrix import Matrix
from envkit.messages import _
from envkit.model import CPU, Spec, Variant, VirtualPackage
from envkit.wheels.builds import cuda_of
from envkit.wheels.cache import digest_of
from envkit.wheels.constraints import accelerator_label, build_label
from envkit.wheels.plan import WheelPlan
from envkit.wheels.resolve import running_python

__all__ = ["fallback_variant", "spec"]

_SERIES = re.compile(r"\d+(?:\.\d+)*\.\*")


def fallback_variant(matrix: Matrix, python: str | None = None) -> Variant:
    """`wheels-py311-cpu`: never a name that a matrix lists, with the torch of the matrix's wheels source.

    `python` is a minor version; without one, that of the interpreter that runs this.
    """
    python = python or running_python()
    return Variant(
        name=f"wheels-py{python.replace('.', '')}-{CPU}",
        python=python,
        accelerator=CPU,
        torch=matrix.sources["wheels"].default_torch(CPU).text,
        source="wheels",
        platforms=(host_platform(),),
    )


def spec(variant: Variant, plan: WheelPlan, channel: Path) -> Spec:
    """The text to solve over the channel alone, for this machine alone.

    Its channel's folder is named by what is in it, so that the digest changes with the packages.
    """
    url = channel.absolute().as_uri()
    depends = [f"python={plan.python}.*"]
    for wanted in plan.requested():
        name = wanted.split()[0]
        depends.append(_pytorch(variant, plan) if name == "pytorch" else wanted)
    document = {"name": variant.name, "channels": [url], "dependencies": depends}
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=200)
    virtual = {plan.platform: _virtual_packages(plan)}
    return Spec(
        variant=variant,
        text=text,
        channels=(url,),
        virtual_packages=virtual,
        digest=digest_of(text, {name: [str(one) for one in known] for name, known in virtual.items()}),
    )


def host_platform() -> str:
    """The conda subdir of this machine: "linux-64"."""
    machine = platform.machine()
    return {"x86_64": "linux-64"}.get(machine, f"linux-{machine}")


def _pytorch(variant: Variant, plan: WheelPlan) -> str:
    torch = plan.find("torch")
    assert torch is not None
    series = variant.torch if _SERIES.fullmatch(variant.torch) else f"={torch.version.split('+')[0]}"
    return f"pytorch={series}=*{build_label(torch.version) or accelerator_label(plan.accelerator)}*"


def _virtual_packages(plan: WheelPlan) -> tuple[VirtualPackage, ...]:
    """This machine as the solver sees it; the kernel's version is left out, for it says nothing here.

    A CUDA build is made for the machines that have its CUDA, be this one of them or not.
    """
    machine = {"linux-64": "x86_64"}.get(plan.platform, plan.platform.removeprefix("linux-"))
    cuda = cuda_of(plan.accelerator)
    return (
        VirtualPackage(name="__archspec", version="1", build=machine),
        *((VirtualPackage(name="__cuda", version=cuda),) if cuda else ()),
        VirtualPackage(name="__glibc", version=_glibc()),
        VirtualPackage(name="__linux", version="0"),
        VirtualPackage(name="__unix", version="0"),
    )


def _glibc() -> str:
    """The version of this machine's glibc; Error on one that has another C library."""
    try:
        name, _space, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        name = version = ""
    if name != "glibc" or not version:
        raise Error(
            _("the wheel channel needs the GNU C library (glibc); this system has another"),
            _("use a distribution with glibc: wheels of PyTorch are built for no other"),
        )
    return version
