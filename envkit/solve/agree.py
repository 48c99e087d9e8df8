"""One torch version on every platform of a lock.

Solved one by one, platforms drift apart: the newest PyTorch of one channel folder is not that of another.
An experiment moved from a laptop to a server must meet the same version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from envkit.errors import Findings
from envkit.lock import TORCH_NAMES
from envkit.messages import _
from envkit.solve.engine import Solved, compare_versions

__all__ = ["Solve", "agree", "torch_version"]

Solve = Callable[[str, Sequence[str]], tuple[Solved, ...]]
"""Solves one platform with some further constraints; raises Findings where that cannot be."""


def torch_version(packages: Sequence[Solved]) -> str | None:
    """The version of PyTorch among solved packages."""
    return next((package.version for package in packages if package.name in TORCH_NAMES), None)


def agree(
    platforms: Sequence[str],
    solve: Solve,
    versions: Callable[[str], frozenset[str]],
    *,
    nearest: bool = False,
) -> Mapping[str, tuple[Solved, ...]]:
    """Solve every platform so that all that have PyTorch have the same version of it.

    Each is solved freely first, several at a time. Where that gives different versions, the highest version
    that every one of them has is asked of all, then the next lower, until one solves everywhere. `versions`
    gives those that a platform has within the spec. `nearest` asks first for the versions that a platform
    has taken by itself, so that no more moves than must. Raises Findings where none does, and what `solve`
    raises for a platform that cannot be solved at all.
    """
    with ThreadPoolExecutor(max_workers=len(platforms)) as pool:
        # The first platform's trouble is told first, whichever fails first.
        free = dict(zip(platforms, pool.map(lambda platform: solve(platform, ()), platforms), strict=True))
    chosen = {
        platform: version for platform, packages in free.items() if (version := torch_version(packages))
    }
    if len(set(chosen.values())) <= 1:
        return free
    common = frozenset.intersection(*(versions(platform) for platform in chosen))
    # The platform that got the lowest version by itself is the one most likely to refuse a higher one.
    order = sorted(
        chosen, key=lambda platform: compare_versions(sorted(set(chosen.values()))).index(chosen[platform])
    )
    taken = set(chosen.values()) if nearest else set()
    for version in sorted(compare_versions(sorted(common)), key=lambda version: version not in taken):
        pinned = _solve_all(order[::-1], solve, f"pytorch =={version}")
        if pinned is not None:
            return free | pinned
    raise Findings(
        _("no version of PyTorch solves on every platform; each by itself takes: {chosen}").format(
            chosen=", ".join(f"{platform} {version}" for platform, version in chosen.items())
        ),
        _("drop a platform of the variant in environments/matrix.yaml, or allow other versions of torch"),
    )


def _solve_all(platforms: Sequence[str], solve: Solve, pin: str) -> dict[str, tuple[Solved, ...]] | None:
    solved = {}
    for platform in platforms:
        try:
            solved[platform] = solve(platform, (pin,))
        except Findings:
            return None
    return solved
