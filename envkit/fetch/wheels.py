"""The files of a lock's pip section on this machine: fetched like archives, kept whole, hashed before use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from envkit.channels import is_url, shown
from envkit.errors import InputError
from envkit.fetch.disk import private_folder
from envkit.fetch.gathering import Gathering, Item, held, item
from envkit.fetch.routes import Routes
from envkit.fetch.use import use
from envkit.messages import _
from envkit.model import Package
from envkit.progress import SILENT, Observer

__all__ = ["wheel_cache", "wheel_file", "wheels"]

_MAGIC = {
    ".whl": (b"PK\x03\x04",),
    ".zip": (b"PK\x03\x04",),
    ".tar.gz": (b"\x1f\x8b",),
    ".tgz": (b"\x1f\x8b",),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    """One file of the pip section, and where it is kept."""

    item: Item
    path: Path


def wheel_cache(cache: Path) -> Path:
    """The folder that has `<sha256>/<file>` for each file of a pip section."""
    return cache / "pip-files"


def wheel_file(package: Package, cache: Path) -> Path:
    """Where the file of a pip package is, or would be, kept."""
    return wheel_cache(cache) / package.sha256 / unquote(package.file_name)


def wheels(
    packages: Sequence[Package],
    *,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Path]:
    """Have the file of every pip package of `packages` below `wheel_cache(cache)`; their paths by sha256.

    Mirrors, failover, resuming and checks are those of `archives`. A file that is there already is hashed
    again before it counts. Raises InputError for a package whose URL names no file (a repository),
    and else as `archives` does.
    """
    wanted = {
        file.item.sha256: file
        for package in packages
        if package.manager == "pip"
        for file in (_file(package, routes, wheel_cache(cache)),)
    }
    if not wanted:
        return {}
    use(cache, observer)
    folders = (cache / "downloads", wheel_cache(cache), wheel_cache(cache) / ".locks")
    for folder in folders:
        private_folder(folder)
    gathering = Gathering(session=routes.session, downloads=folders[0], observer=observer, sizes=sizes or {})
    found: dict[str, Path] = {}

    def have(file: _File) -> None:
        from filelock import FileLock

        lock = FileLock(folders[2] / f"{file.item.sha256}.lock", mode=0o600)
        with held(lock, file.item.file, observer, gathering.stop):
            private_folder(file.path.parent)
            found[file.item.sha256] = gathering.keep(file.item, file.path, copy=True)

    missing = []
    for file in wanted.values():
        if gathering.has(file.item, file.path):
            found[file.item.sha256] = file.path
        else:
            missing.append(file)
    gathering.all(missing, lambda file: file.item, have)
    return found


def _file(package: Package, routes: Routes, folder: Path) -> _File:
    url = package.url.split("#", 1)[0]
    name = unquote(package.file_name)
    magic = next((magic for ending, magic in _MAGIC.items() if name.endswith(ending)), ())
    if not is_url(url, "https", "http", "file"):
        raise InputError(
            _("{url} is no file that can be checked against a sha256").format(url=shown(package.url)),
            _("name a release of the package instead, then lock again"),
        )
    wanted = item(package, name, routes.urls(url), magic)
    return _File(item=wanted, path=folder / wanted.sha256 / wanted.file)
