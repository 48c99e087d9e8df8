"""CUDA=auto: the best variant this machine runs, with the reason in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from envkit.errors import Error, InputError
from envkit.host.drivers import numbers
from envkit.matrix.axes import AUTO, Axes
from envkit.matrix.hardware import Answer, Verdict, judge
from envkit.matrix.layout import Matrix
from envkit.matrix.select import Wanted, listed, made, parse_axes, select
from envkit.messages import _
from envkit.model import CPU, Host, Variant

__all__ = ["Choice", "choose"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A variant and, in one line, what decided."""

    variant: Variant
    reason: str


def choose(matrix: Matrix, host: Host, axes: Axes) -> Choice:
    """The variant for these axes on this machine.

    With a name or a CUDA version the machine does not decide; the reason says where its GPUs could not run
    what was asked. Otherwise the newest CUDA wins that the
    platform, glibc, the driver and every GPU allow; without a GPU, the CPU variant.

    Where no GPU is seen, CONDA_OVERRIDE_CUDA counts as the driver's CUDA version (empty means none). On a
    login node without it InputError asks for `--cuda`, because the GPUs are elsewhere. Error where the
    machine runs no variant at all.
    """
    if axes.name is not None or (axes.cuda is not None and axes.cuda.strip().lower() != AUTO):
        return _as_asked(matrix, select(matrix, axes, host.platform), host)
    wanted = parse_axes(matrix, axes, host.platform)
    candidates = _cuda_variants(matrix, wanted)
    if not candidates:
        return _cpu(matrix, wanted, host, _("no CUDA variant has what was asked"))
    if host.gpus:
        if host.driver is None and host.driver_cuda is None:
            reason = _("{gpus} found, but the driver's version could not be read").format(gpus=_names(host))
            return _cpu(matrix, wanted, host, reason)
        return _best(matrix, wanted, candidates, host)
    if host.override_cuda is not None:
        return _overridden(matrix, wanted, candidates, host, host.override_cuda.strip())
    if host.scheduler is not None:
        raise InputError(
            _("no GPU here, but the commands of {scheduler}: this looks like a login node").format(
                scheduler=host.scheduler
            ),
            _("say what the compute nodes have: `--cuda 12.4` (or `--cuda cpu`), or set CONDA_OVERRIDE_CUDA"),
        )
    return _cpu(matrix, wanted, host, _("no NVIDIA GPU found"))


def _as_asked(matrix: Matrix, variant: Variant, host: Host) -> Choice:
    answer = judge(matrix, variant, host)
    if host.gpus and variant.cuda and answer.verdict is Verdict.NO:
        reason = _("as asked, although it cannot run here: {reason}").format(reason=answer.reason)
        return Choice(variant=variant, reason=reason)
    return Choice(variant=variant, reason=_("as asked"))


def _cuda_variants(matrix: Matrix, wanted: Wanted) -> list[Variant]:
    """The CUDA variants to try, best first: listed ones, then those that axes alone make.

    Newer CUDA comes first, then the order of the matrix. Listed variants for the default Python are
    preferred, but a torch that only another Python has is found there.
    """
    own = replace(wanted, python=wanted.python or matrix.defaults.python)
    fitting = _newest_first(listed(matrix, own)) or _newest_first(listed(matrix, wanted))
    if fitting and wanted == Wanted(extras=wanted.extras, platform=wanted.platform):
        return fitting
    versions = {
        variant.accelerator for variant in matrix.variants if variant.cuda and matrix.commits(variant)
    }
    versions -= {variant.accelerator for variant in fitting}
    further = []
    for version in versions:
        try:
            further.append(made(matrix, replace(own, accelerator=version)))
        except InputError:
            continue  # no such build; the others remain
    return fitting + _newest_first(further)


def _newest_first(variants: Iterable[Variant]) -> list[Variant]:
    with_cuda = [variant for variant in variants if variant.cuda]
    return sorted(with_cuda, key=lambda variant: numbers(variant.accelerator), reverse=True)


