"""The wheels that pip chose, and what pip's report says of them.

The report's format is https://pip.pypa.io/en/stable/reference/installation-report/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envkit.channels import shown
from envkit.errors import Error
from envkit.files import sha256_of
from envkit.messages import _
from envkit.model import CPU
from envkit.wheels.constraints import conda_name, match_spec, parse_requirement

__all__ = ["Wheel", "WheelPlan", "read_report"]

_GPU_RUNTIME = re.compile(r"nvidia-(?!ml-py)|cuda-")
_CUDA_VERSIONED = re.compile(r"nvidia-cuda-runtime(?:-cu\d+)?|cuda-toolkit")
"""Wheels whose version is CUDA's own; one of them is among what every CUDA build of torch requires."""

_MAJOR_MINOR = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """One wheel that pip chose. `size` is in bytes, None where nobody says; `direct`: its URL was asked for.

    `sha256` is empty where the index gives none: it is known once the file is here (`hashes.py`).
    `metadata` is the wheel's own, in the keys of PEP 566's JSON form.
    """

    name: str
    version: str
    url: str
    sha256: str
    size: int | None = None
    direct: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its name in normal form: lower case, words joined by single dashes."""
        return canonicalize_name(self.name)

    @property
    def file_name(self) -> str:
        return unquote(urlsplit(self.url).path.rsplit("/", 1)[-1])

    @property
    def path(self) -> Path | None:
        """Where it lies, for a wheel on this machine's disk."""
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    @property
    def requires(self) -> tuple[Requirement, ...]:
        """Its Requires-Dist lines; such as no longer parse are left out."""
        lines = self.metadata.get("requires_dist") or ()
        return tuple(found for line in lines if (found := parse_requirement(line)))


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelPlan:
    """Everything that will be in the channel, and what was asked for.

    `python` is the interpreter's minor version, `platform` a conda subdir, `accelerator` what torch was
    found to be: "cpu", "cu118", "cuda" where the version is unknown. `environment` holds the marker
    values of the target, `options` what pip was told beyond the user's configuration.
    """

    python: str
    platform: str
    requirements: tuple[str, ...]
    items: tuple[Wheel, ...]
    accelerator: str = CPU
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    @property
    def download_size(self) -> int:
        """The bytes to download, as far as they are known."""
        return sum(item.size or 0 for item in self.items if item.path is None)

    def depends(self, wheel: Wheel) -> tuple[str, ...]:
        """The conda match specs of what a wheel requires on the target, sorted."""
        return self._specs(wheel.requires, extras=frozenset())

    def requested(self) -> tuple[str, ...]:
        """The conda match specs of what was asked for, sorted."""
        asked = [found for text in self.requirements if (found := parse_requirement(text))]
        return self._specs(asked, extras=frozenset())

    def find(self, distribution: str) -> Wheel | None:
        """The wheel of a distribution, under any spelling of its name."""
        name = canonicalize_name(distribution)
        return next((item for item in self.items if item.key == name), None)

    def _specs(self, requirements: Iterable[Requirement], *, extras: frozenset[str]) -> tuple[str, ...]:
        """`a[x] >=1` becomes `a >=1` and whatever the extra x of a requires: conda has no extras."""
        found: set[str] = set()
        done: set[tuple[str, str]] = set()
        pending = [(requirement, extras) for requirement in requirements]
        while pending:
            requirement, active = pending.pop()
            if not self._applies(requirement, active):
                continue
            found.add(match_spec(requirement.name, requirement.specifier))
            wheel = self.find(requirement.name)
            for extra in requirement.extras:
                key = (canonicalize_name(requirement.name), canonicalize_name(extra))
                if wheel is not None and key not in done:
                    done.add(key)
                    pending += [
                        (further, frozenset({key[1]}))
                        for further in wheel.requires
                        if not self._applies(further, frozenset())
                    ]
        return tuple(sorted(found))

    def _applies(self, requirement: Requirement, extras: frozenset[str]) -> bool:
        if requirement.marker is None:
            return True
        for extra in extras or {""}:
            try:
                if requirement.marker.evaluate({**self.environment, "extra": extra}):
                    return True
            except UndefinedEnvironmentName:
                continue
        return False


def read_report(document: Mapping[str, Any], asked: tuple[str, ...], options: tuple[str, ...]) -> WheelPlan:
    """The plan in pip's report on `asked`; Error where something in it is no wheel."""
    environment = {key: str(value) for key, value in document["environment"].items()}
    items = tuple(sorted((_read_item(item) for item in document["install"]), key=lambda item: item.name))
    _refuse_double_names(items)
    machine = environment.get("platform_machine", "x86_64")
    draft = WheelPlan(
        python=environment["python_version"],
        platform={"x86_64": "linux-64"}.get(machine, f"linux-{machine}"),
        requirements=asked,
        items=items,
        environment=environment,
        options=options,
    )
    return _labelled(draft)


def _read_item(item: Mapping[str, Any]) -> Wheel:
    download, metadata = item["download_info"], item["metadata"]
    archive = download.get("archive_info") or {}
    sha256 = (archive.get("hashes") or {}).get("sha256") or ""
    if not sha256 and str(archive.get("hash", "")).startswith("sha256="):
        sha256 = archive["hash"].removeprefix("sha256=")
    wheel = Wheel(
        name=metadata["name"],
        version=metadata["version"],
        url=download["url"],
        sha256=sha256,
        direct=bool(item.get("is_direct")),
        metadata=metadata,
    )
    if not wheel.sha256 and wheel.path is not None and wheel.path.is_file():
        wheel = replace(wheel, sha256=sha256_of(wheel.path))
    if not wheel.file_name.endswith(".whl"):
        raise Error(
            _("pip chose {url} for {name}, which is no wheel").format(url=shown(wheel.url), name=wheel.name),
            _("leave out `--no-binary` in pip's configuration: `pip config list` shows it"),
        )
    return wheel


def _refuse_double_names(items: Iterable[Wheel]) -> None:
    taken = {"python": "python", "python_abi": "python_abi"}
    for item in items:
        name = conda_name(item.name)
        if name in taken:
            raise Error(
                _("{first} and {second} would both be the conda package {name}").format(
                    first=taken[name], second=item.name, name=name
                ),
                _("leave one of them out"),
            )
        taken[name] = item.name


def _labelled(draft: WheelPlan) -> WheelPlan:
    torch = draft.find("torch")
    if torch is None:
        return draft
    local = Version(torch.version).local
    if local:
        return replace(draft, accelerator=local.split(".")[0])
    return replace(draft, accelerator=_accelerator_by_needs(draft, torch))


def _accelerator_by_needs(draft: WheelPlan, torch: Wheel) -> str:
    """What a torch without a local version is for, by the CUDA runtime that it requires."""
    needed = [spec.partition(" ") for spec in draft.depends(torch)]
    pinned = {name: version.lstrip("=<>~! ") for name, _space, version in needed}
    pinned |= {item.key: item.version for item in draft.items if item.key in pinned}
    for name, version in sorted(pinned.items()):
        if _CUDA_VERSIONED.fullmatch(name) and (found := _MAJOR_MINOR.match(version)):
            return f"cu{found[1]}{found[2]}"
    return "cuda" if any(_GPU_RUNTIME.match(name) for name in pinned) else CPU
