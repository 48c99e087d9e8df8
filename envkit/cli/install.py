"""envkit install: a lock to an environment, without proving it."""

from __future__ import annotations

from pathlib import Path

import click

from envkit.cli.axes import axes_options, mirror_option, request_of
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.speak import activation_line, provisioned_data
from envkit.matrix import Axes
from envkit.up import provision


@verb("install")
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
    made = provision(request, session.observer)
    return Outcome(data=provisioned_data(made), text=activation_line(made.environment))
