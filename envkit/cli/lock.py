"""envkit lock: pin a variant, or every variant of the matrix, for all its platforms."""

from __future__ import annotations

import time

import click

from envkit.cli.axes import axes_options, chosen_variants, mirror_option
from envkit.cli.frame import Outcome, Session, verb
from envkit.errors import ExitCode, Findings
from envkit.files import write_atomically
from envkit.matrix import Axes
from envkit.messages import _
from envkit.model import Lock
from envkit.render import render
from envkit.up import kept_lock, lock_variant, project


@verb("lock")
@click.argument("variant", required=False)
@axes_options
@mirror_option
@click.option("--all", "every", is_flag=True, help="Every variant of the matrix.")
@click.option("--check", is_flag=True, help="Solve nothing; exit 1 where a lock is missing or stale.")
def command(
    session: Session, variant: str | None, axes: Axes, mirror: str, every: bool, check: bool
) -> Outcome:
    root, known = project()
    chosen = chosen_variants(known, variant, axes, every=every)
    rows, lines, failed = [], [], False
    if not check:
        from envkit import fetch

        routes = fetch.routes(mirror)
    for each in chosen:
        if check:
            found, fresh = kept_lock(root, known, each)
            state = _("fresh") if fresh else _("stale: the matrix renders another environment.yml now")
            state = state if found else _("not locked")
            failed |= not fresh
            rows.append({"variant": each.name, "fresh": fresh, "path": str(found.path) if found else None})
            lines.append(f"{each.name}: {state}")
            continue
        began = time.monotonic()
        try:
            made = lock_variant(root, known, each, routes=routes, observer=session.observer)
        except Findings as problem:
            if not every:
                raise
            # One variant that cannot be solved must not keep the others from being locked.
            failed = True
            rows.append({"variant": each.name, "error": problem.message, "hint": problem.hint})
            lines.append(f"{each.name}: {problem.message}")
            continue
        if each in known.variants:
            write_atomically(root / "environments" / each.name / "environment.yml", render(known, each).text)
        rows.append({"variant": each.name, "path": str(made.path), "torch": _torch(made)})
        lines.append(
            _("{name}: {count} packages on {platforms}, torch {torch}, {seconds:.1f} s").format(
                name=each.name,
                count=len(made.packages),
                platforms=", ".join(made.platforms),
                torch=_torch(made) or "?",
                seconds=time.monotonic() - began,
            )
        )
    return Outcome(
        data={"variants": rows}, text="\n".join(lines), code=ExitCode.FINDINGS if failed else ExitCode.OK
    )


def _torch(made: Lock) -> str | None:
    return next((p.version for p in made.packages if p.name in ("pytorch", "torch")), None)
