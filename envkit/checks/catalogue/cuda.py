"""Does the driver answer, does torch have code for the GPUs, and does that code compute?"""

from __future__ import annotations

from envkit.checks.catalogue.archs import Fit, fit
from envkit.checks.definition import Context, Data, Job, Verdict, Where, check, fail, ok, skip, warn
from envkit.checks.outcome import Outcome
from envkit.checks.remedies import remedy
from envkit.checks.tables import cuda_error, find_cuda_error
from envkit.messages import _
from envkit.model import Severity

__all__ = ["arch", "init", "kernel"]

_INIT = Job(id="cuda.init", call="cuda:initialise", where=Where.FRESH, limit=20)
# PTX that must be compiled first, or a driver that wakes many GPUs up, can take a minute.
_KERNEL = Job(id="cuda.kernel", call="cuda:kernel", where=Where.FRESH, limit=120)
_NO_DEVICE = 100
_WORST_ERROR = 0.1
"""Of a product of two 128 x 128 normal matrices; TF32 stays below 0.05, garbage does not."""


def _cpu_wanted(context: Context) -> Verdict | None:
    if context.cuda_wanted is not False:
        return None
    if context.target.cuda is None:
        return skip(_("a CPU environment was asked for"))
    return skip(_("torch is a CPU build"))


def _no_answer(outcome: Outcome, context: Context) -> Verdict | None:
    if outcome.timed_out and outcome.at == "cuInit":
        return fail(
            _("cuInit did not return within {limit:.0f} s").format(limit=outcome.limit),
            detail=outcome.output,
            hint=remedy("driver-wedged"),
        )
    if outcome.signal is not None:
        return fail(
            _("the driver crashed with {signal} ({at})").format(signal=outcome.signal, at=outcome.at),
            detail=outcome.output,
            hint=remedy("driver-wedged"),
        )
    return None


@check(
    "cuda.init",
    job=_INIT,
    severity=Severity.FATAL,
    source="https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__INITIALIZE.html",
    words=lambda: (_("CUDA driver"), _("the driver initialises and is new enough for torch's CUDA")),
    spared=_cpu_wanted,
    ended=_no_answer,
)
def init(data: Data, context: Context) -> Verdict:
    code, here = data["code"], bool(data["nodes"])
    if code is None or (code == _NO_DEVICE and not here):
        return _no_gpu(data, context, here=here)
    if code != 0:
        return _failed(code, data)
    driver = data["driver_cuda"] or 0
    wanted = (context.facts.get("torch.build") or {}).get("cuda")
    if wanted and driver and driver // 1000 < int(wanted.split(".")[0]):
        return fail(
            _("the driver is for CUDA {driver}, torch needs CUDA {wanted} (error 35)").format(
                driver=_version(driver), wanted=wanted
            ),
            hint=remedy("driver-too-old"),
        )
    return ok(
        _("the driver answers: CUDA {driver}, {count} GPU(s)").format(
            driver=_version(driver), count=data["devices"]
        )
    )


def _no_gpu(data: Data, context: Context, *, here: bool) -> Verdict:
    if here or (data["module"] and data["library"] is None):
        return fail(
            _("a GPU is here, but the driver's libcuda.so.1 is not found"),
            detail=str(data.get("problem", "")),
            hint=remedy("driver-library"),
        )
    hint = (
        _(
            "CUDA is proven where there is one: run envkit validate {subject} there (containers: --gpus all)"
        ).format(subject=context.target.subject)
        if context.cuda_wanted
        else ""
    )
    return skip(_("there is no NVIDIA GPU here"), hint=hint)


def _failed(code: int, data: Data) -> Verdict:
    known = cuda_error(code)
    if known is None:
        return fail(_("cuInit failed with error {code}").format(code=code), hint=remedy("init-failed"))
    hint = known.hint
    if code == _NO_DEVICE and data["visible"] is not None:
        hidden = data["visible"] or '""'
        hint = _("CUDA_VISIBLE_DEVICES={value} hides every GPU: unset it").format(value=hidden)
    return fail(
        _("cuInit failed with error {code}, {name}").format(code=code, name=known.name),
        detail=f"{known.text}: {known.at_init}\n{data['library'] or ''}".strip(),
        hint=hint,
    )


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _kernel_failed(outcome: Outcome, context: Context) -> Verdict | None:
    known = find_cuda_error(outcome.text)
    if known is None:
        return None
    return fail(
        _("{what} failed with error {code}, {name}").format(
            what=outcome.at, code=known.code, name=known.name
        ),
        detail=outcome.text,
        hint=known.hint,
    )


@check(
    "cuda.arch",
    job=_KERNEL,
    severity=Severity.FATAL,
    source="https://github.com/pytorch/pytorch/issues/150733",
    words=lambda: (_("GPU architecture"), _("torch has code for every visible GPU")),
    needs=("interpreter.runs", "imports.torch", "cuda.init"),
    spared=_cpu_wanted,
    ended=_kernel_failed,
)
def arch(data: Data, context: Context) -> Verdict:
    fits = [(device, fit(device["capability"], data["archs"])) for device in data["devices"]]
    lost = [device for device, how in fits if how is Fit.NONE]
    archs = " ".join(data["archs"])
    if lost:
        return fail(
            _("torch has no code for {devices}").format(devices=_named(lost)),
            detail=_("it was built for {archs}").format(archs=archs),
            hint=remedy("wrong-arch"),
        )
    compiled = [device for device, how in fits if how is Fit.PTX]
    if compiled:
        return warn(
            _("code for {devices} is compiled on first use").format(devices=_named(compiled)),
            detail=_("it was built for {archs}").format(archs=archs),
            hint=_("the first call takes minutes, and the driver must be as new as the toolkit: ")
            + remedy("wrong-arch"),
        )
    return ok(_("torch has code for {devices}").format(devices=_named([device for device, _how in fits])))


def _named(devices: list[Data]) -> str:
    return ", ".join(sorted({f"{device['name']} ({device['capability']})" for device in devices}))


def _right(result: Data) -> bool:
    worst = result["worst_error"]
    return bool(result["sum_right"]) and worst is not None and worst < _WORST_ERROR


@check(
    "cuda.kernel",
    job=_KERNEL,
    severity=Severity.FATAL,
    source="https://github.com/pytorch/pytorch/issues/167244",
    words=lambda: (_("GPU kernels"), _("a kernel and a matrix product are right on every visible GPU")),
    needs=("interpreter.runs", "imports.torch", "cuda.init", "cuda.arch"),
    spared=_cpu_wanted,
    ended=_kernel_failed,
)
def kernel(data: Data, context: Context) -> Verdict:
    results = data["results"]
    if not results:
        return fail(_("torch sees no GPU, though the driver does"), hint=remedy("no-device"))
    wrong = [result["index"] for result in results if not _right(result)]
    if wrong:
        return fail(
            _("wrong results on GPU {indices}").format(indices=", ".join(map(str, wrong))),
            hint=_("the GPU or its memory is faulty: look at dmesg for Xid lines, and use another one"),
        )
    slowest = max(result["first_kernel_seconds"] for result in results)
    return ok(
        _("right on {count} GPU(s), the first kernel after {seconds:.1f} s").format(
            count=len(results), seconds=slowest
        )
    )
