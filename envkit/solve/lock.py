"""A Spec to the text of its lock, and to the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error, Findings, InputError
from envkit.files import write_atomically
from envkit.lock import TORCH_NAMES, check_accelerator, is_fresh, parse_lock, read_lock
from envkit.matrix.nearest import listing, nearest_words
from envkit.messages import _
from envkit.model import Lock, Spec
from envkit.progress import SILENT, Observer
from envkit.solve.agree import agree, torch_version
from envkit.solve.condalock import Request, open_request
from envkit.solve.engine import Index, Solved, Unsolvable, compare_versions
from envkit.solve.explain import explain
from envkit.solve.keep import kept_records, settle
from envkit.solve.shelf import Repodata, Shelf

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["lock_text", "open_shelf", "solve", "write_lock"]

_SECONDS = 1.0
"""Time spent on finding out whether a build of PyTorch goes with a Python."""


def open_shelf(*, routes: Routes, cache: Path, observer: Observer = SILENT) -> Shelf:
    """Repodata over the fetch layer, to be shared by all that is locked in one process."""
    from envkit import fetch

    return Shelf(partial(fetch.repodata, routes=routes, cache=cache, observer=observer), fetch.canonical_url)


def solve(
    spec: Spec,
    *,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    locked: Lock | None = None,
    update: Collection[str] = (),
    shelf: Shelf | None = None,
) -> str:
    """The conda-lock v1 text that pins `spec` on every platform of its variant.

    The same spec and the same channel contents give the same bytes, whichever mirror served them. With
    `locked`, every package of that lock that can stay does, but for those that `update` names: they take
    the highest version there is a solution with. Raises Findings where a platform cannot be solved, or
    where no version of PyTorch fits all of them; FetchError where a channel cannot be read.
    """
    opened = shelf or open_shelf(routes=routes, cache=cache, observer=observer)
    try:
        return _lock_text(spec, opened, observer, locked, update, routes.hosts)
    finally:
        routes.session.summarise(observer, _("indexes fetched: {parts}"))


def write_lock(
    spec: Spec,
    path: Path,
    *,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    update: Collection[str] = (),
    fresh: bool = False,
    shelf: Shelf | None = None,
    check: Callable[[Lock], Sequence[str]] | None = None,
) -> Lock:
    """Lock `spec` into `path`; the old file stays as it was if anything fails.

    A lock that was made for this very spec is left alone, whatever the channels have by now. Otherwise the
    packages of the old lock stay where they can; `update` names those to move. `fresh` forgets the old lock.
    Raises Findings also where `check` has something against the result, by default that the builds are not
    those of the accelerator asked for (a CPU build in the place of a CUDA one solves without complaint);
    InputError for a name in `update` that the lock does not have.
    """
    old = None if fresh else _old_lock(path, observer, needed=bool(update))
    if update:
        _require_names(old, update, path)
    elif old is not None and is_fresh(old, spec):
        return old
    opened = shelf or open_shelf(routes=routes, cache=cache, observer=observer)
    text = solve(spec, routes=routes, cache=cache, observer=observer, locked=old, update=update, shelf=opened)
    lock = parse_lock(text, path)
    problems = check_accelerator(lock.packages, spec.variant.cuda) if check is None else check(lock)
    if problems:
        raise Findings(
            _("{name} solves, but not to what was asked for:\n{problems}").format(
                name=spec.variant.name, problems="\n".join(f"  {problem}" for problem in problems)
            ),
            _such_builds(spec, lock, opened)
            or _("choose a torch version that has such a build for this Python, or another CUDA version"),
        )
    write_atomically(path, text)
    return lock


def lock_text(
    spec: Spec,
    *,
    repodata: Repodata,
    canonical: Callable[[str], str],
    observer: Observer = SILENT,
    locked: Lock | None = None,
    update: Collection[str] = (),
) -> str:
    """`solve`, given where repodata comes from and what a channel's canonical URL is."""
    return _lock_text(spec, Shelf(repodata, canonical), observer, locked, update)


def _lock_text(
    spec: Spec,
    shelf: Shelf,
    observer: Observer,
    locked: Lock | None,
    update: Collection[str],
    mirrors: Sequence[str] = (),
) -> str:
    task = _("solving {name}").format(name=spec.variant.name)
    with open_request(spec) as request:
        observer.start(task, len(request.platforms), _("platforms"))
        try:
            indexes = {platform: shelf.index(spec.channels, platform) for platform in request.platforms}
            solved = _solve_conda(spec, request, shelf, indexes, observer, task, locked, update)
            entries = []
            for platform in request.platforms:
                conda = request.lock_conda(platform, solved[platform])
                pip = request.lock_pip(
                    platform,
                    conda,
                    locked=locked,
                    update=update,
                    mirrors=mirrors,
                    alike=indexes[platform].alike,
                )
                entries += [*conda.values(), *pip.values()]
            _require_one_torch(spec, {entry.version for entry in entries if entry.name in TORCH_NAMES})
            sizes = {platform: [package.size for package in solved[platform]] for platform in solved}
            return request.to_text(entries, sizes)
        finally:
            observer.finish(task)


