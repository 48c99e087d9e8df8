"""envkit run: a command inside an environment."""

from __future__ import annotations

import click

from envkit import install
from envkit.cli.frame import Outcome, Session, verb


@verb("run", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
@click.argument("environment")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD…")
def command(session: Session, environment: str, argv: tuple[str, ...]) -> Outcome:
    argv = argv[1:] if argv[0] == "--" else argv
    if not argv:
        raise click.UsageError("no command was given")
    return Outcome(code=install.run(install.read_environment(environment), list(argv)))
