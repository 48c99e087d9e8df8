"""Why a spec cannot be solved, in a few lines: the chain, what is lacking, one change seen to work."""

from __future__ import annotations

from collections.abc import Sequence

from envkit.errors import Findings
from envkit.messages import _
from envkit.model import Spec
from envkit.solve.engine import Index, Unsolvable
from envkit.solve.missing import lacks
from envkit.solve.reason import parse_reason
from envkit.solve.relax import propose
from envkit.solve.shelf import Shelf

__all__ = ["explain"]

_LACKS_SHOWN = 3


def explain(spec: Spec, specs: Sequence[str], index: Index, shelf: Shelf, problem: Unsolvable) -> Findings:
    """The Findings to raise for what the solver refused; its `details` hold all of it as data."""
    reason = parse_reason(problem.text)
    found = lacks(index, spec.virtual_packages[index.platform], reason)
    proposal = propose(spec, specs, index, shelf, found, problem.text)
    lines = [*reason.lines, *map(str, found[:_LACKS_SHOWN])]
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
        message,
        hint,
        details={
            "variant": spec.variant.name,
            "platform": index.platform,
            "specs": list(specs),
            "channels": list(index.channels),
            "chain": list(reason.lines),
            "lacking": [lack.to_json() for lack in found],
            "proposal": {"kind": proposal.kind, "text": proposal.text, **proposal.data} if proposal else None,
        },
    )
