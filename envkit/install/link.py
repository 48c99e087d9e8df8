"""Linking extracted conda packages into a staged prefix: all that is known of `rattler.install`.

The records are built from each archive's own `info/index.json` (the lock has neither build number nor
`noarch: python`), after checking that the archive is the package that the lock names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from envkit.errors import Error
from envkit.install.conda import stem
from envkit.install.space import full_disk, is_full
from envkit.messages import _
from envkit.model import Package
from envkit.progress import Observer

if TYPE_CHECKING:
    from rattler import RepoDataRecord
    from rattler.install import InstallerReporter

__all__ = ["link"]

_TOO_LONG = "longer than the placeholder"


def link(
    packages: Sequence[Package], stage: Path, final: Path, *, platform: str, cache: Path, observer: Observer
) -> None:
    """Link `packages`, extracted in the package cache `cache`, into `stage` as if it were at `final`.

    No link script is run and no connection opened. Raises Error; the stage is then of no use.
    """
    import asyncio

    from rattler.install import install
    from rattler.networking import Client
    from rattler.package_cache import PackageCache, ValidationMode
    from rattler.platform import Subdir

    records = [_record(package, cache) for package in packages]
    shelf = _shelf(cache, stage, packages)
    watcher = _Watcher(observer, total=len(records))
    work = install(
        records,
        stage,
        platform=Subdir(platform),
        package_cache=PackageCache.new_layered([shelf], validation_mode=ValidationMode.fast()),
        # What is missing from the cache is an error: only envkit.fetch opens connections.
        client=Client(timeout=0),
        reporter=cast("InstallerReporter", watcher),
        show_progress=False,
        execute_link_scripts=False,
        alternative_target_prefix=final,
    )
    try:
        asyncio.run(work)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # a panic of the Rust side is no Exception
        raise _explained(problem, packages, final, cache) from None
    finally:
        watcher.finish()


def _shelf(cache: Path, stage: Path, packages: Sequence[Package]) -> Path:
    """Where rattler is to look; it opens its notes for writing, though nothing is added.

    So where the cache is read-only it gets copies of the notes, beside links to what is unpacked.
    """
    if os.access(cache, os.W_OK):
        return cache
    layer = stage.with_name("layer")
    layer.mkdir()
    for package in packages:
        name = stem(package)
        (layer / name).symlink_to(cache / name)
        (layer / f"{name}.lock").write_bytes((cache / f"{name}.lock").read_bytes())
    return layer


class _Watcher:
    """Hears of rattler's steps (its InstallerReporter protocol, called from its threads)."""

    def __init__(self, observer: Observer, total: int) -> None:
        self._observer = observer
        self._task = _("link packages")
        observer.start(self._task, total, _("packages"))

    def on_link_complete(self, _index: int) -> None:
        self._observer.advance(self._task)

    def finish(self) -> None:
        self._observer.finish(self._task)


def _record(package: Package, cache: Path) -> RepoDataRecord:
    from rattler import PackageRecord, RepoDataRecord

    index = cache / stem(package) / "info" / "index.json"
    try:
        record = PackageRecord.from_index_json(index, None, package.sha256, package.md5)
    except Exception as problem:
        raise Error(
            _("the package cache has no usable {package}: {reason}").format(
                package=stem(package), reason=_one_line(problem)
            ),
            _("run the command again; if that does not help, delete {folder}").format(
                folder=index.parent.parent
            ),
        ) from None
    said = (record.name.normalized, str(record.version), str(record.build))
    if said != (package.name, package.version, package.build):
        raise Error(
            _("the archive {file} holds {said}, not what the lock names").format(
                file=package.file_name, said="-".join(said)
            ),
            _("make the lock again with `envkit lock`"),
        )
    return RepoDataRecord(
        record, stem(package) + _ending(package), package.url, package.url.rsplit("/", 2)[0]
    )


def _ending(package: Package) -> str:
    return ".tar.bz2" if package.file_name.endswith(".tar.bz2") else ".conda"


def _explained(problem: BaseException, packages: Sequence[Package], final: Path, cache: Path) -> Error:
    if is_full(problem):
        return full_disk(final.parent, packages, cache)
    reason = _one_line(problem)
    if _TOO_LONG in reason:
        return Error(
            _("the path {prefix} is too long for the packages: {reason}").format(prefix=final, reason=reason),
            _("choose a shorter folder with `--prefix DIR` or ENVKIT_HOME"),
        )
    return Error(
        _("the packages could not be linked: {reason}").format(reason=reason),
        _("run the command again; the environment that was there is as it was"),
    )


def _one_line(problem: BaseException) -> str:
    """rattler's message, its causes joined: "failed to link X: No space left on device (os error 28)"."""
    return re.sub(r"\s*\n\s*(Caused by:\s*)?", ": ", str(problem).strip()) or type(problem).__name__
