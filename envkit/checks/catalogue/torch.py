"""Does torch import, is it the build that was asked for, and do tensors and arrays turn into each other?"""

from __future__ import annotations

from envkit.checks.catalogue.interpreter import inside
from envkit.checks.definition import Context, Data, Job, Verdict, Where, check, fail, ok, skip, warn
from envkit.checks.remedies import remedy
from envkit.checks.target import UNKNOWN
from envkit.messages import _
from envkit.model import Severity

__all__ = ["build", "imported", "numpy"]

# The first import after an install compiles its bytecode, and may read it over a network file system.
_JOB = Job(id="import", call="imports:load_torch", where=Where.HERE, limit=180)


@check(
    "imports.torch",
    job=_JOB,
    severity=Severity.FATAL,
    source="https://github.com/pytorch/pytorch/issues/157709",
    words=lambda: (_("import torch"), _("torch imports, from the environment's own packages")),
    quick=True,
)
def imported(data: Data, context: Context) -> Verdict:
    summary = _("torch {version}, imported in {seconds:.1f} s").format(
        version=data["version"], seconds=data["seconds"]
    )
    detail = "\n".join(data["warnings"])
    if context.target.environment is not None and not inside(data["folder"], data["prefixes"]):
        return fail(
            _("torch {version} comes from {folder}, not from the environment").format(
                version=data["version"], folder=data["folder"]
            ),
            detail=detail,
            hint=_("unset PYTHONPATH; export PYTHONNOUSERSITE=1"),
        )
    return ok(summary, detail=detail)


@check(
    "imports.numpy",
    job=_JOB,
    severity=Severity.HIGH,
    source="https://github.com/pytorch/pytorch/issues/132179",
    words=lambda: (_("numpy bridge"), _("tensors and numpy arrays turn into each other")),
    needs=("interpreter.runs", "imports.torch"),
    quick=True,
)
def numpy(data: Data, context: Context) -> Verdict:
    if data["works"]:
        return ok(_("works with numpy {version}").format(version=data["version"]))
    if data["works"] is None:
        return skip(_("numpy is not installed; torch works without it"))
    return fail(
        _("tensors and arrays do not turn into each other (numpy {version})").format(
            version=data["version"] or "-"
        ),
        detail=str(data.get("problem", "")),
        hint=remedy("numpy-major"),
    )


@check(
    "torch.build",
    job=_JOB,
    severity=Severity.FATAL,
    source="https://github.com/conda-forge/pytorch-cpu-feedstock/issues/364",
    words=lambda: (_("build of torch"), _("torch was built for the CUDA version that was asked for")),
    needs=("interpreter.runs", "imports.torch"),
    quick=True,
)
def build(data: Data, context: Context) -> Verdict:
    found, asked = data["cuda"], context.target.cuda
    name = _("CUDA {version}").format(version=found) if found else _("CPU")
    if data["hip"]:
        name = _("ROCm {version}").format(version=data["hip"])
    if asked == UNKNOWN:
        return ok(_("built for {name}; nothing was asked for").format(name=name))
    if asked is None:
        if found or data["hip"]:
            return warn(
                _("built for {name}, though a CPU build was asked for").format(name=name),
                hint=_("it works, but is gigabytes larger than need be"),
            )
        return ok(_("a CPU build, as asked"))
    if not found:
        return fail(
            _("a CPU build, but CUDA {asked} was asked for").format(asked=asked), hint=remedy("cpu-build")
        )
    if found.split(".")[:2] != asked.split(".")[:2]:
        return fail(
            _("built for {name}, but CUDA {asked} was asked for").format(name=name, asked=asked),
            hint=context.target.renewal,
        )
    return ok(_("built for {name}, as asked").format(name=name))
