"""envkit variants: the matrix as a table, with what is rendered, locked and installed of it."""

from __future__ import annotations

from typing import Any

from envkit import install, paths
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.view import terminal_columns
from envkit.errors import Error
from envkit.files import read_text
from envkit.messages import _
from envkit.render import render
from envkit.report import table
from envkit.up import kept_lock, project


@verb("variants")
def command(session: Session) -> Outcome:
    root, known = project()
    rows: list[dict[str, Any]] = []
    for variant in known.variants:
        path = root / "environments" / variant.name / "environment.yml"
        problem = ""
        found, fresh = None, False
        try:
            found, fresh = kept_lock(root, known, variant)
        except Error as unreadable:
            problem = str(unreadable)
        rows.append(
            {
                "variant": variant.name,
                "python": variant.python,
                "accelerator": variant.accelerator,
                "torch": variant.torch,
                "source": variant.source,
                "extras": list(variant.extras),
                "platforms": list(variant.platforms),
                "rendered": path.exists() and read_text(path) == render(known, variant).text,
                "locked": found is not None,
                "fresh": fresh,
                "locked_torch": next((p.version for p in found.packages if p.name == "pytorch"), None)
                if found
                else None,
                "installed": install.is_environment(paths.environments() / variant.name),
                "problem": problem,
            }
        )
    others = [name for name in install.names() if known.named(name) is None]
    lines = [
        (
            row["variant"],
            row["python"],
            row["accelerator"],
            row["source"],
            " ".join(row["extras"]),
            _lock_state(row),
            _("yes") if row["installed"] else _("no"),
        )
        for row in rows
    ]
    header = (_("variant"), _("python"), "CUDA", _("source"), _("extras"), "torch", _("installed"))
    text = [table(header, lines, columns=terminal_columns()), ""]
    text.append(_("extras to ask for: {names}").format(names=" ".join(known.extras)))
    if others:
        text.append(_("other environments: {names}").format(names=" ".join(others)))
    return Outcome(
        data={"variants": rows, "extras": list(known.extras), "others": others}, text="\n".join(text)
    )


def _lock_state(row: dict[str, Any]) -> str:
    """The locked version of torch, and whether the lock or environment.yml must be made anew."""
    if row["problem"]:
        return str(row["problem"])
    if not row["locked"]:
        return _("not locked")
    remark = _("(stale)") if not row["fresh"] else "" if row["rendered"] else _("(not rendered)")
    return f"{row['locked_torch'] or '?'} {remark}".rstrip()
