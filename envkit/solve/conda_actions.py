"""What `envkit-conda` does: solve, solve again with some packages free, and make an environment."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envkit.errors import Error, InputError
from envkit.files import read_yaml
from envkit.messages import _
from envkit.model import Package
from envkit.progress import Observer
from envkit.solve.conda_channels import Setting, installed_records, read_setting, target_platform
from envkit.solve.engine import Index, Solved
from envkit.solve.explicit import Archive, read_explicit

if TYPE_CHECKING:
    from envkit.fetch import Routes

__all__ = ["Door"]


class Door:
    """The verbs of a conda executable that conda-lock calls, over envkit's solver and fetch layer."""

    def __init__(self, *, routes: Routes, cache: Path, observer: Observer) -> None:
        self._routes = routes
        self._cache = cache
        self._observer = observer

    def solve(self, channels: Iterable[str], specs: Sequence[str]) -> tuple[Solved, ...]:
        """The packages that satisfy `specs`. Raises Findings with the reason where none do."""
        setting = read_setting(channels)
        return self._index(setting).solve(specs, setting.virtual_packages)

    def update(self, channels: Iterable[str], specs: Sequence[str], prefix: Path) -> tuple[Solved, ...]:
        """What changes in `prefix` when `specs` take their newest versions and all else stays if it can."""
        setting = read_setting(channels)
        index = self._index(setting)
        installed = installed_records(prefix)
        asked = {spec.split(" ")[0].split("=")[0].split("::")[-1] for spec in specs}
        others = [str(record["name"]) for record in installed if record["name"] not in asked]
        kept = [
            found
            for record in installed
            if record["name"] not in asked
            and (found := index.find(str(record["name"]), str(record["url"]))) is not None
        ]
        solved = index.solve([*specs, *others], setting.virtual_packages, locked=kept)
        before = {str(record["url"]) for record in installed}
        return tuple(package for package in solved if package.url not in before)

    def create(self, solved: Sequence[Solved], prefix: Path, platform: str | None = None) -> None:
        """Download, verify and link packages into `prefix`."""
        _check_prefix(prefix)
        link(
            solved,
            prefix,
            platform or target_platform(),
            routes=self._routes,
            cache=self._cache,
            observer=self._observer,
        )

    def create_from_explicit(self, path: Path, prefix: Path) -> None:
        """Make the environment that an `@EXPLICIT` file lists."""
        _check_prefix(prefix)
        platform = target_platform()
        self.create(self._look_up(read_explicit(path), platform), prefix, platform)

    def create_from_yaml(self, path: Path, prefix: Path) -> None:
        """Make the environment of an environment.yml, its pip section by the environment's own pip."""
        _check_prefix(prefix)
        document = read_yaml(path)
        if not isinstance(document, dict) or not isinstance(document.get("dependencies"), list):
            raise InputError(_("no list of dependencies"), path=path)
        dependencies = document["dependencies"]
        specs = [entry for entry in dependencies if isinstance(entry, str)]
        pip = [
            str(line) for entry in dependencies if isinstance(entry, dict) for line in entry.get("pip") or ()
        ]
        channels = [str(name) for name in document.get("channels") or ()]
        self.create(self.solve(channels, specs), prefix)
        if pip:
            code = self.run(prefix, ["python", "-m", "pip", "install", "--no-deps", *pip])
            if code:
                raise Error(_("pip failed with exit code {code}").format(code=code))

    def run(self, prefix: Path, command: Sequence[str]) -> int:
        """Run a command with the environment's programs first on PATH; its exit code."""
        installed_records(prefix)
        environ = os.environ | {
            "PATH": os.pathsep.join((str(prefix / "bin"), os.environ.get("PATH", os.defpath))),
            "CONDA_PREFIX": str(prefix),
        }
        try:
            return subprocess.run([*command], env=environ, check=False).returncode
        except OSError as problem:
            raise Error(
                _("cannot run {command}: {reason}").format(command=command[0], reason=problem.strerror)
            ) from None

    def _index(self, setting: Setting) -> Index:
        from envkit import fetch

        channels = [(name, fetch.canonical_url(name)) for name in setting.channels]
        return Index(channels, setting.platform, self._repodata())

    def _repodata(self) -> Any:
        from envkit import fetch

        return partial(fetch.repodata, routes=self._routes, cache=self._cache, observer=self._observer)

    def _look_up(self, archives: Sequence[Archive], platform: str) -> list[Solved]:
        """The channel's records of the archives: an explicit file has no dependencies and seldom a sha256."""
        from envkit import fetch

        found: list[Solved] = []
        missing: list[str] = []
        indexes: dict[str, Index] = {}
        for archive in archives:
            channel = fetch.canonical_url(archive.channel)
            if channel not in indexes:
                indexes[channel] = Index([(channel, channel)], platform, self._repodata())
            url = f"{channel}{archive.url.removeprefix(archive.channel)}"
            record = indexes[channel].find(archive.name, url)
            if record is None or not archive.agrees(record.md5, record.sha256):
                missing.append(archive.url)
            else:
                found.append(record)
        if missing:
            raise Error(
                _("the channel no longer lists these archives, or with other hashes:\n{urls}").format(
                    urls="\n".join(f"  {url}" for url in missing)
                ),
                _("install from the lock itself, which has their sha256: `envkit install --lock FILE`"),
            )
        return found


