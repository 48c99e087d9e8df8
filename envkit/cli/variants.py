"""envkit variants: the matrix as a table, with what is rendered, locked and installed of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envkit import install, lock, paths
from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.view import terminal_columns
from envkit.errors import InputError
from envkit.files import read_text
from envkit.messages import _
from envkit.model import Spec
from envkit.render import environment_file, render
from envkit.report import table
from envkit.up import project


@verb("variants")
def command(session: Session) -> Outcome:
    root, known = project()
    rows: list[dict[str, Any]] = []
    for variant in known.variants:
        state = lock.check(root, known, variant)
        locked = state.state not in ("missing", "unkept", "unreadable")
        rows.append(
            {
                "variant": variant.name,
                "python": variant.python,
                "accelerator": variant.accelerator,
                "torch": variant.torch,
                "source": variant.source,
                "extras": list(variant.extras),
                "platforms": list(variant.platforms),
                "rendered": _is_rendered(environment_file(root, variant), render(known, variant)),
                "locked": locked,
                "fresh": locked and state.state != "stale",
                "locked_torch": lock.locked_version(state.path, lock.TORCH_NAMES) if locked else None,
                "installed": install.is_environment(paths.environments() / variant.name),
                "problem": state.reason if state.state == "unreadable" else "",
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


def _is_rendered(file: Path, spec: Spec) -> bool:
    try:
        return file.exists() and read_text(file) == spec.text
    except InputError:
        return False


def _lock_state(row: dict[str, Any]) -> str:
    """The locked version of torch, and whether the lock or environment.yml must be made anew."""
    if row["problem"]:
        return str(row["problem"])
    if not row["locked"]:
        return _("not locked")
    remark = _("(stale)") if not row["fresh"] else "" if row["rendered"] else _("(not rendered)")
    return f"{row['locked_torch'] or '?'} {remark}".rstrip()
