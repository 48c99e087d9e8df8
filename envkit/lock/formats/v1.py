"""A foreign lock as a conda-lock v1 file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import yaml

from envkit.channels import canonical_url, channel_name, locate
from envkit.errors import InputError
from envkit.lock.formats.foreign import Foreign, Pinned
from envkit.lock.read import parse_lock
from envkit.messages import _
from envkit.model import Lock

__all__ = ["Complete", "to_lock", "v1_text"]

Complete = Callable[[Pinned], Pinned | None]
"""Finds out what a foreign lock does not say of a package (its sha256, md5, dependencies), or None."""

_HEADER = """\
# Made by envkit from {file}, with the packages {those}. Nothing was solved.
# The format is conda-lock's (v1): `conda-lock install --name {name} conda-lock.yml` installs it as well.
"""
_MOST_LINES = 5


def to_lock(foreign: Foreign, *, complete: Complete | None = None) -> Lock:
    """The lock with exactly the packages of an explicit file or a pixi.lock. Fetches and solves nothing.

    A package without a sha256 could not be verified later: `complete` is asked for what is missing, with
    the md5 in its hands. Raises InputError naming the lines where it is not found, and for a package whose
    name or URL could do harm.
    """
    return parse_lock(v1_text(foreign, complete=complete), foreign.path)


def v1_text(foreign: Foreign, *, complete: Complete | None = None) -> str:
    """The text of `to_lock`, the same for the same packages."""
    packages = [_completed(package, complete) for package in foreign.pinned]
    lacking = [package for package in packages if package.sha256 is None]
    if lacking:
        raise _without_hash(foreign, lacking)
    document = {
        "version": 1,
        "metadata": {
            "content_hash": {platform: _digest(packages, platform) for platform in sorted(foreign.platforms)},
            "channels": [{"url": name, "used_env_vars": []} for name in _all_channels(foreign)],
            "platforms": sorted(foreign.platforms),
            "sources": [foreign.path.name],
        },
        "package": [_entry(package) for package in sorted(packages, key=_order)],
    }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    body: str = yaml.dump(document, Dumper=dumper, sort_keys=False, width=1 << 16, allow_unicode=True)
    given = all(package.sha256 for package in foreign.pinned)
    those = (
        "and hashes that stand there" if given else "that stand there; hashes that it lacks are the channel's"
    )
    return _HEADER.format(file=foreign.path.name, name=foreign.name, those=those) + body


def _completed(package: Pinned, complete: Complete | None) -> Pinned:
    if complete is None or (package.sha256 is not None and package.md5 is not None and package.depends):
        return package
    return complete(package) or package


def _without_hash(foreign: Foreign, lacking: list[Pinned]) -> InputError:
    first = lacking[0]
    names = ", ".join(package.name for package in lacking[:_MOST_LINES])
    if len(lacking) > _MOST_LINES:
        names += _(" and {count} others").format(count=len(lacking) - _MOST_LINES)
    problem = (
        _("only an md5 is given for {names}: a sha256 is needed to verify them")
        if first.md5
        else _("no hash is given for {names}, so nobody could verify them")
    )
    command = "pixi lock" if foreign.kind == "pixi" else "conda list --explicit --sha256"
    return InputError(
        problem.format(names=names),
        _("write the file again with `{command}`").format(command=command),
        path=foreign.path,
        line=first.line,
    )


def _all_channels(foreign: Foreign) -> list[str]:
    names = dict.fromkeys(foreign.channels)
    for package in foreign.pinned:
        if package.manager == "conda":
            channel = locate(package.url).channel
            names.setdefault(channel_name(canonical_url(channel)) or channel)
    return list(names)


def _digest(packages: Iterable[Pinned], platform: str) -> str:
    """There is no spec to take a content hash of; that of the archives changes when they do."""
    lines = sorted(
        f"{package.url}#{package.sha256}\n" for package in packages if package.platform == platform
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _order(package: Pinned) -> tuple[str, str, str]:
    return package.manager, package.name, package.platform


def _entry(package: Pinned) -> dict[str, Any]:
    # conda-lock's reader wants an md5 for conda packages, be it an empty one.
    md5 = {"md5": package.md5 or ""} if package.manager == "conda" or package.md5 else {}
    return {
        "name": package.name,
        "version": package.version,
        "manager": package.manager,
        "platform": package.platform,
        "dependencies": dict(sorted(package.depends.items())),
        "url": package.url,
        "hash": {**md5, "sha256": package.sha256},
        "category": "main",
        "optional": False,
    }
