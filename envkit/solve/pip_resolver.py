"""conda-lock's resolver for pip sections, told what it does not take into account (conda-lock 4.0.3).

It solves for one machine and yet carries every marker along: the extras of `cuda-toolkit`, which torch 2.13
asks for, each stand there for Linux and for Windows, and their combinations take it longer than anyone
waits (seen: no answer within 5 minutes; 4 s with this). And of the manylinux tags it knows those that have a
build image only, while NVIDIA's wheels are for glibc 2.27 (`manylinux_2_27_x86_64`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["for_one_machine", "manylinux_tags"]

_LEGACY = ("1", "2010", "2014")
_MINORS = range(5, 61)
"""The glibc versions for which PEP 600 allows tags: 2.5 is manylinux1's, and the list may run ahead."""


def manylinux_tags() -> list[str]:
    """Every tag, in conda-lock's spelling, the oldest glibc first."""
    tags: list[str] = []
    for minor in _MINORS:
        tags.append(f"_2_{minor}")
        tags += [name for name, since in zip(_LEGACY, (5, 12, 17), strict=True) if since == minor]
    return tags


@contextlib.contextmanager
def for_one_machine() -> Iterator[None]:
    """While this lasts, the resolver sees only what its one machine sees."""
    from conda_lock import pypi_solver
    from conda_lock._vendor.poetry.puzzle.provider import Provider

    tags, with_overrides = pypi_solver.MANYLINUX_TAGS, Provider._get_dependencies_with_overrides

    def decided(provider: Any, dependencies: list[Any], package: Any) -> list[Any]:
        return list(with_overrides(provider, [_decided(one) for one in dependencies], package))

    pypi_solver.MANYLINUX_TAGS = manylinux_tags()
    Provider._get_dependencies_with_overrides = decided
    try:
        yield
    finally:
        pypi_solver.MANYLINUX_TAGS = tags
        Provider._get_dependencies_with_overrides = with_overrides


def _decided(dependency: Any) -> Any:
    """A dependency that this machine has, without the conditions that said so; extras are still open.

    Poetry drops those of other machines before.
    """
    if dependency.marker.is_any():
        return dependency
    own = dependency.clone()
    own.marker = dependency.marker.only("extra")
    return own
