"""envkit remove: an environment and nothing else."""

from __future__ import annotations

import click

from envkit import install
from envkit.cli.frame import Outcome, Session, verb
from envkit.install.remove import removable
from envkit.messages import _
from envkit.up.proof import forget


@verb("remove")
@click.argument("environment", required=False)
def command(session: Session, environment: str | None) -> Outcome:
    found = removable(environment or "")
    forget(found)
    install.remove(found, session.observer)
    return Outcome(
        data={"environment": found.name, "prefix": str(found.prefix)},
        text=_("removed {prefix}; its packages stay in the cache: `envkit clean packages` frees them").format(
            prefix=found.prefix
        ),
    )
