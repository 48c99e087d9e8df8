"""Run jobs in the interpreter under test, each within its limit, each in a process group of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

from envkit.checks.definition import TOKEN, Job, Where
from envkit.checks.outcome import Outcome
from envkit.checks.records import Late, Tally
from envkit.checks.seat import Seat, Started, output_of
from envkit.messages import _

__all__ = ["Interpreter", "run_fresh"]

_START_LIMIT = 30.0
_SECONDS_TO_DIE = 5.0
_SIGKILL = 9


class Interpreter:
    """One process that stays: it imports torch once, and forks for every job that can use a fork.

    Use it as a context manager; one job at a time.
    """

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._started: Started | None = None
        self._why_not = ""

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *_exception: object) -> None:
        # Idle, it has nothing to put in order; letting it end by itself would wait for torch to be unloaded.
        self._stop(kill=True)

    def start(self) -> Outcome:
        """Start it and hear its first word; the Outcome says what kept it from starting, if anything did."""
        since = time.monotonic()
        try:
            self._started = self._seat.start({}, "interpreter", stdin=subprocess.PIPE)
        except OSError as problem:
            self._why_not = _("{python} cannot be run: {reason}").format(
                python=self._seat.python, reason=problem.strerror or problem
            )
            return Outcome(job="start", limit=_START_LIMIT, not_started=self._why_not)
        hello: dict[str, Any] | None = None
        late = False
        try:
            hello = self._started.records.next(since + _START_LIMIT)
        except Late:
            late = True
        if hello is not None and "oldest" in hello:
            self._why_not = _("{python} is Python {version}; validating needs {oldest} or newer").format(
                python=self._seat.python,
                version=".".join(map(str, hello["version"])),
                oldest=".".join(map(str, hello["oldest"])),
            )
        elif hello is not None:
            self._seat.memory_groups = tuple(map(Path, hello.get("memory", ())))
            seconds = time.monotonic() - since
            return Outcome(job="start", limit=_START_LIMIT, done=True, code=0, seconds=seconds)
        code = self._stop(kill=late)
        return Outcome(
            job="start",
            limit=_START_LIMIT,
            not_started=self._why_not,
            timed_out=late,
            code=code,
            at="start",
            output=output_of(self._seat.folder, "interpreter"),
            seconds=time.monotonic() - since,
        )

    def run(self, job: Job) -> Outcome:
        """Run one job in a fork of this interpreter, or (Where.HERE) in itself."""
        started = self._started
        if started is None:
            return Outcome(job=job.id, limit=job.limit, not_started=self._why_not or _("it is not running"))
        here = job.where is Where.HERE
        name = "interpreter" if here else job.id
        since, kills = time.monotonic(), self._seat.oom_kills()
        tally, late = Tally(), False
        try:
            started.stdin.write(_line(self._seat, job))
            started.stdin.flush()
            _listen(started, tally, since + job.limit, self._seat)
        except BrokenPipeError:
            pass
        except Late:
            late = True
            self._seat.groups.end(started.process.pid if here else tally.pid or started.process.pid)
            with contextlib.suppress(Late):
                _listen(started, tally, time.monotonic() + _SECONDS_TO_DIE, self._seat)
        if tally.pid is not None:
            self._seat.groups.end(tally.pid)
        if not tally.ended:
            # The interpreter itself is gone, or does not answer any more.
            self._why_not = _("the interpreter ended during another check")
            tally.code = self._stop(kill=False)
        self._seat.own(tally.owned)
        return _outcome(self._seat, job, tally, name, late=late, since=since, kills=kills)

    def _stop(self, *, kill: bool) -> int | None:
        started, self._started = self._started, None
        if started is None:
            return None
        if kill:
            self._seat.groups.end(started.process.pid)
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = started.process.wait(_SECONDS_TO_DIE)
        self._seat.groups.end(started.process.pid)
        with contextlib.suppress(OSError):
            started.stdin.close()
        started.records.close()
        return code


def run_fresh(seat: Seat, job: Job) -> Outcome:
    """Run one job in an interpreter of its own; several may run at once, from several threads."""
    since, kills = time.monotonic(), seat.oom_kills()
    try:
        started = seat.start({"job": _fields(seat, job)}, job.id, stdin=subprocess.DEVNULL)
    except OSError as problem:
        return Outcome(job=job.id, limit=job.limit, not_started=problem.strerror or str(problem))
    tally, late, deadline = Tally(), False, since + job.limit
    try:
        _listen(started, tally, deadline, seat)
        tally.code = started.process.wait(max(0.0, deadline - time.monotonic()))
    except (Late, subprocess.TimeoutExpired):
        late = True
    finally:
        seat.groups.end(started.process.pid)
        started.records.close()
    if late:
        with contextlib.suppress(subprocess.TimeoutExpired):
            tally.code = started.process.wait(_SECONDS_TO_DIE)
    seat.own(tally.owned)
    return _outcome(seat, job, tally, job.id, late=late, since=since, kills=kills)


def _listen(started: Started, tally: Tally, deadline: float, seat: Seat) -> None:
    """Take records until the job has ended or its process is gone. Raises Late."""
    while not tally.ended:
        record = started.records.next(deadline)
        if record is None:
            return
        known = tally.pid
        tally.take(record)
        if tally.pid is not None and known is None:
            seat.groups.add(tally.pid)


def _outcome(
    seat: Seat, job: Job, tally: Tally, name: str, *, late: bool, since: float, kills: int
) -> Outcome:
    return Outcome(
        job=job.id,
        limit=job.limit,
        parts=tally.parts,
        chain=tally.chain,
        at=tally.at,
        code=tally.code,
        done=tally.done,
        timed_out=late,
        out_of_memory=not late and tally.code == -_SIGKILL and seat.oom_kills() > kills,
        output=output_of(seat.folder, name),
        seconds=time.monotonic() - since,
    )


def _line(seat: Seat, job: Job) -> bytes:
    return (json.dumps(_fields(seat, job)) + "\n").encode("ascii")


def _fields(seat: Seat, job: Job) -> dict[str, Any]:
    args = {name: seat.token if value is TOKEN else value for name, value in job.args.items()}
    return {
        "id": job.id,
        "call": job.call,
        "args": args,
        "limit": job.limit,
        "where": "here" if job.where is Where.HERE else "fork",
        "stdout": str(seat.folder / f"{job.id}.out"),
        "stderr": str(seat.folder / f"{job.id}.err"),
    }
