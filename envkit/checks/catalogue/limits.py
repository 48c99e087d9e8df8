"""Are there enough file descriptors, and is the temporary folder writable and its name short enough?"""

from __future__ import annotations

from envkit.checks.catalogue.rehearsal import TENSORS, WORKERS
from envkit.checks.definition import Context, Data, Job, Verdict, Where, check, fail, ok, warn
from envkit.checks.outcome import Outcome
from envkit.checks.remedies import remedy
from envkit.checks.sizes import shown
from envkit.messages import _
from envkit.model import Severity

__all__ = ["descriptors", "folder"]

_DESCRIPTORS = Job(id="fds.limit", call="limits:descriptors", where=Where.BARE, limit=10)
_FOLDER = Job(id="tmpdir.usable", call="limits:temporary_folder", where=Where.BARE, limit=20)

# workers x prefetch x tensors are in flight, as many are kept by the training loop, and Python needs some.
_LEAST = 2 * WORKERS * 2 * TENSORS + 128
_COMFORTABLE = 1024
_LONGEST_FOLDER = 75
"""Characters: a Unix socket's path holds 107, of which `/pymp-XXXXXXXX/listener-XXXXXXXX` takes 32."""
_LEAST_SPACE = 100 << 20


@check(
    "fds.limit",
    job=_DESCRIPTORS,
    severity=Severity.FATAL,
    source="https://github.com/pytorch/pytorch/issues/973",
    words=lambda: (_("file descriptors"), _("enough may be open for the tensors that workers hand over")),
    quick=True,
)
def descriptors(data: Data, context: Context) -> Verdict:
    soft, left = data["soft"], data["soft"] - data["open"]
    if soft < 0:
        return ok(_("no limit on open files"))
    said = _("{soft} open files allowed, {open} in use").format(soft=soft, open=data["open"])
    if left < _LEAST:
        return fail(
            _("{said}; two workers need {need}").format(said=said, need=_LEAST), hint=remedy("descriptors")
        )
    if soft < _COMFORTABLE:
        return warn(
            _("{said}; {need} is usual").format(said=said, need=_COMFORTABLE), hint=remedy("descriptors")
        )
    return ok(said)


def _no_folder(outcome: Outcome, context: Context) -> Verdict | None:
    if not outcome.chain:
        return None
    return fail(
        _("there is no usable temporary folder: {problem}").format(problem=outcome.chain[0]),
        detail=outcome.output,
        hint=remedy("disk-full") if "No space left" in outcome.text else remedy("tmpdir-none"),
    )


@check(
    "tmpdir.usable",
    job=_FOLDER,
    severity=Severity.FATAL,
    source="https://github.com/python/cpython/issues/93852",
    words=lambda: (
        _("temporary folder"),
        _("it can be written, has room, and its name leaves room for the sockets of workers"),
    ),
    quick=True,
    ended=_no_folder,
)
def folder(data: Data, context: Context) -> Verdict:
    named = data["folder"]
    if not data["socket"]:
        return fail(
            _(
                "the temporary folder's name has {length} characters, {most} are possible: workers would hang"
            ).format(length=data["length"], most=_LONGEST_FOLDER)
            if data["length"] > _LONGEST_FOLDER
            else _("no socket can be made in {folder}").format(folder=named),
            detail=f"{data['socket_path']}: {data['socket_problem']}",
            hint=remedy("tmpdir-long"),
        )
    if data["length"] > _LONGEST_FOLDER:
        return warn(
            _("the temporary folder's name has {length} characters; older versions of Python hang").format(
                length=data["length"]
            ),
            hint=remedy("tmpdir-long"),
        )
    if data["free"] < _LEAST_SPACE:
        return warn(
            _("{folder} has only {free} left").format(folder=named, free=shown(data["free"])),
            hint=remedy("disk-full"),
        )
    return ok(_("{folder}, {free} free").format(folder=named, free=shown(data["free"])))
