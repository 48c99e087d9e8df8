"""The pip section of an environment.yml, solved by conda-lock's resolver (its copy of Poetry)."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from envkit import paths
from envkit.channels import canonicalise_url, index_at, published_file
from envkit.errors import Findings
from envkit.messages import _
from envkit.model import Package
from envkit.solve.chatter import without_chatter
from envkit.solve.pip_refusal import explained
from envkit.solve.pip_resolver import for_one_machine

if TYPE_CHECKING:
    from conda_lock.lockfile.v2prelim.models import LockedDependency

__all__ = ["PipSection", "lock_pip_section"]

_MOST_PINS = 20
_ONE_AT_A_TIME = threading.Lock()
"""What is set for the resolver (an environment variable, its own names) is the whole process's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PipSection:
    """What is wanted by pip on one platform, and what is there already.

    `wanted` holds conda-lock's dependencies by name, `conda` the entries of the conda packages.
    `repositories` (of the file) and `indexes` (of option lines and pip's configuration) are asked in this
    order, the public index last where `default_index`. Pip packages among `locked` stay where they can, but
    for those that `update` names. `copies` are the indexes of this user's pip, which a lock for everybody is
    not to name for the public index's files. `mirrors` are hosts to ask in the place of PyTorch's own index,
    in order, as far as they have it. `alike` finds names that are spelled much like another.
    """

    name: str
    platform: str
    wanted: Mapping[str, Any]
    conda: Mapping[str, LockedDependency]
    repositories: tuple[str, ...]
    indexes: tuple[str, ...]
    default_index: bool
    virtual_packages: Mapping[str, Any]
    names: str
    locked: tuple[Package, ...] = ()
    update: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    alike: Callable[[str], Sequence[str]] = lambda name: ()


def lock_pip_section(section: PipSection) -> dict[str, LockedDependency]:
    """The entries of the pip packages. Opens connections.

    A package that conda provides is never replaced by pip behind its back: where the resolver would, it is
    held at conda's version and the section solved again. Raises Findings where there is no solution,
    Error where an index does not answer.
    """
    from conda_lock.models.lock_spec import VersionedDependency

    provided = _provided(section)
    held: dict[str, Any] = {}
    while True:
        found = _canonical(_solve(section, held), section.copies)
        replaced = [name for name in sorted(found) if name in provided and name not in section.wanted]
        if not replaced:
            return found
        if len(held) >= _MOST_PINS or any(name in held for name in replaced):
            raise Findings(
                _("the pip section of {name} would replace {packages}, which conda provides").format(
                    name=section.name, packages=", ".join(replaced)
                ),
                _("relax a constraint of the pip section, or name the package there itself"),
            )
        for name in replaced:
            held[name] = VersionedDependency(name=name, version=f"=={provided[name]}", manager="pip")


def _canonical(found: dict[str, LockedDependency], copies: Iterable[str]) -> dict[str, LockedDependency]:
    """The entries with the URLs that every machine can ask, whichever index or redirect gave them."""
    return {
        name: entry.model_copy(update={"url": canonicalise_url(published_file(entry.url, copies)).url})
        for name, entry in found.items()
    }


def _asked(section: PipSection) -> tuple[str, ...]:
    """The indexes as they are reached from here: a mirror's copy in the place of PyTorch's own index."""
    return tuple(
        index_at(url, section.mirrors) for url in dict.fromkeys((*section.repositories, *section.indexes))
    )


def _provided(section: PipSection) -> dict[str, str]:
    """The Python packages among the conda ones, by the names that pip knows them by."""
    from conda_lock.lookup import conda_name_to_pypi_name

    return {
        conda_name_to_pypi_name(name, mapping_url=section.names): package.version
        for name, package in section.conda.items()
        if "python" in package.dependencies
    }


def _solve(section: PipSection, held: Mapping[str, Any]) -> dict[str, LockedDependency]:
    from conda_lock.models.pip_repository import PipRepository
    from conda_lock.pypi_solver import solve_pypi

    with _ONE_AT_A_TIME, without_chatter(), _own_cache(), for_one_machine(), _problems(section):
        found: dict[str, LockedDependency] = solve_pypi(
            pip_specs={**section.wanted, **held},
            use_latest=list(section.update),
            pip_locked=_locked(section),
            conda_locked=dict(section.conda),
            python_version=section.conda["python"].version,
            platform=section.platform,
            platform_virtual_packages=section.virtual_packages,
            pip_repositories=[PipRepository.from_string(url) for url in _asked(section)],
            allow_pypi_requests=section.default_index,
            strip_auth=True,
            mapping_url=section.names,
        )
    return found


def _locked(section: PipSection) -> dict[str, LockedDependency]:
    """The pip packages of the old lock as conda-lock keeps them."""
    from conda_lock.lockfile.v2prelim.models import HashModel, LockedDependency

    return {
        package.name: LockedDependency(
            name=package.name,
            version=package.version,
            manager="pip",
            platform=package.platform,
            dependencies={},
            url=package.url,
            hash=HashModel(sha256=package.sha256),
        )
        for package in section.locked
        if package.manager == "pip"
    }


@contextlib.contextmanager
def _own_cache() -> Iterator[None]:
    """Keep what conda-lock's copy of Poetry downloads where everything of envkit's is, not in ~/.cache."""
    name = "POETRY_CACHE_DIR"
    before = os.environ.get(name)
    os.environ[name] = str(paths.cache() / "pypi")
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextlib.contextmanager
def _problems(section: PipSection) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        # Poetry raises errors of its own, of requests and of the standard library.
        raise explained(
            problem,
            name=section.name,
            platform=section.platform,
            indexes=_asked(section),
            alike=section.alike,
        ) from None
