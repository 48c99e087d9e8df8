"""Why a spec cannot be solved, in a few lines: the chain, what is lacking, one change seen to work.

Whatever the solver's words leave out, every spec that takes part in the conflict is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envkit.channels import shown, shown_text
from envkit.errors import Findings
from envkit.lock import TORCH_NAMES
from envkit.messages import _
from envkit.model import Spec, VirtualPackage
from envkit.solve.conflict import conflict, name_of, names_in, only_with
from envkit.solve.engine import Index, Unsolvable
from envkit.solve.missing import Lack, lacks
from envkit.solve.reason import SHORT, parse_reason
from envkit.solve.relax import Proposal, propose
from envkit.solve.shelf import Shelf

__all__ = ["explain"]

_LACKS_SHOWN = 3
_SPECS_SHOWN = 12
_WITH_A_REASON = re.compile(r"^\s*- (?P<spec>[^#\n]+?)[ \t]+# (?P<why>.+)$", re.MULTILINE)


def explain(spec: Spec, specs: Sequence[str], index: Index, shelf: Shelf, problem: Unsolvable) -> Findings:
    """The Findings to raise for what the solver refused; its `details` hold all of it as data.

    The message ends in the cause; `details["chain"]` is all that the solver said, without repetitions.
    """
    reason = parse_reason(problem.text, specs)
    virtual_packages = spec.virtual_packages[index.platform]
    found = lacks(index, virtual_packages, reason, specs)
    lacking = _told(found)
    named = names_in("\n".join((*reason.brief, *lacking)), specs)
    reasons = _reasons(spec)
    sides = conflict(specs, index, virtual_packages, named=named, added=reasons)
    why = _why(sides, index, virtual_packages, reasons)
    # Of a long chain nothing is shown where the sides tell it, nor of one that a lack says better.
    told = (why and len(reason.lines) > SHORT) or (lacking and len(reason.lines) == 1)
    lines = [*(() if told else reason.brief), *lacking]
    if sides and (why or names_in("\n".join(sides), sides) - named):
        lines += [_together(sides), *why]
    proposals = propose(spec, specs, index, shelf, found, problem.text)
    message = _("{name} cannot be solved for {platform}:{reason}").format(
        name=spec.variant.name, platform=index.platform, reason="".join(f"\n  {line}" for line in lines)
    )
    return Findings(
        shown_text(message),
        shown_text(_hint(spec, proposals, found)),
        details={
            "variant": spec.variant.name,
            "platform": index.platform,
            "specs": list(specs),
            "channels": [shown(channel) for channel in index.channels],
            "chain": [shown_text(line) for line in reason.lines],
            "conflict": list(sides),
            "lacking": [lack.to_json() for lack in found],
            "proposal": proposals[0].to_json() if proposals else None,
            "proposals": [proposal.to_json() for proposal in proposals],
        },
    )


def _told(found: Sequence[Lack]) -> list[str]:
    lines = [str(lack) for lack in found[:_LACKS_SHOWN]]
    if len(found) > _LACKS_SHOWN:
        lines.append(_("… and {count} more").format(count=len(found) - _LACKS_SHOWN))
    return lines


def _reasons(spec: Spec) -> Mapping[str, str]:
    """Why a spec that nobody wrote stands in a rendered environment.yml, by name: the comment beside it."""
    if _foreign(spec):
        return {}
    return {name_of(match["spec"].strip("\"'")): match["why"] for match in _WITH_A_REASON.finditer(spec.text)}


def _why(
    sides: Sequence[str],
    index: Index,
    virtual_packages: Sequence[VirtualPackage],
    reasons: Mapping[str, str],
) -> list[str]:
    """What of one side the others leave, where that can be said in a line; and why a side is there at all."""
    lines = []
    if len(sides) > 1:
        # Python's versions say most, PyTorch's least: its build stands for the CUDA version.
        side = min(
            sides, key=lambda one: (name_of(one) != "python", " " not in one, name_of(one) in TORCH_NAMES)
        )
        others = [one for one in sides if one != side]
        versions = only_with(side, others, index, virtual_packages)
        if versions:
            lines.append(
                _("with {specs} there is {name} {versions} only").format(
                    specs=_quoted(others), name=name_of(side), versions=", ".join(versions)
                )
            )
    lines += [
        _("`{spec}` stands there because: {why}").format(spec=side, why=reasons[name_of(side)])
        for side in sides
        if name_of(side) in reasons
    ]
    return lines


def _together(sides: Sequence[str]) -> str:
    if len(sides) == 1:
        return _("`{spec}` cannot be had here, whatever else is asked for").format(spec=sides[0])
    return _("these exclude each other: {specs}").format(specs=_quoted(sides))


def _quoted(specs: Sequence[str]) -> str:
    return ", ".join([f"`{spec}`" for spec in specs[:_SPECS_SHOWN]] + ["…"] * (len(specs) > _SPECS_SHOWN))


def _hint(spec: Spec, proposals: Sequence[Proposal], found: Sequence[Lack]) -> str:
    if not proposals and any(lack.kind == "name" for lack in found):
        return _("correct the names in {place}").format(place=spec.origin)
    if not proposals:
        return _("no small change was found that solves it: relax several versions in {place}").format(
            place=spec.origin
        )
    return _("; or ").join(_placed(spec, proposal) for proposal in proposals)


def _placed(spec: Spec, proposal: Proposal) -> str:
    """The proposal with the place where it is made: the option that was given, or the file."""
    if proposal.options and not spec.listed:
        return _("{proposal}: give `{options}`").format(
            proposal=proposal.text, options=" ".join(proposal.options)
        )
    if proposal.kind == "machine" and proposal.data["name"] == "__glibc" and not _foreign(spec):
        return _("{proposal} (raise `glibc` of the source {source} in {place})").format(
            proposal=proposal.text, source=spec.variant.source, place=spec.origin
        )
    return _("{proposal} (edit {place})").format(proposal=proposal.text, place=spec.origin)


def _foreign(spec: Spec) -> bool:
    """Whether the spec is somebody's file rather than rendered from a matrix."""
    return not spec.origin.endswith("matrix.yaml")
