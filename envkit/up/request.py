"""What a user asks `up` for, what comes of it, and the stages in between."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from envkit import install, paths
from envkit.channels import read_condarc
from envkit.matrix import Axes
from envkit.model import CPU, Environment, Host, Lock, Report, Variant
from envkit.progress import Observer
from envkit.report.width import pad

if TYPE_CHECKING:
    from envkit import fetch

__all__ = ["WHEELS", "Plan", "Provisioned", "Request", "Stage", "Stages", "shown"]

WHEELS = "wheels"
"""The mirror that asks for the wheel channel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked for.

    `lock` is a lock file to install instead of a variant's own; `name` and `prefix` say where the
    environment goes (by default a folder of the variant's name); `fallback` allows the wheel channel
    when nothing can be reached. `bundle` is a file to install from instead of any mirror, whose digest
    must be `sha256` where that is given. `offline` allows no connection, `only_mirrors` none but to
    the chosen mirrors; `allow_hosts` are trusted besides. `dry_run` asks for the plan alone.
    """

    axes: Axes = field(default_factory=Axes)
    mirror: str = "auto"
    name: str | None = None
    prefix: Path | None = None
    lock: Path | None = None
    bundle: Path | None = None
    sha256: str | None = None
    offline: bool = False
    only_mirrors: bool = False
    allow_hosts: tuple[str, ...] = ()
    dry_run: bool = False
    fallback: bool = True

    @property
    def wheels(self) -> bool:
        """Whether the wheel channel was asked for, alone or beside mirrors of PyTorch's wheels."""
        return WHEELS in self._mirrors

    @property
    def beside_wheels(self) -> tuple[str, ...]:
        """The mirrors that were named beside the wheel channel, in order."""
        return tuple(word for word in self._mirrors if word != WHEELS)

    @property
    def _mirrors(self) -> tuple[str, ...]:
        words = (word.strip() for word in self.mirror.split(","))
        return tuple(WHEELS if word.lower() == WHEELS else word for word in words if word)

    @property
    def plain(self) -> bool:
        """Whether the wheel channel could stand in: nothing was asked that only a channel can give."""
        axes = self.axes
        return (
            self.fallback
            and self.mirror == "auto"
            and not (self.offline or self.only_mirrors)
            and self.lock is None
            and self.bundle is None
            and axes.name is None
            and axes.cuda in (None, "auto", CPU)
            and axes.torch is None
            and axes.source is None
            and axes.python in (None, own_python())
        )

    def routes(self, mirror: str | None = None) -> fetch.Routes:
        """Where to fetch from: as the user chose, or from `mirror`. Raises InputError for no such mirror."""
        from envkit import fetch

        return fetch.routes(
            mirror or self.mirror,
            only=self.only_mirrors,
            offline=self.offline,
            allow_hosts=self.allow_hosts,
            condarc=read_condarc(),
        )

    def place(self, variant_name: str) -> tuple[str, Path]:
        """The name and the prefix of the environment; InputError where none can be put there."""
        own = self.prefix.absolute().name if self.prefix else variant_name
        name = install.check_name(self.name or install.fit_name(own) or variant_name)
        prefix = self.prefix or paths.environments() / name
        if not install.is_environment(prefix):
            install.check_place(prefix)
        return name, prefix


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A lock and all that is needed to install it.

    `variant` is None for a stranger's lock, `host` where nobody had to look at the machine yet.
    """

    lock: Lock
    routes: fetch.Routes
    name: str
    prefix: Path
    variant: Variant | None
    reason: str
    host: Host | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One stage that was gone through: what came of it and how long it took, in seconds.

    `name` is the same in every language, for programs; `text` is for people.
    """

    name: str
    text: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Provisioned:
    """The environment that was asked for; `report` is None until it is validated.

    `fresh` says that this call installed it, `fallback` that it is the wheel channel's because no
    channel could be reached.
    """

    environment: Environment
    reason: str
    fresh: bool
    fallback: bool = False
    stages: tuple[Stage, ...] = ()
    report: Report | None = None


class Stages:
    """Collects the stages and tells each in one line as it ends."""

    def __init__(self, observer: Observer) -> None:
        self.done: list[Stage] = []
        self._observer = observer

    @contextmanager
    def stage(self, name: str, title: str) -> Iterator[list[str]]:
        """Time a stage. What is appended to the list is its line; one that fails leaves no line."""
        began = time.monotonic()
        said: list[str] = []
        yield said
        stage = Stage(name=name, text=" ".join(said), seconds=time.monotonic() - began)
        self.done.append(stage)
        self._observer.note(f"{pad(title, 9)}{stage.seconds:6.1f} s  {stage.text}")


def own_python() -> str:
    """The minor version of the interpreter that runs envkit, which the wheel channel repacks."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def shown(path: Path) -> str:
    """A path as a person would write it: relative to here or to home where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the current folder is gone
        home = os.environ.get("HOME")
        if home and path.is_relative_to(home):
            return str(Path("~") / path.relative_to(home))
        return str(path)
