"""Is there enough shared memory, can it honestly be had, and may it be written?"""

from __future__ import annotations

from envkit.checks.catalogue.rehearsal import REHEARSAL_NEED, TYPICAL_NEED
from envkit.checks.definition import Context, Data, Job, Verdict, Where, check, fail, ok, warn
from envkit.checks.outcome import Outcome
from envkit.checks.remedies import remedy
from envkit.checks.sizes import shown
from envkit.messages import _
from envkit.model import Severity

__all__ = ["capacity", "size", "writable"]

_SIZE = Job(id="shm.size", call="shm:size", where=Where.BARE, limit=10)
_WRITABLE = Job(id="shm.writable", call="shm:writable", where=Where.BARE, limit=10)
_CAPACITY = Job(
    id="shm.capacity", call="shm:capacity", where=Where.BARE, limit=30, args={"need": TYPICAL_NEED}
)
_CONTAINER_DEFAULT = 64 << 20


@check(
    "shm.size",
    job=_SIZE,
    severity=Severity.FATAL,
    source="https://github.com/pytorch/pytorch/issues/5040",
    words=lambda: (_("shared memory"), _("/dev/shm has room for the batches that two workers prefetch")),
    quick=True,
)
def size(data: Data, context: Context) -> Verdict:
    total, free = data["total"], data["free"]
    here = _("/dev/shm: {total}, {free} free").format(total=shown(total), free=shown(free))
    if total == _CONTAINER_DEFAULT:
        here = _("/dev/shm: {total}, the default of containers, {free} free").format(
            total=shown(total), free=shown(free)
        )
    if free < REHEARSAL_NEED:
        return fail(
            _("{here}; two workers need {need} for the smallest rehearsal").format(
                here=here, need=shown(REHEARSAL_NEED)
            ),
            hint=remedy("shm-small"),
        )
    if free < TYPICAL_NEED:
        return warn(
            _("{here}; batches of 64 images of 224 x 224 need {need}").format(
                here=here, need=shown(TYPICAL_NEED)
            ),
            hint=remedy("shm-small"),
        )
    if data["type"] not in (None, "tmpfs"):
        return warn(
            _("/dev/shm is a {type}, not a tmpfs: batches go through a disk").format(type=data["type"]),
            hint=remedy("shm-closed"),
        )
    return ok(here)


def _killed(outcome: Outcome, context: Context) -> Verdict | None:
    if outcome.out_of_memory or outcome.signal == "SIGKILL":
        return fail(
            _("a process that took shared memory was killed: the memory limit is nearly reached"),
            detail=outcome.output,
            hint=remedy("out-of-memory"),
        )
    return None


@check(
    "shm.capacity",
    job=_CAPACITY,
    severity=Severity.FATAL,
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    words=lambda: (
        _("shared memory to be had"),
        _("that room can be allocated for real, within the memory limit that shared memory counts against"),
    ),
    needs=("interpreter.runs", "shm.writable"),
    ended=_killed,
)
def capacity(data: Data, context: Context) -> Verdict:
    limits = {
        "mount": data["allocated"] if data["problem"] else data["mount_free"],
        "cgroup": data["cgroup_left"],
        "host": data["host_left"],
    }
    limiter, usable = min(
        ((name, amount) for name, amount in limits.items() if amount is not None), key=lambda pair: pair[1]
    )
    words = {
        "mount": _("the size of /dev/shm"),
        "cgroup": _("the memory limit of this container or job"),
        "host": _("the memory of this machine"),
    }
    hint = remedy("shm-small") if limiter == "mount" else remedy("out-of-memory")
    said = _("{usable} to be had, bounded by {limiter}").format(usable=shown(usable), limiter=words[limiter])
    detail = data["problem"] or ""
    if usable < REHEARSAL_NEED:
        return fail(
            _("only {said}; the smallest rehearsal needs {need}").format(
                said=said, need=shown(REHEARSAL_NEED)
            ),
            detail=detail,
            hint=hint,
        )
    if usable < data["need"]:
        return warn(
            _("{said}; batches of 64 images of 224 x 224 need {need}").format(
                said=said, need=shown(data["need"])
            ),
            detail=detail,
            hint=hint,
        )
    return ok(
        _("{allocated} allocated and given back; {said}").format(
            allocated=shown(data["allocated"]), said=said
        )
    )


def _closed(outcome: Outcome, context: Context) -> Verdict | None:
    if not outcome.chain:
        return None
    return fail(
        _("/dev/shm cannot be used: {problem}").format(problem=outcome.chain[0]),
        detail=outcome.output,
        hint=remedy("shm-small") if "No space left" in outcome.text else remedy("shm-closed"),
    )


@check(
    "shm.writable",
    job=_WRITABLE,
    severity=Severity.FATAL,
    source="https://man7.org/linux/man-pages/man7/shm_overview.7.html",
    words=lambda: (_("shared memory access"), _("files and locks can be made in /dev/shm")),
    quick=True,
    ended=_closed,
)
def writable(data: Data, context: Context) -> Verdict:
    if data["mode"] != "0o1777":
        return warn(
            _("/dev/shm can be written by this user, but its mode is {mode}").format(mode=data["mode"][2:]),
            hint=remedy("shm-closed"),
        )
    return ok(_("files and locks can be made"))
