"""envkit up: axes or a variant to a validated environment."""

from __future__ import annotations

from pathlib import Path

import click

from envkit.cli.axes import axes_options, mirror_option, request_of
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.speak import activation_line, provisioned_data
from envkit.errors import ExitCode
from envkit.matrix import Axes
from envkit.report import to_text
from envkit.up import up


@verb("up")
@click.argument("variant", required=False)
@axes_options
@mirror_option
@click.option(
    "--lock", type=click.Path(path_type=Path), help="Install this lock file instead of a variant's."
)
@click.option("--name", metavar="ENV", help="Name of the environment; by default the variant's.")
@click.option("--prefix", type=click.Path(path_type=Path), help="Folder of the environment.")
def command(
    session: Session,
    variant: str | None,
    axes: Axes,
    mirror: str,
    lock: Path | None,
    name: str | None,
    prefix: Path | None,
) -> Outcome:
    request = request_of(variant, axes, mirror=mirror, name=name, prefix=prefix, lock=lock)
    made = up(request, session.observer)
    report = made.report
    assert report is not None
    lines = []
    if not report.ok or session.verbose > 0:
        lines.append(to_text(report, color=session.color, verbose=session.verbose))
    if made.fallback:
        lines.append(made.reason)
    lines.append(activation_line(made.environment))
    return Outcome(
        data=provisioned_data(made),
        text="\n".join(lines),
        code=ExitCode.OK if report.ok else ExitCode.FINDINGS,
    )
