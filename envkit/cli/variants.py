"""envkit variants: the matrix as a table, with what is rendered, locked and installed of it."""

from __future__ import annotations

from typing import Any

from envkit import install, paths
from envkit.cli.frame import Outcome, Session, verb
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
    words = {True: _("yes"), False: _("no")}
    header = (_("variant"), _("python"), _("accelerator"), _("torch"), _("source"), _("extras"),
              _("rendered"), _("locked"), _("installed"))  # fmt: skip
    lines = [
        (
            row["variant"],
            row["python"],
            row["accelerator"],
            row["torch"],
            row["source"],
            " ".join(row["extras"]),
            words[row["rendered"]],
            row["problem"]
            or (row["locked_torch"] or words[row["locked"]])
            + ("" if row["fresh"] or not row["locked"] else " " + _("(stale)")),
            words[row["installed"]],
        )
        for row in rows
    ]
    return Outcome(data={"variants": rows}, text=table(header, lines))
