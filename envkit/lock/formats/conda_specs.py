"""One dependency of an environment.yml as people write it, in the form that every solver reads alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from envkit.errors import InputError
from envkit.lock.formats.channel_list import Channels
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["CondaSpec", "merge_specs", "read_conda_spec"]

_SPEC = re.compile(r"(?:(?P<channel>\S+?)::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)\s*(?P<rest>.*)", re.DOTALL)
_AROUND_COMMAS = re.compile(r"\s*([,|])\s*")
_AFTER_OPERATOR = re.compile(r"([<>=!~]=?)\s+(?=[\d*])")
_ARCHIVE = re.compile(r"\.(conda|tar\.bz2)(#.*)?$")
_TEMPLATE = re.compile(r"\{\{|\{%|\$\{|<[^>=]+>")
_ONE_VERSION = re.compile(r"(?:==)?([\w.*+!]+)")
_ONE_EQUALS = re.compile(r"=(?P<version>[^=\s,|<>!~]+)=(?P<build>[^=\s,|]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class CondaSpec:
    """A package asked for: `constraint` is a version constraint, `build` a build string or a glob of one.

    `brackets` is what stood in `[…]`, kept as written. `selector` is the platform of a `# [linux]` behind it.
    """

    name: str
    constraint: str = ""
    build: str = ""
    channel: str = ""
    brackets: str = ""
    selector: str = ""
    line: int | None = None

    def __str__(self) -> str:
        front = f"{self.channel}::{self.name}" if self.channel else self.name
        if self.brackets:
            return front + self.brackets
        if self.build:
            one = _ONE_VERSION.fullmatch(self.constraint)
            return f"{front}={one[1]}={self.build}" if one else f"{front} {self.constraint} {self.build}"
        if re.match(r"[\d]", self.constraint):
            return f"{front} {self.constraint}"
        return front + self.constraint

    @property
    def exact_build(self) -> bool:
        return bool(self.build) and "*" not in self.build and "^" not in self.build


def read_conda_spec(
    text: str, source: Source, channels: Channels, *, line: int | None, selector: str = ""
) -> CondaSpec:
    """A CondaSpec; InputError with the line and what to write instead for anything that is none."""
    source.refuse_endless(text, line)
    written = " ".join(text.split())
    if _TEMPLATE.search(written):
        raise source.refusal(
            _("'{spec}' is a template, not a package").format(spec=written),
            _("fill the template in before locking"),
            line,
        )
    if _ARCHIVE.search(written) and ("/" in written or "\\" in written):
        raise source.refusal(
            _("'{spec}' is an archive, not a package of a channel").format(spec=written),
            _("write name=version, or put all archives into a file that begins with @EXPLICIT"),
            line,
        )
    match = _SPEC.fullmatch(written)
    if match is None:
        raise _no_spec(source, written, line)
    channel, name, rest = match["channel"] or "", match["name"].lower(), match["rest"]
    if "://" in rest or "channel=" in rest:
        raise source.refusal(
            _("'{spec}' names a channel in brackets").format(spec=written),
            _("write channel::package instead"),
            line,
        )
    if channel:
        channel = channels.add_from_spec(channel, name, line)
    spec = CondaSpec(name=name, channel=channel, selector=selector, line=line)
    if rest.startswith("["):
        spec = replace(spec, brackets=rest)
    else:
        constraint, build = _constraint_and_build(rest)
        spec = replace(spec, constraint=constraint, build=build)
    if not _parses(spec):
        raise _no_spec(source, written, line)
    return spec


def merge_specs(specs: Iterable[CondaSpec], source: Source) -> list[CondaSpec]:
    """Each package once for each selector: two constraints on one become one that says both.

    Raises InputError naming both lines where they cannot be said together.
    """
    found: dict[tuple[str, str], CondaSpec] = {}
    for spec in specs:
        key = (spec.name, spec.selector)
        first = found.get(key)
        if first is None:
            found[key] = spec
            continue
        source.note(
            _("{name} stands twice (first in line {line})").format(name=spec.name, line=first.line), spec.line
        )
        if str(first) == str(spec) or str(spec) == spec.name:
            continue
        if str(first) == first.name:
            found[key] = spec
            continue
        mergeable = all(not (each.build or each.brackets) for each in (first, spec))
        if not mergeable or first.channel != spec.channel:
            raise source.refusal(
                _("{second} contradicts {first} in line {line}").format(
                    second=spec, first=first, line=first.line
                ),
                _("keep one of the two lines"),
                spec.line,
            )
        both = ",".join((_ranged(first.constraint), _ranged(spec.constraint)))
        found[key] = replace(first, constraint=both)
    return list(found.values())


def _constraint_and_build(rest: str) -> tuple[str, str]:
    exact = _ONE_EQUALS.fullmatch(rest.replace(" ", "").replace("==", "=", 1))
    if exact:
        return exact["version"], exact["build"]
    tight = _AFTER_OPERATOR.sub(r"\1", _AROUND_COMMAS.sub(r"\1", rest))
    first, *words = tight.split(" ")
    # "numpy >=1.2 <2": conda reads the space as a comma where an operator follows it.
    while words and re.match(r"[<>=!~]", words[0]):
        first = f"{first},{words.pop(0)}"
    return first, " ".join(words)


def _ranged(constraint: str) -> str:
    """A constraint that may stand beside a comma: "=1.2" and "1.2" may not, "1.2.*" and "==1.2" may."""
    if re.fullmatch(r"=[^=].*", constraint):
        return f"{constraint[1:].removesuffix('.*').removesuffix('*')}.*"
    return f"=={constraint}" if re.match(r"\d", constraint) and "*" not in constraint else constraint


def _parses(spec: CondaSpec) -> bool:
    from rattler import MatchSpec

    try:
        MatchSpec(str(spec), strict=False)
    except Exception:
        return False
    return " " not in spec.build


def _no_spec(source: Source, written: str, line: int | None) -> InputError:
    return source.refusal(
        _("'{spec}' is no conda package").format(spec=written),
        _("write it as name, name=1.2 or 'name>=1.2,<2'; what comes from pip belongs below `- pip:`"),
        line,
    )
