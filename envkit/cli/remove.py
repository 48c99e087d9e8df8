"""envkit remove: an environment and nothing else."""

from __future__ import annotations

import click

from envkit import install
from envkit.cli.frame import Outcome, Session, verb
from envkit.messages import _


@verb("remove")
@click.argument("environment")
def command(session: Session, environment: str) -> Outcome:
    found = install.read_environment(environment)
    install.remove(found)
    return Outcome(
        data={"environment": found.name, "prefix": str(found.prefix)},
        text=_("removed {prefix}").format(prefix=found.prefix),
    )
