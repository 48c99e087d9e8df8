"""A stranger's file to a lock beside it: whatever people call their environment, pinned with hashes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from envkit import fetch, lock, paths
from envkit.errors import Findings, InputError
from envkit.files import write_atomically
from envkit.lock.formats import Foreign, Note, Pinned, check_hashes, read_spec, v1_text
from envkit.messages import _
from envkit.model import CPU, Lock, Spec, Variant
from envkit.progress import Observer
from envkit.render import digest, virtual_packages
from envkit.up.occupied import earlier_lock
from envkit.up.request import shown
from envkit.up.team import Relocked, old_lock, with_cause

__all__ = ["LockedFile", "check_file", "lock_file"]

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
    platforms: tuple[str, ...] = (),
    routes: fetch.Routes,
    observer: Observer,
    update: tuple[str, ...] = (),
    fresh: bool = False,
) -> LockedFile:
    """Lock what a file asks for into `target`, by default conda-lock.yml beside it.

    It is locked for `platforms`, else for those that it names, else for `platform`. `cuda` ("12.4" or "cpu")
    says which builds of PyTorch are meant where the file does not; CPU builds are refused only where either
    does. A file that pins everything already is written as a lock without solving. What lies at `target`
    gives the pins where it was made of the same file; only `fresh` with a `target` of its own replaces
    anything else.
    Raises InputError naming the line of what cannot be locked, Findings where there is no solution.
    """
    from envkit import solve

    foreign = _read(path, python, platform, platforms)
    replacing = fresh and target is not None
    target = target or path.with_name(lock.LOCK_NAME)
    before = old_lock(target) if replacing else earlier_lock(target, path)
    shelf = solve.open_shelf(routes=routes, cache=paths.cache(), observer=observer)
    notes = list(foreign.notes)
    if foreign.is_lock:

        def complete(package: Pinned) -> Pinned | None:
            return _looked_up(package, shelf)

        text = v1_text(foreign, complete=complete)
        made = Relocked(lock=lock.parse_lock(text, target), before=before)
        write_atomically(target, text)
        lacking = sum(package.sha256 is None for package in foreign.pinned)
        if lacking:
            notes.append(
                Note(
                    text=_("the sha256 of {count} packages are the channel's word: {file} gives none").format(
                        file=path.name, count=lacking
                    ),
                    warning=any(not (package.sha256 or package.md5) for package in foreign.pinned),
                )
            )
    else:
        spec, told = _spec(foreign, python, cuda, platforms or foreign.platforms or (platform,))
        solved = solve.write_lock(
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
        made = with_cause(Relocked(lock=solved, before=before), spec, update, shelf)
        if told is None and _has_torch(solved):
            notes.append(
                Note(text=_("nothing says which CUDA is meant; PyTorch is locked as the solver chose it"))
            )
    notes += _second_torch(made.lock)
    return LockedFile(name=foreign.name, made=made, notes=tuple(notes))


def check_file(
    path: Path,
    target: Path | None,
    *,
    python: str | None,
    cuda: str | None,
    platform: str,
    platforms: tuple[str, ...] = (),
) -> lock.LockState:
    """Whether the lock at `target`, by default beside the file, is the file's; offline, nothing is solved.

    The arguments are those of `lock_file`, which must have been the same when the lock was made.
    """
    foreign = _read(path, python, platform, platforms)
    target = target or path.with_name(lock.LOCK_NAME)
    spec, _told = _spec(foreign, python, cuda, platforms or foreign.platforms or (platform,))
    where = "" if target == path.with_name(lock.LOCK_NAME) else f" -o {shown(target)}"
    hint = _("run `envkit lock --file {file}{where}`").format(file=shown(path), where=where)
    found = earlier_lock(target, path)
    state: lock.State
    if found is None:
        state, reason = "missing", _("there is no lock yet")
    elif _same_archives(foreign, found) if foreign.is_lock else lock.is_fresh(found, spec):
        return lock.LockState(variant=spec.variant, path=target, state="fresh")
    else:
        state = "stale"
        reason = _("{file} asks for something else than when the lock was made").format(file=path.name)
    return lock.LockState(variant=spec.variant, path=target, state=state, reason=reason, hint=hint)


def _same_archives(foreign: Foreign, found: Lock) -> bool:
    pinned = {(package.platform, package.url) for package in foreign.pinned}
    return pinned == {(package.platform, package.url) for package in found.packages}


def _read(path: Path, python: str | None, platform: str, platforms: tuple[str, ...]) -> Foreign:
    foreign = read_spec(path, python=python, platform=platforms[0] if platforms else platform)
    if platforms and foreign.is_lock and set(platforms) - set(foreign.platforms):
        raise InputError(
            _("every package is pinned in it already, for {platforms}").format(
                platforms=", ".join(foreign.platforms)
            ),
            _("leave out --platform"),
            path=path,
        )
    return foreign


def _spec(
    foreign: Foreign, python: str | None, cuda: str | None, platforms: tuple[str, ...]
) -> tuple[Spec, str | None]:
    """The file as a Spec, and the accelerator that it or the user names."""
    told = cuda or foreign.accelerator or (None if foreign.is_lock else _accelerator(foreign.text))
    variant = Variant(
        name=foreign.name,
        python=python or "",
        accelerator=told or CPU,
        torch="*",
        source="conda-forge",
        platforms=platforms,
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
