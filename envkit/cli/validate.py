"""envkit validate: prove that an environment works here."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import click

from envkit import checks
from envkit.cli.axes import axes_options, request_of
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.invocation import typed
from envkit.cli.view import terminal_columns
from envkit.errors import ExitCode, InputError
from envkit.install import read_environment
from envkit.matrix import Axes
from envkit.messages import _
from envkit.report import table, to_json, to_text
from envkit.up.provision import find

_FIELDS = ("id", "severity", "limit", "proves", "source")
_VERSION = re.compile(r"\d+(\.\d+)*")


@verb("validate")
@click.argument("environment", required=False, metavar="[ENV]")
@axes_options
@click.option("--quick", is_flag=True, help="Only what one import of torch can prove.")
@click.option("--only", metavar="ID", multiple=True, help="Run only this check or area; again for more.")
@click.option("--skip", metavar="ID", multiple=True, help="Leave out this check or area; again for more.")
@click.option(
    "--list", "listing", is_flag=True, help="Print every check and what it proves; with -v its source."
)
def command(
    session: Session,
    environment: str | None,
    axes: Axes,
    quick: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    listing: bool,
) -> Outcome:
    """ENV is a name or a prefix; without one it is what `envkit up` would make from the same axes.

    --python takes a version, as an axis, or the path of any interpreter to validate instead.
    """
    if listing:
        return _listing(session)
    target = _target(environment, axes)
    report = checks.validate(target, quick=quick, only=only, skip=skip, observer=session.observer)
    return Outcome(
        data=to_json(report),
        text=to_text(typed(report), color=session.color, verbose=session.verbose),
        code=ExitCode.OK if report.ok else ExitCode.FINDINGS,
    )


def _target(environment: str | None, axes: Axes) -> checks.Target:
    if axes.python and not _VERSION.fullmatch(axes.python):
        if environment:
            raise InputError(_("an environment and an interpreter were both given"), _("name one of the two"))
        found = shutil.which(os.path.expanduser(axes.python))  # noqa: PTH111, which() wants a string
        accelerator = None if axes.cuda == "auto" else axes.cuda
        return checks.Target.at(Path(found or axes.python), accelerator)
    if environment:
        return checks.Target.of(read_environment(environment))
    return checks.Target.of(find(request_of(None, axes)))


def _listing(session: Session) -> Outcome:
    """Every check; where its knowledge comes from too with -v, which makes lines too long for a terminal."""
    header = (_("check"), _("severity"), _("limit"), _("proves"), _("source"))
    lines: list[tuple[str, ...]] = []
    rows: list[dict[str, object]] = []
    for check in checks.CATALOGUE:
        lines.append((check.id, check.severity.value, f"{check.limit:.0f} s", check.proves, check.source))
        rows.append(dict(zip(_FIELDS, lines[-1], strict=True)) | {"limit": check.limit})
    shown = len(header) if session.verbose > 0 else len(header) - 1
    text = table(header[:shown], [line[:shown] for line in lines], columns=terminal_columns())
    return Outcome(data={"checks": rows}, text=text)
