"""envkit render: templates to environment.yml, for one variant or all that the matrix lists."""

from __future__ import annotations

import difflib

import click

from envkit.cli.axes import axes_options, chosen_variants
from envkit.cli.frame import Outcome, Session, verb
from envkit.errors import ExitCode
from envkit.files import read_text, write_atomically
from envkit.matrix import Axes
from envkit.messages import _
from envkit.render import render
from envkit.up import project


@verb("render")
@click.argument("variant", required=False)
@axes_options
@click.option("--all", "every", is_flag=True, help="Every variant of the matrix.")
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 where a file differs. All where none is named."
)
@click.option("--stdout", "show", is_flag=True, help="Print instead of writing.")
def command(
    session: Session, variant: str | None, axes: Axes, every: bool, check: bool, show: bool
) -> Outcome:
    root, known = project()
    every = every or (check and not variant and axes == Axes())
    chosen = chosen_variants(known, variant, axes, every=every)
    rows: list[dict[str, object]] = []
    lines: list[str] = []
    for each in chosen:
        path = root / "environments" / each.name / "environment.yml"
        spec = render(known, each)
        if show:
            lines.append(spec.text.rstrip("\n"))
            rows.append({"variant": each.name, "text": spec.text})
            continue
        before = read_text(path) if path.exists() else ""
        same = before == spec.text
        if not same and not check:
            write_atomically(path, spec.text)
        if not same and check and session.verbose >= 0:
            lines += difflib.unified_diff(
                before.splitlines(),
                spec.text.splitlines(),
                str(path),
                _("as the matrix renders it"),
                lineterm="",
            )
        rows.append({"variant": each.name, "path": str(path), "changed": not same})
        state = _("unchanged") if same else _("differs") if check else _("written")
        if not same or session.verbose >= 0:
            lines.append(_("{name}: {text}").format(name=each.name, text=state))
    stale = check and any(row.get("changed") for row in rows)
    return Outcome(
        data={"variants": rows}, text="\n".join(lines), code=ExitCode.FINDINGS if stale else ExitCode.OK
    )
