"""Packages into a prefix: the one place where `envkit-conda` writes an environment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error, InputError
from envkit.messages import _
from envkit.model import Package
from envkit.progress import Observer
from envkit.solve.engine import Solved

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["check_prefix", "link"]


def check_prefix(prefix: Path) -> None:
    """Raise InputError for a folder with something in it that is not a conda environment."""
    try:
        occupied = prefix.exists() and not (prefix / "conda-meta").is_dir() and any(prefix.iterdir())
    except OSError as problem:
        raise InputError(_("{path}: {reason}").format(path=prefix, reason=problem.strerror)) from None
    if occupied:
        raise InputError(
            _("{path} exists and is not a conda environment").format(path=prefix),
            _("choose another prefix, or empty this one"),
        )


def link(
    solved: Sequence[Solved],
    prefix: Path,
    platform: str,
    *,
    routes: Routes,
    cache: Path,
    observer: Observer,
) -> None:
    """Fetch and verify the archives into the package cache, then link them into `prefix`.

    Not staged, as conda's own is not: conda-lock made or emptied the prefix. Raises Error where that fails.
    """
    from rattler import PackageCache, Subdir, ValidationMode, install
    from rattler.exceptions import InstallerError, LinkError, TransactionError

    from envkit import fetch

    fetch.archives(
        [_package(one, platform) for one in solved],
        routes=routes,
        cache=cache,
        observer=observer,
        sizes={one.sha256: one.size for one in solved if one.sha256 and one.size},
    )
    packages = PackageCache.new_layered([fetch.package_cache(cache)], validation_mode=ValidationMode.fast())

    async def run() -> None:
        await install(
            [one.record for one in solved],
            prefix,
            platform=Subdir(platform),
            package_cache=packages,
            show_progress=False,
        )

    try:
        asyncio.run(run())
        (prefix / "conda-meta").mkdir(parents=True, exist_ok=True)
        (prefix / "conda-meta" / "history").touch()
    except (InstallerError, LinkError, TransactionError, OSError) as problem:
        raise Error(
            _("{path} could not be made: {reason}").format(path=prefix, reason=problem),
            _("free some space, or choose a folder you may write to"),
        ) from None


def _package(one: Solved, platform: str) -> Package:
    if one.sha256 is None:
        raise Error(_("{url}: the channel states no sha256 for it").format(url=one.url))
    return Package(
        name=one.name,
        version=one.version,
        manager="conda",
        platform=platform,
        url=one.url,
        sha256=one.sha256,
        md5=one.md5,
    )
