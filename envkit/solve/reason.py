"""What rattler says where a solve fails, parsed: a tree of packages that cannot be, and why.

rattler lists every build of every version, so the text runs to hundreds of lines; what decides is in a few.
The grammar is that of resolvo 0.9's `DisplayUnsat`, as py-rattler 0.28.0 prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from envkit.messages import _

__all__ = ["Excluded", "Reason", "parse_reason", "readable"]

_LINES = 8
_WIDTH = 160
_PREFIX = "Cannot solve the request because of:"
_TREE = " │├└─"
_GENERIC = "The following packages are incompatible"
_CONFLICT = re.compile(
    r"(?P<name>\S+) (?P<versions>.+?), which conflicts with the versions reported above\.?"
)
_VIABLE = " cannot be installed because there are no viable options:"
_REQUIRES = " would require"
_MISSING = (
    re.compile(r"No candidates were found for (?P<spec>.+?)\.?$"),
    re.compile(r"(?P<spec>.+), for which no candidates were found\.?$"),
)
_EXCLUDED = re.compile(
    r"(?P<name>\S+) (?P<versions>.+?) is excluded because due to strict channel priority "
    r"not using this option from: '(?P<channel>[^']+?)/?'"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Excluded:
    """A package that a channel has and strict priority hides, for a channel above has the name as well."""

    name: str
    channel: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """A failed solve: the lines that decide, the specs that nothing matches, and what priority hides."""

    lines: tuple[str, ...]
    missing: tuple[str, ...]
    excluded: tuple[Excluded, ...]


@dataclass(slots=True)
class _Node:
    text: str
    children: list[_Node] = field(default_factory=list)


def parse_reason(text: str) -> Reason:
    """The parts of what the solver said."""
    every = [line.strip(_TREE) for line in text.replace(_PREFIX, "\n").splitlines()]
    missing = [match["spec"] for line in every for form in _MISSING if (match := form.search(line))]
    hidden = [match for line in every if (match := _EXCLUDED.search(line))]
    excluded = dict.fromkeys(Excluded(name=match["name"], channel=match["channel"]) for match in hidden)
    return Reason(
        lines=tuple(_cut([line for root in _roots(text) for line in _lines(root, 0)])),
        missing=tuple(dict.fromkeys(missing)),
        excluded=tuple(excluded),
    )


def readable(text: str) -> str:
    """The solver's explanation without its repetitions, a few lines."""
    return "\n".join(parse_reason(text).lines)


def _roots(text: str) -> list[_Node]:
    top = _Node("")
    path: list[tuple[int, _Node]] = [(-1, top)]
    for line in text.replace(_PREFIX, "").splitlines():
        content = line.strip(_TREE).strip()
        if not content:
            continue
        # A line of the tree is indented by three columns a level; its parent begins further left.
        column = len(line) - len(line.lstrip(_TREE)) if line[0] in "│├└ " else 0
        column = 0 if line.startswith(f" {content}") else column
        while path[-1][0] >= column:
            path.pop()
        node = _Node(content)
        path[-1][1].children.append(node)
        path.append((column, node))
    roots: list[_Node] = []
    for node in top.children:
        roots += node.children if node.text.startswith(_GENERIC) else [node]
    return roots


def _lines(node: _Node, depth: int) -> Iterator[str]:
    """The node and what stands below it, the options of one kind told once."""
    yield "  " * depth + _in_short(node.text)
    children, told = _merged(node.children), set()
    for child in children:
        below = list(_lines(child, depth + 1))
        # The same obstacle below another version of the same package says nothing new.
        kind = (child.text.split(" ")[0], tuple(below[1:]))
        if kind not in told:
            told.add(kind)
            yield from below


def _in_short(text: str) -> str:
    hidden = _EXCLUDED.fullmatch(text)
    if hidden is not None:
        return _("{name} {versions} of {channel} is hidden by strict channel priority").format(
            name=hidden["name"], versions=hidden["versions"], channel=hidden["channel"]
        )
    if text.endswith(_VIABLE):
        return _("{package} cannot be had:").format(package=text.removesuffix(_VIABLE))
    if text.endswith(_REQUIRES):
        return _("{package} requires").format(package=text.removesuffix(_REQUIRES))
    return text


def _merged(nodes: Sequence[_Node]) -> list[_Node]:
    """The nodes, the versions that merely conflict put together by name."""
    merged: list[_Node] = []
    conflicts: dict[str, list[str]] = {}
    for node in nodes:
        match = None if node.children else _CONFLICT.fullmatch(node.text)
        if match is None:
            merged.append(node)
        else:
            conflicts.setdefault(match["name"], []).extend(match["versions"].split(" | "))
    for name, versions in conflicts.items():
        first, *_between, last = sorted((*versions, versions[0]), key=_numbers)
        span = first if first == last else _("{first} to {last}").format(first=first, last=last)
        merged.append(_Node(_("{name} {versions} conflicts with that").format(name=name, versions=span)))
    return merged


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _cut(lines: Sequence[str]) -> list[str]:
    kept = [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…" for line in lines[:_LINES]]
    if len(lines) > _LINES:
        kept.append(_("… and {count} more lines").format(count=len(lines) - _LINES))
    return kept
