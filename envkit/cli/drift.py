"""envkit drift: what an environment has become since it was made from its lock, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from envkit import install, paths
from envkit.cli.axes import Mirrors, mirror_options
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.view import terminal_columns
from envkit.errors import ExitCode
from envkit.messages import _
from envkit.model import Check, Environment, Lock, Report, Status
from envkit.report import to_json, to_text

_WELL = (Status.OK, Status.WARN)


@verb("drift")
@click.argument("environment")
@click.option("--deep", is_flag=True, help="Hash every file, on all cores, instead of a look at each.")
@click.option("--repair", is_flag=True, help="Make it again from its lock, in place, if it has drifted.")
@click.option(
    "--lock",
    "file",
    type=click.Path(path_type=Path),
    help="Compare with this lock instead of the copy in the environment.",
)
@mirror_options
def command(
    session: Session, environment: str, deep: bool, repair: bool, file: Path | None, mirrors: Mirrors
) -> Outcome:
    """Exits 1 where something differs, or where there is no lock to tell by.

    Packages missing, extra, added by pip or of another version, build or archive; files missing or
    changed; files of nobody in site-packages; what would be imported or loaded before the environment's
    own; an environment that was moved.
    """
    from envkit.lock import read_lock

    found = install.read_environment(environment)
    lock = read_lock(file) if file is not None else None
    if repair:
        return _repaired(session, found, deep=deep, lock=lock, mirrors=mirrors)
    report = install.drift(found, deep=deep, lock=lock, observer=session.observer)
    return Outcome(data=to_json(report), text=_text(report, session), code=_code(report))


def _repaired(
    session: Session, found: Environment, *, deep: bool, lock: Lock | None, mirrors: Mirrors
) -> Outcome:
    done = install.repair(
        found,
        routes=mirrors.routes(),
        cache=paths.cache(),
        deep=deep,
        lock=lock,
        observer=session.observer,
    )
    now = done.after or done.before
    data: dict[str, Any] = to_json(now)
    data |= {"repaired": done.after is not None, "lost": list(done.lost), "before": to_json(done.before)}
    said = (
        _("{prefix} was made again from its lock").format(prefix=found.prefix)
        if done.after is not None
        else _("{prefix} is as its lock says; nothing was done").format(prefix=found.prefix)
    )
    return Outcome(data=data, text=f"{said}\n\n{_text(now, session)}", code=_code(now))


def _code(report: Report) -> ExitCode:
    return ExitCode.OK if all(check.status in _WELL for check in report.checks) else ExitCode.FINDINGS


def _text(report: Report, session: Session) -> str:
    compared = not any(check.status is Status.SKIP for check in report.checks)
    good = _("as its lock says") if compared else _("nothing found, as far as can be told without its lock")
    return to_text(
        report,
        color=session.color,
        verbose=session.verbose,
        columns=terminal_columns() or 100,
        verdicts=(good, _("not as its lock says, or not from this shell")),
        shown=_shown(session.verbose),
    )


def _shown(verbose: int) -> Callable[[Check], bool]:
    """Without -v what is good has no line, but for what it was compared with."""
    return lambda check: verbose > 0 or check.status is not Status.OK or check.id == "drift.lock"
