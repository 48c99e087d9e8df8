"""What `envkit-conda` solves with: channels, virtual packages, and the packages of an earlier solve.

conda-lock describes the target machine by a channel of its own making, a folder whose records say
`"package_type": "virtual_system"`. rattler would install them; here they become virtual packages.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from envkit.errors import InputError
from envkit.files import parse_json
from envkit.messages import _
from envkit.model import VirtualPackage

__all__ = ["Setting", "installed_records", "read_setting", "target_platform"]

_EXPANDED: Mapping[str, tuple[str, ...]] = {
    "defaults": ("pkgs/main", "pkgs/r"),
    "msys2": ("pkgs/msys2",),
    "nodefaults": (),
}
"""What conda's own names stand for. Source: conda/base/constants.py, DEFAULT_CHANNELS."""

_ALWAYS: Mapping[str, tuple[str, ...]] = {
    "linux": ("__unix", "__linux"),
    "osx": ("__unix",),
    "win": ("__win",),
}
_OVERRIDES: Mapping[str, str] = {
    "CONDA_OVERRIDE_CUDA": "__cuda",
    "CONDA_OVERRIDE_GLIBC": "__glibc",
    "CONDA_OVERRIDE_LINUX": "__linux",
    "CONDA_OVERRIDE_OSX": "__osx",
    "CONDA_OVERRIDE_WIN": "__win",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """Where packages come from and what the solver is told of the machine they are for."""

    platform: str
    channels: tuple[str, ...]
    virtual_packages: tuple[VirtualPackage, ...]


def target_platform(environ: Mapping[str, str] = os.environ) -> str:
    """CONDA_SUBDIR, else the subdir of this machine."""
    chosen = environ.get("CONDA_SUBDIR")
    if chosen:
        return chosen
    from rattler import Subdir

    return str(Subdir.current())


def read_setting(named: Iterable[str], environ: Mapping[str, str] = os.environ) -> Setting:
    """The channels among `named`, and the virtual packages: of conda-lock's channel, else of this machine."""
    platform = target_platform(environ)
    channels: list[str] = []
    virtual: dict[str, VirtualPackage] | None = None
    for name in named:
        records = _virtual_records(name, platform)
        if records is None:
            channels += _EXPANDED.get(name, (name,))
        else:
            virtual = (virtual or {}) | records
    if not channels:
        raise InputError(_("no channel to take packages from"), _("name one with `--channel NAME`"))
    if virtual is None:
        virtual = _of_machine(platform, environ)
    return Setting(
        platform=platform,
        channels=tuple(dict.fromkeys(channels)),
        virtual_packages=tuple(virtual.values()),
    )


def installed_records(prefix: Path) -> list[Mapping[str, Any]]:
    """The `conda-meta` records of a prefix, sorted by name. Raises InputError where it has none."""
    meta = prefix / "conda-meta"
    if not meta.is_dir():
        raise InputError(_("{path} is not a conda environment").format(path=prefix))
    records = []
    for path in meta.glob("*.json"):
        try:
            record = parse_json(path.read_text(encoding="utf-8"))
            if not isinstance(record, dict):
                raise ValueError(_("expected a mapping"))
            records.append(record)
        except (OSError, ValueError) as problem:
            raise InputError(_("not a record: {reason}").format(reason=problem), path=path) from None
    return sorted(records, key=lambda record: str(record.get("name")))


def _virtual_records(channel: str, platform: str) -> dict[str, VirtualPackage] | None:
    """The virtual packages that a `file://` channel describes; None where it is a channel of packages."""
    if not channel.startswith("file://"):
        return None
    folder = Path(unquote(urlsplit(channel).path))
    found: dict[str, VirtualPackage] = {}
    described = False
    for subdir in ("noarch", platform):
        for record in _records(folder / subdir / "repodata.json"):
            if record.get("package_type") != "virtual_system":
                return None
            described = True
            found[record["name"]] = _highest(
                found.get(record["name"]),
                VirtualPackage(
                    name=record["name"], version=str(record["version"]), build=record.get("build") or "0"
                ),
            )
    return found if described or folder.name.startswith("conda-lock-fake-repodata-") else None


def _records(path: Path) -> list[Mapping[str, Any]]:
    try:
        repodata = parse_json(path.read_text(encoding="utf-8"))
        tables = [repodata.get(key) or {} for key in ("packages", "packages.conda")]
        return [record for table in tables for record in table.values() if isinstance(record, dict)]
    except (OSError, ValueError, AttributeError):
        return []


def _highest(one: VirtualPackage | None, other: VirtualPackage) -> VirtualPackage:
    """conda-lock lists `__osx` twice; conda takes the higher version."""
    if one is None:
        return other
    from rattler import Version

    return one if Version(one.version) > Version(other.version) else other


def _of_machine(platform: str, environ: Mapping[str, str]) -> dict[str, VirtualPackage]:
    """This machine's virtual packages, or for another platform those that every machine of it has.

    CONDA_OVERRIDE_* replaces a version; an empty value takes the package away.
    """
    from rattler import Subdir
    from rattler.virtual_package import VirtualPackage as Detected

    found: dict[str, VirtualPackage] = {}
    if platform == str(Subdir.current()):
        for detected in Detected.detect():
            generic = detected.into_generic()
            name = generic.name.normalized
            found[name] = VirtualPackage(
                name=name, version=str(generic.version), build=str(generic.build_string)
            )
    else:
        names: Sequence[str] = _ALWAYS.get(platform.partition("-")[0], ())
        found = {name: VirtualPackage(name=name, version="0") for name in names}
    for variable, name in _OVERRIDES.items():
        value = environ.get(variable)
        if value:
            found[name] = VirtualPackage(name=name, version=value)
        elif value is not None:
            found.pop(name, None)
    return found
