"""Do workers start by each start method, and does a DataLoader deliver every sample once, whole, in order?"""

from __future__ import annotations

from envkit.checks.catalogue import rehearsal
from envkit.checks.definition import (
    TOKEN,
    CheckInfo,
    Context,
    Data,
    Job,
    Verdict,
    Where,
    check,
    fail,
    ok,
)
from envkit.messages import _
from envkit.model import Severity

__all__ = ["LOADERS", "WORKERS"]

# A worker that is spawned imports torch anew: 4 s each where everything is cached, far more where not.
_LIMITS = {"fork": 45.0, "spawn": 90.0, "forkserver": 90.0}


def _job(method: str) -> Job:
    return Job(
        id=f"rehearsal.{method}",
        call="rehearsal:rehearse",
        where=Where.WARM if method == "fork" else Where.FRESH,
        limit=_LIMITS[method],
        args={
            "method": method,
            "token": TOKEN,
            "workers": rehearsal.WORKERS,
            "epochs": rehearsal.EPOCHS,
            "samples": rehearsal.SAMPLES,
            "batch": rehearsal.BATCH,
            "shape": list(rehearsal.SHAPE),
        },
    )


def _workers(job: Job, method: str) -> CheckInfo:
    needs = ("interpreter.runs", "imports.torch", "shm.writable", "tmpdir.usable")

    @check(
        f"workers.{method}",
        job=job,
        severity=Severity.FATAL,
        source="https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods",
        words=lambda: (
            _("workers by {method}").format(method=method),
            _("processes start by {method} and answer").format(method=method),
        ),
        needs=needs,
        quick=method == "fork",
    )
    def judged(data: Data, context: Context) -> Verdict:
        bad = [code for code in data["exit_codes"] if code != 0]
        if bad:
            return fail(
                _("{bad} of {count} workers ended with exit code {codes}").format(
                    bad=len(bad), count=data["workers"], codes=", ".join(map(str, bad))
                ),
                hint=_("what they wrote is shown with -v"),
            )
        if data["answers"] != list(range(data["workers"])) or data["processes"] != data["workers"]:
            return fail(
                _("{answers} of {count} workers answered").format(
                    answers=len(data["answers"]), count=data["workers"]
                )
            )
        return ok(
            _("{count} workers started and answered in {seconds:.1f} s").format(
                count=data["workers"], seconds=data["seconds"]
            )
        )

    return judged


def _loader(job: Job, method: str) -> CheckInfo:
    needs = ("interpreter.runs", "imports.torch", "shm.writable", "tmpdir.usable", f"workers.{method}")

    @check(
        f"loader.{method}",
        job=job,
        severity=Severity.FATAL,
        source="https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
        words=lambda: (
            _("DataLoader by {method}").format(method=method),
            _("a DataLoader with {method} delivers every sample once, whole and in order, twice over").format(
                method=method
            ),
        ),
        needs=needs,
        quick=method == "fork",
    )
    def judged(data: Data, context: Context) -> Verdict:
        problem = _wrong(data)
        if problem:
            return fail(problem, hint=_("this torch is damaged: ") + context.target.renewal)
        return ok(
            _("{samples} samples x {epochs} epochs right; first batch after {seconds:.1f} s").format(
                samples=data["samples"], epochs=data["epochs"], seconds=data["first_batch_seconds"]
            )
        )

    return judged


def _wrong(data: Data) -> str:
    expected = data["samples"]
    counts = [count for count in data["counts"] if count != expected]
    if counts or len(data["counts"]) != data["epochs"]:
        return _("{count} samples came instead of {expected}").format(
            count=counts[0] if counts else 0, expected=expected
        )
    if not all(data["orders_right"]):
        return _("the samples came in the wrong order")
    if data["wrong_content"]:
        return _("the content of sample {index} is wrong").format(index=data["wrong_content"][0])
    if data["workers"] != list(range(rehearsal.WORKERS)):
        return _("only workers {workers} delivered").format(workers=data["workers"])
    return ""


_JOBS = {method: _job(method) for method in _LIMITS}
WORKERS = tuple(_workers(job, method) for method, job in _JOBS.items())
LOADERS = tuple(_loader(job, method) for method, job in _JOBS.items())