def link(
    solved: Sequence[Solved],
    prefix: Path,
    platform: str,
    *,
    routes: Routes,
    cache: Path,
    observer: Observer,
) -> None:
    """Fetch and verify the archives into the package cache, then link them into `prefix`."""
    from rattler import PackageCache, Subdir, ValidationMode, install
    from rattler.exceptions import InstallerError, LinkError, TransactionError

    from envkit import fetch

    fetch.archives([_package(one, platform) for one in solved], routes=routes, cache=cache, observer=observer)
    try:
        asyncio.run(
            install(
                [one.record for one in solved],
                prefix,
                platform=Subdir(platform),
                package_cache=PackageCache.new_layered(
                    [fetch.package_cache(cache)], validation_mode=ValidationMode.fast()
                ),
                show_progress=False,
            )
        )
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


def _check_prefix(prefix: Path) -> None:
    try:
        occupied = prefix.exists() and not (prefix / "conda-meta").is_dir() and any(prefix.iterdir())
    except OSError as problem:
        raise InputError(_("{path}: {reason}").format(path=prefix, reason=problem.strerror)) from None
    if occupied:
        raise InputError(
            _("{path} exists and is not a conda environment").format(path=prefix),
            _("choose another prefix, or empty this one"),
        )


def fetch_actions(solved: Sequence[Solved]) -> list[Mapping[str, Any]]:
    """What conda calls FETCH: the whole repodata record of each package, with its URL and channel."""
    return [
        json.loads(one.record.to_json())
        | {
            "channel": f"{one.channel}/{one.subdir}",
            "fn": one.file_name,
            "url": one.url,
            "subdir": one.subdir,
        }
        for one in solved
    ]


def link_actions(solved: Sequence[Solved]) -> list[Mapping[str, Any]]:
    """What conda calls LINK: the packages that would stand in the environment."""
    return [
        {
            "base_url": one.channel.rpartition("/")[0],
            "build_number": one.build_number,
            "build_string": one.build,
            "channel": one.channel.rpartition("/")[2],
            "dist_name": f"{one.name}-{one.version}-{one.build}",
            "name": one.name,
            "platform": one.subdir,
            "version": one.version,
        }
        for one in solved
    ]


def listed(prefix: Path) -> list[Mapping[str, Any]]:
    """What `conda list --json` says of a prefix."""
    return [
        {
            "base_url": str(record.get("channel", "")).rpartition("/")[0],
            "build_number": record.get("build_number", 0),
            "build_string": record.get("build", ""),
            "channel": record.get("channel", ""),
            "dist_name": f"{record['name']}-{record['version']}-{record['build']}",
            "name": record["name"],
            "platform": record.get("subdir", ""),
            "version": record["version"],
        }
        for record in installed_records(prefix)
    ]
