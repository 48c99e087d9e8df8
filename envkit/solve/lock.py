"""A Spec to the text of its lock, and to the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Findings
from envkit.files import write_atomically
from envkit.lock import TORCH_NAMES, check_accelerator, parse_lock
from envkit.messages import _
from envkit.model import Lock, Spec
from envkit.progress import SILENT, Observer
from envkit.solve.agree import agree, torch_version
from envkit.solve.condalock import Request, open_request
from envkit.solve.engine import Index, Repodata, Solved, compare_versions

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["lock_text", "solve", "write_lock"]


def solve(
    spec: Spec, *, routes: Routes, cache: Path, observer: Observer = SILENT, locked: Lock | None = None
) -> str:
    """The conda-lock v1 text that pins `spec` on every platform of its variant.

    The same spec and the same channel contents give the same bytes, whichever mirror served them. With
    `locked`, packages of that lock are kept where they still fit. Raises Findings where a platform cannot
    be solved, or where no version of PyTorch fits all of them; FetchError where a channel cannot be read.
    """
    from envkit import fetch

    repodata = partial(fetch.repodata, routes=routes, cache=cache, observer=observer)
    return lock_text(spec, repodata=repodata, canonical=fetch.canonical_url, observer=observer, locked=locked)


def write_lock(
    spec: Spec,
    path: Path,
    *,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    locked: Lock | None = None,
) -> Lock:
    """Solve `spec` and write its lock to `path`; the old file stays as it was if anything fails.

    Raises Findings also where the builds are not those of the accelerator asked for: a CPU build in the
    place of a CUDA one solves without complaint.
    """
    text = solve(spec, routes=routes, cache=cache, observer=observer, locked=locked)
    lock = parse_lock(text, path)
    problems = check_accelerator(lock.packages, spec.variant.cuda)
    if problems:
        raise Findings(
            _("{name} solves, but not to what was asked for:\n{problems}").format(
                name=spec.variant.name, problems="\n".join(f"  {problem}" for problem in problems)
            ),
            _("choose a torch version that has such a build for this Python, or another CUDA version"),
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
) -> str:
    """`solve`, given where repodata comes from and what a channel's canonical URL is."""
    task = _("solving {name}").format(name=spec.variant.name)
    channels = [(name, canonical(name)) for name in spec.channels]
    with open_request(spec) as request:
        observer.start(task, len(request.platforms), _("platforms"))
        try:
            indexes = {platform: Index(channels, platform, repodata) for platform in request.platforms}
            solved = _solve_conda(spec, request, indexes, locked, observer, task)
            entries = []
            for platform in request.platforms:
                conda = request.lock_conda(platform, solved[platform])
                pip = request.lock_pip(platform, conda)
                entries += [*conda.values(), *pip.values()]
            _require_one_torch(spec, {entry.version for entry in entries if entry.name in TORCH_NAMES})
            return request.to_text(entries)
        finally:
            observer.finish(task)


def _solve_conda(
    spec: Spec,
    request: Request,
    indexes: Mapping[str, Index],
    locked: Lock | None,
    observer: Observer,
    task: str,
) -> Mapping[str, tuple[Solved, ...]]:
    specs = {platform: request.match_specs(platform) for platform in indexes}
    kept = {platform: _kept(indexes[platform], locked) for platform in indexes}
    seen: set[str] = set()

    def solve_one(platform: str, further: Sequence[str]) -> tuple[Solved, ...]:
        try:
            packages = indexes[platform].solve(
                [*specs[platform], *further], spec.virtual_packages[platform], locked=kept[platform]
            )
        except Findings as problem:
            raise Findings(
                _("{name} cannot be solved for {platform}: {reason}").format(
                    name=spec.variant.name, platform=platform, reason=problem.message
                ),
                _("relax what is named above in environments/matrix.yaml, or choose other axes"),
            ) from None
        if platform not in seen:
            seen.add(platform)
            observer.advance(task)
        observer.note(
            _("{platform}: {count} packages, torch {version}").format(
                platform=platform, count=len(packages), version=torch_version(packages) or "-"
            )
        )
        return packages

    def versions(platform: str) -> frozenset[str]:
        asked = [one for one in specs[platform] if one.partition(" ")[0] in TORCH_NAMES]
        return indexes[platform].versions(asked[0] if asked else TORCH_NAMES[0])

    return agree(request.platforms, solve_one, versions)


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


def _kept(index: Index, locked: Lock | None) -> list[Solved]:
    if locked is None:
        return []
    found = (
        index.find(package.name, package.url)
        for package in locked.on(index.platform)
        if package.manager == "conda"
    )
    return [package for package in found if package is not None]
