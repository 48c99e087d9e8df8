"""envkit run: a command inside an environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from envkit import install
from envkit.cli.frame import Outcome, Session, verb


@verb("run", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
@click.argument("environment")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD…")
def command(session: Session, environment: str, argv: tuple[str, ...]) -> Outcome:
    """With --json, stdout is kept for the JSON: what the command prints goes to stderr."""
    argv = argv[1:] if argv[0] == "--" else argv
    if not argv:
        raise click.UsageError("no command was given")
    found = install.read_environment(environment)
    with _stdout_kept(session.json):
        code = install.run(found, list(argv))
    return Outcome(data={"environment": found.name, "prefix": str(found.prefix), "command": argv}, code=code)


@contextmanager
def _stdout_kept(keep: bool) -> Iterator[None]:
    """With `keep`, children started meanwhile get stderr as their stdout."""
    if not keep:
        yield
        return
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)
