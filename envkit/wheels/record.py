"""What the solver is told of a wheel: the index of its package, made from the plan alone."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from envkit.errors import Error
from envkit.messages import _
from envkit.wheels.builds import TORCH_FAMILY, cuda_of
from envkit.wheels.cache import digest_of
from envkit.wheels.constraints import (
    accelerator_label,
    build_label,
    conda_name,
    conda_version,
    glibc_floor,
    match_spec,
)
from envkit.wheels.plan import Wheel, WheelPlan
from envkit.wheels.writer import Index

__all__ = ["about", "headers_index", "wheel_index"]

_HASH = 8
_LONGEST_LICENCE = 80


def wheel_index(plan: WheelPlan, wheel: Wheel, writer_version: int) -> Index:
    """The index of a wheel's package: `pytorch 2.13.0 cpu_py311h1a2b3c4d_0`.

    A wheel for any Python and platform becomes `noarch: python`; any other is bound to the plan's Python,
    to its ABI and to the glibc of its tag, a CUDA build of torch to a driver for its major version.
    """
    depends = list(plan.depends(wheel))
    floor, pure = _tags(wheel)
    if pure:
        depends.append(_python(wheel))
    else:
        abi = "cp" + plan.python.replace(".", "")
        depends += [f"python {plan.python}.*", f"python_abi {plan.python}.* *_{abi}"]
    if floor:
        depends.append(f"__glibc >={floor}")
    if wheel.key == "torch" and (cuda := cuda_of(plan.accelerator)):
        # A driver runs every runtime of its major version (data/driver_cuda.yaml, rule "minor").
        depends.append(f"__cuda >={cuda.partition('.')[0]}")
    digest = digest_of(writer_version, wheel.sha256, sorted(depends))[:_HASH]
    tag = "py" if pure else f"py{plan.python.replace('.', '')}"
    label = _label(plan, wheel)
    return Index(
        name=conda_name(wheel.name),
        version=conda_version(wheel.version),
        build="_".join(word for word in (label, f"{tag}h{digest}", "0") if word),
        subdir="noarch" if pure else plan.platform,
        noarch="python" if pure else None,
        depends=tuple(sorted(set(depends))),
        license=_licence(wheel),
    )


def headers_index(plan: WheelPlan, wheel: Wheel, writer_version: int) -> Index:
    """The index of the package of a wheel's headers, for exactly that build: `pytorch-headers`."""
    main = wheel_index(plan, wheel, writer_version)
    return Index(
        name=f"{main.name}-headers",
        version=main.version,
        build=main.build,
        subdir=main.subdir,
        depends=(f"{main.name} =={main.version} {main.build}",),
        license=main.license,
    )


def about(wheel: Wheel) -> bytes:
    """`info/about.json` of a wheel's package. The URL it came from is named without user and password."""
    metadata = wheel.metadata
    source = urlsplit(wheel.url)
    document = {
        "home": metadata.get("home_page") or "",
        "license": _licence(wheel) or "",
        "summary": metadata.get("summary") or "",
        "extra": {
            "wheel": wheel.file_name,
            "sha256": wheel.sha256,
            "from": source.hostname if source.scheme != "file" else "file",
        },
    }
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


def _tags(wheel: Wheel) -> tuple[str | None, bool]:
    """The glibc that the wheel's tags ask for, and whether any Python 3 on any platform can run it."""
    try:
        tags = parse_wheel_filename(wheel.file_name)[3]
    except InvalidWheelFilename as problem:
        raise Error(str(problem), _("rename the wheel to what its index calls it")) from None
    pure = all(
        tag.platform == "any" and tag.abi == "none" and tag.interpreter in ("py2", "py3") for tag in tags
    )
    return glibc_floor(tag.platform for tag in tags), pure


def _python(wheel: Wheel) -> str:
    """The Pythons that a pure wheel says it runs on."""
    try:
        return match_spec("python", SpecifierSet(wheel.metadata.get("requires_python") or ""))
    except InvalidSpecifier:
        return "python"


def _label(plan: WheelPlan, wheel: Wheel) -> str:
    """The word that says for which accelerator a build is; torch always has one, for specs to ask for.

    Where torch's version does not say it, neither do those of the wheels that are built with it.
    """
    own = build_label(wheel.version)
    if own or wheel.key == "torch":
        return own or accelerator_label(plan.accelerator)
    torch = plan.find("torch")
    like = wheel.key in TORCH_FAMILY and torch is not None and not build_label(torch.version)
    return accelerator_label(plan.accelerator) if like and cuda_of(plan.accelerator) else ""


def _licence(wheel: Wheel) -> str | None:
    """The licence in a word, where the metadata has one: an expression, a short name or a classifier."""
    metadata = wheel.metadata
    for key in ("license_expression", "license"):
        text = (metadata.get(key) or "").strip()
        if text and "\n" not in text and len(text) <= _LONGEST_LICENCE:
            return str(text)
    for classifier in metadata.get("classifier") or ():
        if classifier.startswith("License ::"):
            return str(classifier.rsplit("::", 1)[-1].strip())
    return None
