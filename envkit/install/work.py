"""What an installation has to do: packages, bytes and files, as far as that is known before it begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from envkit.channels import local_path
from envkit.errors import Error
from envkit.files import parse_json
from envkit.install.conda import stem
from envkit.install.plan import Plan
from envkit.model import Package

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["GROWTH", "Part", "Work", "measure", "total"]

GROWTH = 3.7
"""Bytes on disk for each byte of an archive: 241 MB of packages became 890 MB (the wheel channel's torch)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One package to fetch, to unpack or to link. Sizes are None where they are not known.

    `bytes` are those still to be fetched, or of the files it has; `rewritten` is how many of `bytes` are in
    files that hold the prefix, and `files` how many files there are.
    """

    package: Package
    bytes: int | None = None
    rewritten: int = 0
    files: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The parts of each step. What `unpack` has is fetched before, or lies in a directory of archives.

    `unsized` is how many bytes the archives of `unpack` without a size are together, by what the lock says
    of all its archives: at least, where it `is_sure`, else their share. None where the lock does not say.
    """

    fetch: tuple[Part, ...]
    unpack: tuple[Part, ...]
    link: tuple[Part, ...]
    pip: tuple[Part, ...]
    unsized: int | None = None
    is_sure: bool = False


def total(parts: Sequence[Part]) -> tuple[int, int]:
    """The bytes that are known of, and of how many parts none are."""
    known = [part.bytes for part in parts if part.bytes is not None]
    return sum(known), len(parts) - len(known)


def measure(
    wanted: Plan,
    *,
    cache: Path,
    routes: Routes | None = None,
    sizes: Mapping[str, int] | None = None,
    together: int | None = None,
) -> Work:
    """Count what is to be done to install a plan, given what the cache has. Reads only, and little.

    `sizes` are bytes of archives by sha256, `together` those of all conda archives where the lock says so.
    Archives in directories of `routes`, and whole ones in the cache, are looked at.
    """
    from envkit.fetch import package_cache, wheel_cache

    known = dict(sizes or {})
    packages, wheels = package_cache(cache), wheel_cache(cache)
    fetch, unpack, link, pip = [], [], [], []
    for package in wanted.conda:
        contents = _contents(package, packages)
        link.append(contents)
        if contents.files is None:
            local, size = _archive(package, routes, known, cache)
            unpack.append(Part(package=package, bytes=size))
            if not local:
                fetch.append(Part(package=package, bytes=_left(package, size, cache)))
    for package in wanted.pip:
        kept = wheels / package.sha256 / unquote(package.file_name)
        local, size = _archive(package, routes, known, cache)
        if kept.is_file():
            size = kept.stat().st_size
        elif not local:
            fetch.append(Part(package=package, bytes=_left(package, size, cache)))
        pip.append(Part(package=package, bytes=size))
    unknown = sum(part.bytes is None for part in unpack)
    return Work(
        fetch=tuple(fetch),
        unpack=tuple(unpack),
        link=tuple(link),
        pip=tuple(pip),
        unsized=None if together is None else together * unknown // len(wanted.conda),
        is_sure=unknown == len(wanted.conda),
    )


def _contents(package: Package, packages: Path) -> Part:
    """What a package that is unpacked has, by its own list of files; nothing is known of another."""
    folder = packages / stem(package)
    # rattler's note of the archive an entry came from: the revision, eight bytes, then the sha256.
    note = packages / f"{stem(package)}.lock"
    try:
        if note.read_bytes()[8:].hex() != package.sha256:
            return Part(package=package)
        rows = parse_json((folder / "info" / "paths.json").read_bytes())["paths"]
        sizes = list(_sizes(rows))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Part(package=package)
    return Part(
        package=package,
        bytes=sum(size for size, _rewritten in sizes),
        rewritten=sum(size for size, rewritten in sizes if rewritten),
        files=len(sizes),
    )


def _sizes(rows: Sequence[Mapping[str, object]]) -> Iterator[tuple[int, bool]]:
    for row in rows:
        size = row.get("size_in_bytes")
        yield (size if isinstance(size, int) else 0), bool(row.get("prefix_placeholder"))


def _archive(
    package: Package, routes: Routes | None, sizes: Mapping[str, int], cache: Path
) -> tuple[bool, int | None]:
    """Whether the archive lies on a file system here, and its size."""
    for ending in (".conda", ".tar.bz2"):
        whole = cache / "downloads" / f"{package.sha256}{ending}"
        if whole.is_file():
            return True, whole.stat().st_size
    try:
        urls = routes.urls(package.url) if routes is not None else (package.url,)
    except Error:
        urls = ()  # told by whoever fetches
    for url in urls:
        path = local_path(url)
        if path is not None and path.is_file():
            return True, path.stat().st_size
    return False, sizes.get(package.sha256)


def _left(package: Package, size: int | None, cache: Path) -> int | None:
    """What is left of an archive to fetch, an interrupted download taken off."""
    if size is None:
        return None
    try:
        return max(0, size - (cache / "downloads" / f"{package.sha256}.partial").stat().st_size)
    except OSError:
        return size