def _solve_conda(
    spec: Spec,
    request: Request,
    shelf: Shelf,
    indexes: Mapping[str, Index],
    observer: Observer,
    task: str,
    locked: Lock | None,
    update: Collection[str],
) -> Mapping[str, tuple[Solved, ...]]:
    specs = {platform: request.match_specs(platform) for platform in indexes}
    old = {
        platform: kept_records(index, locked, observer) if locked is not None else []
        for platform, index in indexes.items()
    }
    seen: set[str] = set()

    def solve_one(platform: str, further: Sequence[str]) -> tuple[Solved, ...]:
        packages = settle(
            indexes[platform],
            [*specs[platform], *further],
            spec.virtual_packages[platform],
            old=old[platform],
            moving=[name for name in update if any(name == record.name for record in old[platform])],
        )
        if platform not in seen:
            seen.add(platform)
            observer.advance(task)
        version = torch_version(packages)
        told = (
            _("{platform}: {count} packages, torch {version}")
            if version
            else _("{platform}: {count} packages")
        )
        observer.note(told.format(platform=platform, count=len(packages), version=version))
        return packages

    def versions(platform: str) -> frozenset[str]:
        asked = [one for one in specs[platform] if one.partition(" ")[0] in TORCH_NAMES]
        return indexes[platform].versions(asked[0] if asked else TORCH_NAMES[0])

    try:
        return agree(request.platforms, solve_one, versions, nearest=locked is not None)
    except Unsolvable as problem:
        raise explain(spec, specs[problem.platform], indexes[problem.platform], shelf, problem) from None


def _old_lock(path: Path, observer: Observer, *, needed: bool) -> Lock | None:
    """The lock in the file that is about to be written; one that cannot be read counts as none."""
    if not path.exists():
        return None
    try:
        return read_lock(path)
    except Error as problem:
        if needed:
            raise
        observer.note(_("the old lock cannot be read and is made anew: {reason}").format(reason=problem))
        return None


def _require_names(old: Lock | None, names: Collection[str], path: Path) -> None:
    if old is None:
        raise InputError(
            _("there is no lock yet in which {names} could be updated").format(names=listing(names)),
            _("lock it first, without --update"),
            path=path,
        )
    known = sorted({package.name for package in old.packages})
    for name in names:
        if name not in known:
            raise InputError(
                _("'{name}' is not in the lock; the nearest are {valid}").format(
                    name=name, valid=listing(nearest_words(name, known)[:3])
                ),
                _("`--update` takes the names of locked packages, without a version"),
                path=path,
            )


def _such_builds(spec: Spec, lock: Lock, shelf: Shelf) -> str:
    """The hint that names the versions of PyTorch which a channel has for the CUDA version asked for."""
    cuda, found = spec.variant.cuda, set[str]()
    for platform in spec.variant.platforms if cuda is not None else ():
        index = shelf.index(spec.channels, platform)
        pythons = [f"python {one.version}" for one in lock.on(platform) if one.name == "python"]
        for tag in (f"{cuda}*", f"{cuda}".replace(".", "") + "*"):
            build = f"*cuda{tag}"
            for version in sorted(index.versions(f"{TORCH_NAMES[0]} * {build}") - found):
                try:
                    index.solve(
                        [f"{TORCH_NAMES[0]} {version} {build}", *pythons],
                        spec.virtual_packages[platform],
                        limit=_SECONDS,
                    )
                except Unsolvable:
                    continue
                found.add(version)
    if not found:
        return ""
    versions = compare_versions(sorted({".".join(one.split(".")[:2]) for one in found}))
    return _(
        "for CUDA {cuda} there are builds of torch {versions}: ask for one of them, or for another CUDA"
    ).format(cuda=cuda, versions=listing(versions))


def _require_one_torch(spec: Spec, versions: set[str]) -> None:
    """Conda packages were made to agree; PyTorch from a pip section can still differ between platforms."""
    public = {version.partition("+")[0] for version in versions}
    if len(public) > 1:
        raise Findings(
            _("{name} gets different versions of PyTorch on its platforms: {versions}").format(
                name=spec.variant.name, versions=", ".join(compare_versions(sorted(public)))
            ),
            _("pin torch in the pip section to a version that every platform has"),
        )