def _best(matrix: Matrix, wanted: Wanted, candidates: list[Variant], host: Host) -> Choice:
    answers = [(variant, judge(matrix, variant, host)) for variant in candidates]
    refused = [answer for _variant, answer in answers if answer.verdict is Verdict.NO]
    for verdict in (Verdict.YES, Verdict.UNKNOWN):
        for position, (variant, answer) in enumerate(answers):
            if answer.verdict is verdict:
                newer = [newer for _variant, newer in answers[:position] if newer.verdict is Verdict.NO]
                return Choice(variant=variant, reason=_why(variant, answer, newer, host))
    # The newest and the least demanding build, each with what keeps it from running.
    return _cpu(matrix, wanted, host, "; ".join(dict.fromkeys((refused[0].reason, refused[-1].reason))))


def _why(variant: Variant, answer: Answer, refused: list[Answer], host: Host) -> str:
    """One line: what kept newer CUDA versions out, or what allows the newest, and what is not certain."""
    if refused:
        parts = [
            refused[-1].reason,
            _("CUDA {cuda} is the newest that runs here").format(cuda=variant.cuda),
        ]
    else:
        parts = [
            _("{driver} and {gpus} allow CUDA {cuda}").format(
                driver=_driver(host), gpus=_names(host), cuda=variant.cuda
            )
        ]
    if answer.verdict is Verdict.UNKNOWN:
        parts = [
            _("CUDA {cuda} is tried, not known to run").format(cuda=variant.cuda),
            answer.reason,
        ]
    elif answer.reason:
        parts.append(answer.reason)
    return "; ".join(parts)


def _overridden(
    matrix: Matrix, wanted: Wanted, candidates: list[Variant], host: Host, override: str
) -> Choice:
    if not override:
        return _cpu(matrix, wanted, host, _("CONDA_OVERRIDE_CUDA is empty: no CUDA"))
    if re.fullmatch(r"\d{1,2}(\.\d{1,2}){0,2}", override) is None:
        raise InputError(
            _("CONDA_OVERRIDE_CUDA={value} is not a CUDA version").format(value=override),
            _("set it to the driver's CUDA version, such as 12.4, or give `--cuda`"),
        )
    told = replace(host, driver=None, driver_cuda=override)
    answers = [(variant, judge(matrix, variant, told)) for variant in candidates]
    for variant, answer in answers:
        if answer.verdict is Verdict.YES:
            reason = _(
                "CONDA_OVERRIDE_CUDA={value} allows CUDA {cuda}; the GPUs cannot be seen from here"
            ).format(value=override, cuda=variant.cuda)
            return Choice(variant=variant, reason=reason)
    return _cpu(matrix, wanted, host, answers[-1][1].reason)


def _cpu(matrix: Matrix, wanted: Wanted, host: Host, reason: str) -> Choice:
    cpu = replace(wanted, accelerator=CPU)
    own = replace(cpu, python=cpu.python or matrix.defaults.python)
    fitting = listed(matrix, own) or listed(matrix, cpu)
    variant = fitting[0] if fitting else made(matrix, own)
    answer = judge(matrix, variant, host)
    if answer.verdict is not Verdict.YES:
        raise Error(
            _("no environment for this machine: {reason}").format(reason=answer.reason),
            _("see `envkit variants` for what each variant needs"),
        )
    return Choice(variant=variant, reason=_("{reason}: CPU build").format(reason=reason))


def _driver(host: Host) -> str:
    if host.driver is None:
        return _("a driver for CUDA {version}").format(version=host.driver_cuda)
    return _("driver {version}").format(version=host.driver)


def _names(host: Host) -> str:
    """The kinds of GPU here, each once: "NVIDIA L4 (8.9), Tesla T4 (7.5)"."""
    kinds = dict.fromkeys((gpu.name, gpu.capability) for gpu in host.gpus)
    return ", ".join(f"{name} ({capability})" if capability else name for name, capability in kinds)
