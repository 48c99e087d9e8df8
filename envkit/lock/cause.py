"""What changed in a spec since its lock was made.

A lock keeps a digest of its spec and not the spec. So the texts that are still around (on disk, or committed
earlier) are tried, each with the few virtual packages that a matrix can set: the ones that give the lock's
digest are what it was made for, beyond doubt. No lock has to grow for it, and a fresh one costs nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from envkit.errors import InputError
from envkit.files import load_yaml, read_text
from envkit.lock.committed import earlier_texts
from envkit.lock.head import Head
from envkit.matrix import Matrix
from envkit.messages import _
from envkit.model import Spec, VirtualPackage
from envkit.render import digest, virtual_packages

__all__ = ["cause", "text_diff"]

VirtualPackages = Mapping[str, tuple[VirtualPackage, ...]]

# From CentOS 6 to well after today: https://sourceware.org/glibc/wiki/Glibc%20Timeline, 2026-11
_GLIBCS = tuple(f"2.{minor}" for minor in range(12, 46))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    """What a lock was made for."""

    text: str
    virtual_packages: VirtualPackages


def cause(root: Path, matrix: Matrix, spec: Spec, head: Head, file: Path | None) -> tuple[str, str]:
    """Why the lock with this head is not that of `spec`: a sentence, and environment.yml's unified diff.

    `file` is the committed environment.yml, None for a variant that has none. The diff is empty where only
    the channels, the platforms or the virtual packages changed; the sentence names them.
    """
    if head.digest is None:
        return _("the lock does not say what it was made for, so envkit did not make it"), ""
    on_disk = _text(file)
    made = _made_for(root, matrix, spec, head, file, on_disk)
    changes = [
        *_listed_change(_("channels"), head.channels, spec.channels),
        *_listed_change(_("platforms"), sorted(head.platforms), sorted(spec.virtual_packages)),
    ]
    if made is None:
        diff = "" if on_disk is None else text_diff(on_disk, spec.text, _("on disk"))
    else:
        changes += _virtual_changes(made.virtual_packages, spec.virtual_packages)
        diff = text_diff(made.text, spec.text, _("as locked"))
    if diff:
        changes.insert(0, _text_change(diff))
    if not changes:
        return _("it was made for an environment.yml that is not here any more"), ""
    return _("since it was made: {changes}").format(changes="; ".join(changes)), diff


def text_diff(before: str, after: str, before_is: str) -> str:
    """The unified diff to the rendering; empty where the two differ in line ends at most."""
    name = "environment.yml"
    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        f"{name} ({before_is})",
        f"{name} ({_('as the matrix renders it')})",
        lineterm="",
    )
    return "\n".join(lines)


def _text(file: Path | None) -> str | None:
    try:
        return None if file is None else read_text(file)
    except InputError:
        return None


def _made_for(
    root: Path, matrix: Matrix, spec: Spec, head: Head, file: Path | None, on_disk: str | None
) -> _Made | None:
    machines = tuple(_machines(matrix, spec, head.platforms))
    for text in _texts(root, spec, file, on_disk):
        channels = _channels(text)
        for packages in machines:
            if digest(text, channels, packages) == head.digest:
                return _Made(text=text, virtual_packages=packages)
    return None


def _texts(root: Path, spec: Spec, file: Path | None, on_disk: str | None) -> Iterator[str]:
    """The likeliest first; git is asked last, since that takes a process for each answer."""
    yield spec.text
    if on_disk is not None and on_disk != spec.text:
        yield on_disk
    if file is not None:
        yield from earlier_texts(root, file.relative_to(root).as_posix())


def _machines(matrix: Matrix, spec: Spec, platforms: Sequence[str]) -> Iterator[VirtualPackages]:
    """What the solver may have been told of the machines: the present values, then others in use."""
    variant = spec.variant
    own = matrix.glibc(variant)
    named = (rules.builds for rules in matrix.sources.values())
    accelerators = dict.fromkeys([variant.accelerator, *(build for builds in named for build in builds)])
    try:
        for accelerator in accelerators:
            asked = replace(variant, accelerator=accelerator, platforms=tuple(platforms))
            for glibc in dict.fromkeys([own, *_GLIBCS]):
                yield virtual_packages(asked, glibc)
    except KeyError:
        return  # a platform that this envkit does not know


def _channels(text: str) -> tuple[str, ...]:
    try:
        document: Any = load_yaml(text)
        return tuple(str(channel) for channel in document["channels"] if channel != "nodefaults")
    except (yaml.YAMLError, KeyError, TypeError):
        return ()


def _text_change(diff: str) -> str:
    lines = diff.splitlines()[2:]
    return _("environment.yml changed (+{added} -{removed} lines)").format(
        added=sum(line.startswith("+") for line in lines), removed=sum(line.startswith("-") for line in lines)
    )


def _listed_change(what: str, before: Iterable[str], after: Iterable[str]) -> Iterator[str]:
    old, new = list(before), list(after)
    if old != new:
        yield _("{what} were {old}, now {new}").format(what=what, old=", ".join(old), new=", ".join(new))


def _virtual_changes(before: VirtualPackages, after: VirtualPackages) -> Iterator[str]:
    """One sentence for each virtual package that changed, with the platforms it changed on."""
    told: dict[str, list[str]] = {}
    for platform in sorted(before.keys() & after.keys()):
        old = {package.name: package for package in before[platform]}
        new = {package.name: package for package in after[platform]}
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                told.setdefault(_virtual_change(name, old.get(name), new.get(name)), []).append(platform)
    for sentence, platforms in told.items():
        yield f"{sentence} ({', '.join(platforms)})"


def _virtual_change(name: str, old: VirtualPackage | None, new: VirtualPackage | None) -> str:
    if old is None or new is None:
        text = _("{package} is new") if old is None else _("{package} is gone")
        return text.format(package=f"{name} {(new or old or VirtualPackage(name=name, version='')).version}")
    return _("{name} was {old}, now {new}").format(name=name, old=_shown(old, new), new=_shown(new, old))


def _shown(package: VirtualPackage, other: VirtualPackage) -> str:
    return package.version if package.build == other.build else f"{package.version}={package.build}"
