"""A stranger's file to a lock beside it: whatever people call their environment, pinned with hashes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from envkit import fetch, lock, paths
from envkit.errors import Findings
from envkit.files import write_atomically
from envkit.lock.formats import Foreign, Note, Pinned, check_hashes, read_spec, v1_text
from envkit.messages import _
from envkit.model import CPU, Lock, Spec, Variant
from envkit.progress import Observer
from envkit.render import digest, virtual_packages
from envkit.up.request import shown
from envkit.up.team import Relocked, old_lock

__all__ = ["LockedFile", "lock_file"]

GLIBC = "2.28"
"""The glibc that the machines are taken to have; it is conda-lock's own default
(conda_lock/default-virtual-packages.yaml)."""

_CHOOSERS = ("pytorch-cuda", "cuda-version", "cudatoolkit")
_CUDA_BUILD = re.compile(r"cu(?:da)?_?(?P<major>\d\d)\.?(?P<minor>\d)")


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedFile:
    """What became of a file, and what a user should know of how it was read."""

    name: str
    made: Relocked
    notes: tuple[Note, ...]


def lock_file(
    path: Path,
    target: Path | None,
    *,
    python: str | None,
    cuda: str | None,
    platform: str,
    routes: fetch.Routes,
    observer: Observer,
    update: tuple[str, ...] = (),
    fresh: bool = False,
) -> LockedFile:
    """Lock what a file asks for into `target`, by default conda-lock.yml beside it.

    It is locked for the platforms that it names, else for `platform`. `cuda` ("12.4" or "cpu") says which
    builds of PyTorch are meant where the file does not; CPU builds are refused only where either does. A
    file that pins everything already is written as a lock without solving. Raises InputError naming the
    line of what cannot be locked, Findings where there is no solution.
    """
    from envkit import solve

    foreign = read_spec(path, python=python, platform=platform)
    target = target or path.with_name(lock.LOCK_NAME)
    before = old_lock(target)
    shelf = solve.open_shelf(routes=routes, cache=paths.cache(), observer=observer)
    notes = list(foreign.notes)
    if foreign.is_lock:

        def complete(package: Pinned) -> Pinned | None:
            return _looked_up(package, shelf)

        text = v1_text(foreign, complete=complete)
        made = lock.parse_lock(text, target)
        write_atomically(target, text)
    else:
        spec, told = _spec(foreign, python, cuda, platform)
        made = solve.write_lock(
            spec,
            target,
            routes=routes,
            cache=paths.cache(),
            observer=observer,
            update=update,
            fresh=fresh,
            shelf=shelf,
            check=lambda found: _problems(found, foreign, told),
        )
        if told is None and _has_torch(made):
            notes.append(
                Note(text=_("nothing says which CUDA is meant; PyTorch is locked as the solver chose it"))
            )
    notes += _second_torch(made)
    return LockedFile(name=foreign.name, made=Relocked(lock=made, before=before), notes=tuple(notes))


def _spec(foreign: Foreign, python: str | None, cuda: str | None, platform: str) -> tuple[Spec, str | None]:
    """The file as a Spec, and the accelerator that it or the user names."""
    told = cuda or foreign.accelerator or _accelerator(foreign.text)
    variant = Variant(
        name=foreign.name,
        python=python or "",
        accelerator=told or CPU,
        torch="*",
        source="conda-forge",
        platforms=foreign.platforms or (platform,),
    )
    packages = virtual_packages(variant, GLIBC)
    return Spec(
        variant=variant,
        text=foreign.text,
        channels=foreign.channels,
        virtual_packages=packages,
        digest=digest(foreign.text, foreign.channels, packages),
        origin=shown(foreign.path),
    ), told


def _accelerator(text: str) -> str | None:
    """The CUDA version that the conda specs of a file ask for, "cpu" for `cpuonly` or a CPU build.

    None where nothing is said. Of several, the one PyTorch's own build names counts first.
    """
    found: dict[str, str] = {}
    document: Any = yaml.safe_load(text)
    for spec in document["dependencies"]:
        if not isinstance(spec, str):
            continue
        name, *rest = re.split(r"[ =<>!~]+", spec.rpartition("::")[2], maxsplit=1)
        said = rest[0] if rest else ""
        build = said.replace(" ", "=").rpartition("=")[2] if name == "pytorch" else ""
        if name == "cpuonly" or "cpu" in build:
            found.setdefault(name, CPU)
        elif match := _CUDA_BUILD.search(build):
            found[name] = f"{match['major']}.{match['minor']}"
        elif name in _CHOOSERS and (match := re.match(r"(\d+\.\d+)", said)):
            found[name] = match[1]
    return next((found[name] for name in ("pytorch", "cpuonly", *_CHOOSERS) if name in found), None)


def _problems(made: Lock, foreign: Foreign, told: str | None) -> list[str]:
    problems = check_hashes(foreign, made)
    if told is not None and _has_torch(made):
        problems += lock.check_accelerator(made.packages, None if told == CPU else told)
    return problems


def _has_torch(made: Lock) -> bool:
    return any(package.name in lock.TORCH_NAMES for package in made.packages)


def _second_torch(made: Lock) -> list[Note]:
    """A PyTorch of conda's and one of pip's in one environment: the one linked last shadows the other."""
    both = [
        platform
        for platform in made.platforms
        if {p.manager for p in made.on(platform) if p.name in lock.TORCH_NAMES} == {"conda", "pip"}
    ]
    if not both:
        return []
    text = _("PyTorch comes from conda and again by pip on {platforms}: ask for it in one place only")
    return [Note(text=text.format(platforms=", ".join(both)), warning=True)]


def _looked_up(package: Pinned, shelf: Any) -> Pinned | None:
    """What the channel says of a package that a file names by its URL and md5."""
    if package.manager != "conda":
        return None
    place = fetch.locate(package.url)
    found = shelf.index([place.channel], package.platform).find(package.name, package.url)
    if found is None or (package.md5 and found.md5 != package.md5):
        return None
    if package.sha256 and found.sha256 != package.sha256:
        raise Findings(
            _("{url}: the channel has it with another sha256 than the file").format(url=package.url),
            _("write the file again with `conda list --explicit --sha256`"),
        )
    return package.completed(
        sha256=found.sha256,
        md5=found.md5,
        depends=package.depends or {one.split()[0]: " ".join(one.split()[1:2]) for one in found.depends},
    )
