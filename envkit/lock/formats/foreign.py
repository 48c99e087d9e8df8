"""What was read from a file that somebody else's tool or hand wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from envkit.model import Manager

__all__ = ["Foreign", "Kind", "Note", "Pinned", "PipIndexes"]

Kind = Literal["environment", "requirements", "conda-list", "explicit", "pixi", "conda-lock"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """Something a user should know of how a file was read. `warning` where it changes what is installed."""

    text: str
    line: int | None = None
    warning: bool = False

    def __str__(self) -> str:
        from envkit.messages import _

        return (
            self.text
            if self.line is None
            else _("line {line}: {text}").format(line=self.line, text=self.text)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PipIndexes:
    """The Python indexes that a file names, canonical and in order; mirrors of the public one left out.

    `default_index` is whether the public index is asked as well.
    """

    indexes: tuple[str, ...] = ()
    default_index: bool = True

    def before(self, others: PipIndexes) -> PipIndexes:
        """These indexes first, then `others`; those alone that replace the public one by name."""
        if not self.default_index:
            return self
        return PipIndexes(
            indexes=tuple(dict.fromkeys((*self.indexes, *others.indexes))), default_index=others.default_index
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Pinned:
    """One package of a foreign lock; hashes may be missing. `line` is where it stands in the file."""

    name: str
    version: str
    manager: Manager
    platform: str
    url: str
    sha256: str | None = None
    md5: str | None = None
    depends: Mapping[str, str] = field(default_factory=dict)
    line: int | None = None

    def completed(self, **facts: str | Mapping[str, str] | None) -> Pinned:
        """The same package with what was found out about it."""
        return replace(self, **facts)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreign:
    """A stranger's file in envkit's words.

    `text` is an environment.yml that conda-lock can parse: canonical channel names, indexes under
    `pip-repositories`, no option lines. It is empty where the file is a lock already; then `pinned` has its
    packages and `to_lock` makes a conda-lock file of them. `platforms` is what the file names, or what its
    packages give away; empty where it could be any. `hashes` are the sha256 that a requirements file allows
    for a pip package, by normalised name. `accelerator` is what the file's PyTorch builds are for ("12.1",
    "cpu"), None where it does not say. `variables` are to be set by the user: a lock has no place for them.
    """

    path: Path
    kind: Kind
    name: str
    channels: tuple[str, ...]
    text: str = ""
    platforms: tuple[str, ...] = ()
    pip: PipIndexes = field(default_factory=PipIndexes)
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    accelerator: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    pinned: tuple[Pinned, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def is_lock(self) -> bool:
        """Whether every package is pinned already, so that there is nothing to solve."""
        return self.kind in ("explicit", "pixi", "conda-lock")
