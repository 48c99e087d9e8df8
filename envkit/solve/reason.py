"""What rattler says where a solve fails, parsed: a tree of packages that cannot be, and why.

rattler lists every build of every version, so the text runs to hundreds of lines; what decides is in a few.
The grammar is that of resolvo 0.9's `DisplayUnsat`, as py-rattler 0.28.0 prints it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from envkit.messages import _

__all__ = ["SHORT", "Excluded", "Reason", "parse_reason", "readable"]

SHORT = 8
"""Lines of a reason that people read through; of a longer one only the way to one cause is shown."""

_WIDTH = 160
_PREFIX = "Cannot solve the request because of:"
_TREE = " │├└─"
_GENERIC = "The following packages are incompatible"
_CONFLICT = re.compile(
    r"(?P<name>\S+) (?P<versions>.+?), which conflicts with the versions reported above\.?"
)
_MISSING = (
    re.compile(r"No candidates were found for (?P<spec>.+?)\.?"),
    re.compile(r"(?P<spec>.+), (?:for which no candidates were found|which has no candidates)\.?"),
)
_EXCLUDED = re.compile(
    r"(?P<name>\S+) (?P<versions>.+?) is excluded because due to strict channel priority "
    r"not using this option from: '(?P<channel>[^']+?)/?'"
)
_OPTIONS = r"can be installed with any of the following options:"
_NO_OPTION = r"cannot be installed because there are no viable options:"
_WORDINGS: tuple[tuple[re.Pattern[str], Callable[[], str]], ...] = (
    (_EXCLUDED, lambda: _("{name} {versions} of {channel} is hidden by strict channel priority")),
    (_MISSING[0], lambda: _("there is no {spec}")),
    (_MISSING[1], lambda: _("{spec}, of which there is none")),
    (re.compile(rf"(?P<spec>.+), which {_NO_OPTION}"), lambda: _("{spec}, which cannot be had:")),
    (re.compile(rf"(?P<spec>.+) {_NO_OPTION}"), lambda: _("{spec} cannot be had:")),
    (re.compile(rf"(?P<spec>.+), which {_OPTIONS}"), lambda: _("{spec}, for which there is:")),
    (re.compile(rf"(?P<spec>.+) {_OPTIONS}"), lambda: _("{spec} is asked for; there is:")),
    (re.compile(r"(?P<package>.+) would require"), lambda: _("{package} requires")),
    (re.compile(r"(?P<package>.+) would constrain"), lambda: _("{package} restricts")),
    (
        re.compile(r"(?P<spec>.+), which conflicts with any installable versions previously reported\.?"),
        lambda: _("{spec}, which nothing that is named above meets"),
    ),
    (
        re.compile(r"(?P<package>.+) is locked, but another version is required as reported above\.?"),
        lambda: _("{package} is pinned, but another version is required"),
    ),
    (
        re.compile(r"(?P<package>.+) is locked, but it is excluded because (?P<reason>.+)"),
        lambda: _("{package} is pinned, but cannot be taken: {reason}"),
    ),
    (
        re.compile(r"(?P<package>.+) is excluded because (?P<reason>.+)"),
        lambda: _("{package} cannot be taken: {reason}"),
    ),
    (
        re.compile(r"(?:the )?constraint (?P<spec>.+) cannot be fulfilled\.?"),
        lambda: _("the constraint {spec} cannot be met"),
    ),
)
"""Every form of sentence, the first that fits; none of rattler's English stands in the middle of another
language."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Excluded:
    """A package that a channel has and strict priority hides, for a channel above has the name as well."""

    name: str
    channel: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """A failed solve: all that decides, the way to one cause, the specs that nothing matches, what is hidden.

    `lines` may be hundreds; `path` is at most `SHORT`, and ends in the cause.
    """

    lines: tuple[str, ...]
    path: tuple[str, ...]
    missing: tuple[str, ...]
    excluded: tuple[Excluded, ...]

    @property
    def brief(self) -> tuple[str, ...]:
        """Everything where that is short, else the way to one cause."""
        return self.lines if len(self.lines) <= SHORT else self.path


@dataclass(slots=True)
class _Node:
    text: str
    children: list[_Node] = field(default_factory=list)


def parse_reason(text: str, asked: Sequence[str] = ()) -> Reason:
    """The parts of what the solver said, which was asked for the match specs `asked`."""
    wanted = {spec.split(" ")[0]: spec for spec in asked}
    every = [line.strip(_TREE) for line in text.replace(_PREFIX, "\n").splitlines()]
    missing = [match["spec"] for line in every for form in _MISSING if (match := form.fullmatch(line))]
    hidden = [match for line in every if (match := _EXCLUDED.search(line))]
    excluded = dict.fromkeys(Excluded(name=match["name"], channel=match["channel"]) for match in hidden)
    roots = _roots(text)
    return Reason(
        lines=tuple(line for root in roots for line in _lines(root, 0, wanted)),
        path=tuple(_path(roots, wanted)),
        missing=tuple(dict.fromkeys(missing)),
        excluded=tuple(excluded),
    )


def readable(text: str) -> str:
    """The solver's explanation without its repetitions, a few lines."""
    return "\n".join(parse_reason(text).brief)


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


def _path(roots: Sequence[_Node], wanted: Mapping[str, str]) -> list[str]:
    """The lines from a package that was asked for down to the cause that says most."""
    ways = [way for root in roots for way in _ways(root)]
    if not ways:
        return []
    way = min(ways, key=lambda nodes: (_says(nodes[-1].text), len(nodes)))
    nodes = [*way[:-1], *_merged([way[-1]], wanted)]
    lines = ["  " * depth + _in_short(node.text) for depth, node in enumerate(nodes)]
    return [*lines[:2], "  …", *lines[3 - SHORT :]] if len(lines) > SHORT else lines


def _ways(node: _Node) -> Iterator[list[_Node]]:
    if not node.children:
        yield [node]
    for child in node.children:
        for way in _ways(child):
            yield [node, *way]


def _says(leaf: str) -> int:
    """How little the end of a chain says: nothing there is the plainest, a mere version no cause."""
    if any(form.fullmatch(leaf) for form in _MISSING):
        return 0
    if _CONFLICT.fullmatch(leaf):
        return 2
    return 1 if any(form.fullmatch(leaf) for form, _words in _WORDINGS) else 3


def _lines(node: _Node, depth: int, wanted: Mapping[str, str]) -> Iterator[str]:
    """The node and what stands below it, the options of one kind told once."""
    yield "  " * depth + _in_short(node.text)
    children, told = _merged(node.children, wanted), set()
    for child in children:
        below = list(_lines(child, depth + 1, wanted))
        # The same obstacle below another version of the same package says nothing new.
        kind = (child.text.split(" ")[0], tuple(below[1:]))
        if kind not in told:
            told.add(kind)
            yield from below


def _in_short(text: str) -> str:
    for form, words in _WORDINGS:
        match = form.fullmatch(text)
        if match is not None:
            text = words().format(**{key: part.removesuffix(" *") for key, part in match.groupdict().items()})
            break
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _merged(nodes: Sequence[_Node], wanted: Mapping[str, str]) -> list[_Node]:
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
        words = (
            _("{name} {versions}, but `{spec}` is asked for")
            if name in wanted
            else _("{name} {versions}, which is not what the others need")
        )
        merged.append(_Node(words.format(name=name, versions=span, spec=wanted.get(name))))
    return merged


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
