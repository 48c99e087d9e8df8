"""envkit activate: what a shell must evaluate to enter an environment."""

from __future__ import annotations

import click

from envkit import install
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.invocation import SHELLS, shell_in_use


@verb("activate")
@click.argument("environment")
@click.option("--shell", type=click.Choice(SHELLS), help="The shell to write for; by default yours.")
def command(session: Session, environment: str, shell: str | None) -> Outcome:
    """\b
    bash, zsh, sh:  eval "$(envkit activate ENV)"
    fish:           envkit activate ENV | source
    to leave:       envkit_deactivate
    """
    found = install.read_environment(environment)
    script = install.activation(found, shell or shell_in_use())
    return Outcome(
        data={"environment": found.name, "prefix": str(found.prefix), "script": script}, text=script
    )
