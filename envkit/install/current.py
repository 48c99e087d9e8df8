"""The environments there are, and whether one is what a lock asks for."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from envkit import paths
from envkit.errors import Error, InputError
from envkit.files import sha256_of
from envkit.install import marker
from envkit.install.conda import stem
from envkit.install.pip_section import distributions
from envkit.install.plan import plan
from envkit.install.stage import left_behind
from envkit.install.target import is_environment, locate
from envkit.messages import _
from envkit.model import Environment, Lock

__all__ = ["is_current", "names", "read_environment"]


def names() -> tuple[str, ...]:
    """The named environments, sorted. Raises Error where their folder cannot be read."""
    try:
        found = [entry.name for entry in os.scandir(paths.environments()) if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as problem:
        raise Error(
            _("cannot read {path}: {reason}").format(
                path=paths.environments(), reason=problem.strerror or problem
            ),
            _("check the permissions of the folder"),
        ) from None
    return tuple(sorted(name for name in found if is_environment(paths.environments() / name)))


def read_environment(name_or_prefix: str) -> Environment:
    """The environment of that name under `$ENVKIT_HOME/envs`, or at that path (with a slash in it).

    An environment that conda made is one too, of which nothing is known. Raises InputError where there is
    none, with the nearest names; Error for one that is damaged or half-made.
    """
    prefix = locate(name_or_prefix)
    try:
        written = marker.read(prefix)
        if written is not None:
            return Environment(
                name=written.name, prefix=prefix, asked=written.variant, lock_sha256=written.lock_sha256
            )
        if is_environment(prefix):
            return Environment(name=prefix.name, prefix=prefix)
        half_made = (prefix / "conda-meta").is_dir() or (not prefix.exists() and bool(left_behind(prefix)))
    except OSError as problem:
        raise Error(
            _("cannot read {path}: {reason}").format(path=prefix, reason=problem.strerror or problem),
            _("check the permissions of the folder"),
        ) from None
    if half_made:
        raise Error(
            _("the environment {prefix} is half-made").format(prefix=prefix),
            _("run the installation again (`envkit up` or `envkit install`): it clears up and finishes"),
        )
    raise InputError(
        _("there is no environment {name}").format(name=name_or_prefix), _suggestion(name_or_prefix)
    )


def is_current(environment: Environment, lock: Lock) -> bool:
    """Whether the environment came from these very bytes of a lock and looks whole.

    Cheap (milliseconds): compares names of records, not the content of files.
    """
    try:
        written = marker.read(environment.prefix)
        if written is None or written.lock_sha256 != sha256_of(lock.path):
            return False
        wanted = plan(lock, written.platform)
        present = {path.name for path in (environment.prefix / "conda-meta").glob("*.json")}
    except (Error, OSError):
        return False
    if present != {f"{stem(package)}.json" for package in wanted.conda}:
        return False
    if any(package.name == "python" for package in wanted.conda) and not environment.python.exists():
        return False
    if not wanted.pip:
        return True
    installed = {_normal(path.name.split("-", 1)[0]) for path in distributions(environment.prefix)}
    return installed.issuperset(_normal(package.name) for package in wanted.pip)


def _normal(distribution: str) -> str:
    """A distribution's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _suggestion(asked: str) -> str:
    existing = names()
    if not existing:
        return _("there is none yet: make one with `envkit up`")
    if (Path(asked) / "conda-meta").is_dir():
        return _("for the folder write ./{name}").format(name=asked)
    nearest = difflib.get_close_matches(asked, existing, n=1, cutoff=0.4)
    listed = _("there are: {names}; `envkit up` makes others").format(names=", ".join(existing))
    return _("did you mean {name}? {listed}").format(name=nearest[0], listed=listed) if nearest else listed
