"""A lock into a bundle: what goes into it, fetched and described."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import envkit
from envkit.channels import canonical_url, channel_name, locate
from envkit.errors import InputError
from envkit.install.bundle.contents import ENVKIT, INSTALLER, LOCK, SPEC, Contents, Member
from envkit.install.bundle.members import channel_path, paths_of
from envkit.install.bundle.opening import host_bound_warning
from envkit.install.bundle.own import envkit_wheel, own_wheels
from envkit.install.bundle.records import index, record
from envkit.install.bundle.writing import Content, check_output, member_of, write
from envkit.install.plan import Plan, plan
from envkit.install.target import check_name
from envkit.model import Lock, Package
from envkit.progress import SILENT, Observer

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["Bundled", "bundle"]

_START = "start.py"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundled:
    """A bundle that was written: its sha256 (hex) and the bytes it has."""

    path: Path
    sha256: str
    size: int
    contents: Contents


def bundle(
    lock: Lock,
    output: Path,
    *,
    name: str,
    platform: str,
    routes: Routes,
    cache: Path,
    observer: Observer = SILENT,
    spec: str | None = None,
    host_bound: bool = False,
) -> Bundled:
    """Write one plain tar with all that `envkit install` needs to make the environment of `lock` elsewhere.

    That is every package for `platform`, the lock, the rendered `spec` where there is one, envkit's own
    wheels and `install.sh`; the same bytes whichever mirror served. What was fetched when a call was killed
    is kept, the tar as far as it was written too. `host_bound` says that the packages are the wheel
    channel's. Raises InputError for a lock that has nothing for the platform or an output that cannot be, and
    else what fetching and pip raise, and Error for a disk without room.
    """
    from envkit import fetch

    check_name(name)
    check_output(output)
    wanted = plan(lock, platform, elsewhere=True)
    if host_bound:
        observer.note(host_bound_warning())
    own = own_wheels(platform, cache=cache, observer=observer, offline=routes.session.offline)
    files = {
        **fetch.downloads(wanted.conda, routes=routes, cache=cache, observer=observer),
        **fetch.wheels(wanted.pip, routes=routes, cache=cache, observer=observer),
    }
    packages = paths_of((*wanted.conda, *wanted.pip))
    parts: dict[str, Content] = {path: files[package.sha256] for path, package in packages.items()}
    parts |= _indexes(lock, wanted, packages, files)
    parts |= {f"{ENVKIT}/{file}": path for file, path in own.files.items()}
    wheel, raw = envkit_wheel()
    parts[f"{ENVKIT}/{wheel}"] = raw
    shipped = resources.files("envkit.install.bundle")
    parts[f"{ENVKIT}/{_START}"] = (shipped / _START).read_bytes()
    parts[INSTALLER] = (shipped / INSTALLER).read_bytes()
    parts[LOCK] = lock.path.read_bytes()
    if spec is not None:
        parts[SPEC] = spec.encode()
    contents = Contents(
        name=name,
        platform=platform,
        host_bound=host_bound,
        pythons=own.pythons,
        envkit=envkit.__version__,
        members=tuple(_member(path, parts[path], packages.get(path)) for path in sorted(parts)),
    )
    Contents.parse(contents.text, output)  # what could not be read again is not written
    sha256 = write(contents, parts, output, observer)
    return Bundled(path=output, sha256=sha256, size=output.stat().st_size, contents=contents)


def _member(path: str, content: Content, package: Package | None) -> Member:
    if package is None or isinstance(content, bytes):
        return member_of(path, content)
    return Member(path=path, sha256=package.sha256, size=content.stat().st_size)


def _indexes(
    lock: Lock, wanted: Plan, packages: Mapping[str, Package], files: Mapping[str, Path]
) -> dict[str, Content]:
    """The repodata.json of each channel of the lock; a solver asks also for one that gave nothing."""
    folders = {channel_path(channel) for channel in _channels(lock)}
    folders |= {channel_path(locate(package.url).channel) for package in wanted.conda}
    tables: dict[str, dict[str, dict[str, Any]]] = {
        f"{folder}/{subdir}": {} for folder in folders for subdir in (wanted.platform, "noarch")
    }
    for path, package in packages.items():
        if package.manager == "conda":
            folder, _slash, file = path.rpartition("/")
            tables[folder][file] = record(files[package.sha256], package)
    return {
        f"{place}/repodata.json": index(place.rpartition("/")[2], table) for place, table in tables.items()
    }


def _channels(lock: Lock) -> Iterator[str]:
    for written in lock.channels:
        with suppress(InputError):  # "defaults" names none of its own
            url = canonical_url(written)
            yield channel_name(url) or url
