"""What `envkit-conda` does: solve, solve again with some packages free, and make an environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error, InputError
from envkit.files import read_yaml
from envkit.messages import _
from envkit.progress import Observer
from envkit.solve.conda_channels import Setting, installed_records, read_setting, target_platform
from envkit.solve.conda_link import check_prefix, link
from envkit.solve.engine import Index, Solved
from envkit.solve.explicit import Archive, read_explicit
from envkit.solve.shelf import Shelf

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
        check_prefix(prefix)
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
        check_prefix(prefix)
        platform = target_platform()
        self.create(self._look_up(read_explicit(path), platform), prefix, platform)

    def create_from_yaml(self, path: Path, prefix: Path) -> None:
        """Make the environment of an environment.yml, its pip section by the environment's own pip."""
        check_prefix(prefix)
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

        return self._shelf().index(setting.channels, setting.platform)

    def _shelf(self) -> Shelf:
        from envkit import fetch

        repodata = partial(fetch.repodata, routes=self._routes, cache=self._cache, observer=self._observer)
        return Shelf(repodata, fetch.canonical_url)

    def _look_up(self, archives: Sequence[Archive], platform: str) -> list[Solved]:
        """The channel's records of the archives: an explicit file has no dependencies and seldom a sha256."""
        from envkit import fetch

        found: list[Solved] = []
        missing: list[str] = []
        indexes: dict[str, Index] = {}
        shelf = self._shelf()
        for archive in archives:
            channel = fetch.canonical_url(archive.channel)
            if channel not in indexes:
                indexes[channel] = shelf.index([channel], platform)
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
