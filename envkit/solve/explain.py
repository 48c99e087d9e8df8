"""Why a spec cannot be solved, in a few lines: the chain, what is lacking, one change seen to work.

Whatever the solver's words leave out, every spec that takes part in the conflict is named.
"""

from __future__ import annotations

from collections.abc import Sequence

from envkit.channels import shown, shown_text
from envkit.errors import Findings
from envkit.messages import _
from envkit.model import Spec
from envkit.solve.conflict import conflict, names_in
from envkit.solve.engine import Index, Unsolvable
from envkit.solve.missing import lacks
from envkit.solve.reason import parse_reason
from envkit.solve.relax import propose
from envkit.solve.shelf import Shelf

__all__ = ["explain"]

_LACKS_SHOWN = 3
_SPECS_SHOWN = 12


def explain(spec: Spec, specs: Sequence[str], index: Index, shelf: Shelf, problem: Unsolvable) -> Findings:
    """The Findings to raise for what the solver refused; its `details` hold all of it as data."""
    reason = parse_reason(problem.text)
    virtual_packages = spec.virtual_packages[index.platform]
    found = lacks(index, virtual_packages, reason)
    lines = [*reason.lines, *map(str, found[:_LACKS_SHOWN])]
    named = names_in("\n".join(lines), specs)
    sides = conflict(specs, index, virtual_packages, named=named)
    if names_in("\n".join(sides), sides) - named:
        lines.append(_together(sides))
    proposal = propose(spec, specs, index, shelf, found, problem.text)
    message = _("{name} cannot be solved for {platform}:{reason}").format(
        name=spec.variant.name, platform=index.platform, reason="".join(f"\n  {line}" for line in lines)
    )
    hint = (
        _("{proposal} (edit {place})").format(proposal=proposal.text, place=spec.origin)
        if proposal
        else _("no small change was found that solves it: relax several versions in {place}").format(
            place=spec.origin
        )
    )
    return Findings(
        shown_text(message),
        shown_text(hint),
        details={
            "variant": spec.variant.name,
            "platform": index.platform,
            "specs": list(specs),
            "channels": [shown(channel) for channel in index.channels],
            "chain": [shown_text(line) for line in reason.lines],
            "conflict": list(sides),
            "lacking": [lack.to_json() for lack in found],
            "proposal": {"kind": proposal.kind, "text": proposal.text, **proposal.data} if proposal else None,
        },
    )


def _together(sides: Sequence[str]) -> str:
    if len(sides) == 1:
        return _("`{spec}` cannot be had here, whatever else is asked for").format(spec=sides[0])
    shown = [f"`{side}`" for side in sides[:_SPECS_SHOWN]] + ["…"] * (len(sides) > _SPECS_SHOWN)
    return _("these exclude each other: {specs}").format(specs=", ".join(shown))
