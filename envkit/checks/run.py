"""Run the selected checks: forks of one interpreter first, then those that want one of their own."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from envkit import paths
from envkit.checks import leftovers
from envkit.checks.catalogue import CATALOGUE
from envkit.checks.definition import CheckInfo, Job, Where
from envkit.checks.interpreter import Interpreter, run_fresh
from envkit.checks.ledger import Ledger
from envkit.checks.outcome import Outcome
from envkit.checks.seat import Seat
from envkit.checks.selection import choose
from envkit.checks.target import Target
from envkit.errors import Error
from envkit.messages import _
from envkit.model import Check, Report, Status
from envkit.progress import SILENT, Observer

__all__ = ["validate"]

_AT_ONCE = 2
"""Fresh interpreters at a time: each keeps about one core busy with importing torch."""


def validate(
    target: Target,
    *,
    quick: bool = False,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    observer: Observer = SILENT,
    env: Mapping[str, str] | None = None,
    catalogue: Sequence[CheckInfo] = CATALOGUE,
) -> Report:
    """Prove that an interpreter works here.

    `quick` runs what needs one import of torch at most. `only` and `skip` hold ids or areas of checks
    (InputError for an unknown one). `env` replaces the variables to run in: by default the environment's
    own, or this process's for a bare interpreter. Whatever is wrong with the target is a Check of the
    Report; Error is raised only where this machine gives no folder to work in. An interrupt ends every
    process of the run.
    """
    since = time.monotonic()
    selection = choose(catalogue, quick=quick, only=only, skip=skip)
    variables, trouble = (dict(env), "") if env is not None else target.variables()
    before = leftovers.shared_memory()
    ledger = Ledger(target, selection.run, entered=lambda: observer.advance(_("validate")))
    with _folder() as folder:
        seat = Seat(python=target.python, variables=variables, folder=folder)
        observer.start(_("validate"), total=len(selection.run), unit=_("checks"))
        try:
            _run(selection.run, ledger, seat)
        finally:
            seat.groups.end_all()
            leftovers.clear(before, seat.token, seat.owned)
            observer.finish(_("validate"))
    if trouble:
        observer.note(_("not run in the environment's own variables: {reason}").format(reason=trouble))
    shown = tuple(check for check in ledger.checks if check.id in selection.shown or _is_bad(check))
    return Report(subject=target.subject, checks=shown, seconds=round(time.monotonic() - since, 3))


def _run(infos: Sequence[CheckInfo], ledger: Ledger, seat: Seat) -> None:
    with Interpreter(seat) as interpreter:
        started = interpreter.start()
        for where in (Where.BARE, Where.HERE, Where.WARM):
            for job, mine in _jobs(infos, where):
                left = [info for info in mine if not ledger.spare(info)]
                if left:
                    ledger.judge(left, interpreter.run(job) if started.ended_well else started)
    _run_fresh(list(_jobs(infos, Where.FRESH)), ledger, seat)


def _run_fresh(waiting: list[tuple[Job, list[CheckInfo]]], ledger: Ledger, seat: Seat) -> None:
    """Run each job as soon as what it needs is decided, a few at a time."""
    running: dict[Future[Outcome], list[CheckInfo]] = {}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="check") as pool:
        try:
            while waiting or running:
                for job, mine in list(waiting):
                    if not ledger.ready(mine[0]):
                        continue
                    waiting.remove((job, mine))
                    left = [info for info in mine if not ledger.spare(info)]
                    if left:
                        running[pool.submit(run_fresh, seat, job)] = left
                if running:
                    # In short waits, for a signal that comes just before one is seen only at its end.
                    for future in wait(running, timeout=0.5, return_when=FIRST_COMPLETED).done:
                        ledger.judge(running.pop(future), future.result())
        except BaseException:
            # The threads wait for their processes: those must end first, or this would take their limits.
            seat.groups.end_all()
            pool.shutdown(cancel_futures=True)
            raise


def _jobs(infos: Sequence[CheckInfo], where: Where) -> Iterator[tuple[Job, list[CheckInfo]]]:
    """The jobs to run in one kind of process, each with the checks that it gives data to."""
    by_job: dict[str, tuple[Job, list[CheckInfo]]] = {}
    for info in infos:
        if info.job.where is where:
            by_job.setdefault(info.job.id, (info.job, []))[1].append(info)
    yield from by_job.values()


def _is_bad(check: Check) -> bool:
    return check.status in (Status.FAIL, Status.CRASH)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A private folder for what the jobs write: in the temporary folder or, failing that, in our state."""
    made: str | None = None
    try:
        made = tempfile.mkdtemp(prefix=paths.scratch("checks"))
    except OSError:
        with contextlib.suppress(OSError):
            paths.state().mkdir(parents=True, exist_ok=True)
            made = tempfile.mkdtemp(prefix=paths.scratch("checks"), dir=paths.state())
    if made is None:
        raise Error(
            _("there is no folder to work in: neither {temporary} nor {state} can be written").format(
                temporary=tempfile.gettempprefix(), state=paths.state()
            ),
            _("free some space, or set TMPDIR or ENVKIT_HOME to a folder you may write to"),
        )
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)
