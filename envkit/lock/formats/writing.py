"""A lock in the words of other tools: one function a format, all in one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from envkit.channels import canonical_url, canonicalise_url, channel_name, is_pypi_file, locate, pypi_simple
from envkit.errors import InputError
from envkit.lock.formats.archives import build_number, read_archive_url
from envkit.messages import _
from envkit.model import Lock, Package

__all__ = ["WRITERS", "HashKind", "Writer", "write"]

HashKind = Literal["sha256", "md5"]

_PIXI_VERSION = 6
"""The newest version that every pixi since 0.39 (December 2024) reads; rattler reads it as well."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    """One format: `file_name` is what such a file is called, `one_platform` whether it holds only one."""

    make: Callable[[Lock, str, HashKind], str]
    file_name: str
    one_platform: bool = True


def write(lock: Lock, kind: str, platform: str | None = None, *, hashes: HashKind = "sha256") -> str:
    """The text of a lock in another format: a key of WRITERS.

    `platform` may be left out for a lock of one platform, and for a format that holds them all. Raises
    InputError where the lock lacks it, or lacks what the format needs.
    """
    writer = WRITERS[kind]
    if platform is not None and platform not in lock.platforms:
        raise InputError(
            _("{path} has no packages for {platform}").format(path=lock.path, platform=platform),
            _("choose one of {platforms}").format(platforms=", ".join(lock.platforms)),
        )
    if platform is None and writer.one_platform and len(lock.platforms) != 1:
        raise InputError(
            _("{path} is for several platforms, and {kind} holds one").format(path=lock.path, kind=kind),
            _("choose one with --platform: {platforms}").format(platforms=", ".join(lock.platforms)),
        )
    return writer.make(lock, platform or (lock.platforms[0] if writer.one_platform else ""), hashes)


def _explicit(lock: Lock, platform: str, hashes: HashKind) -> str:
    """What `conda create --file` takes: archives in the order of their dependencies, with a hash each.

    The pip packages stand in comments, as conda-lock writes them: its own `install` and micromamba's read
    those, conda passes over them.
    """
    conda, pip = _of(lock, platform)
    lines = [
        "# This file may be used to create an environment using:",
        "# $ conda create --name <env> --file <this file>",
        f"# platform: {platform}",
        "@EXPLICIT",
    ]
    for package in _in_order(conda):
        if hashes == "md5" and package.md5 is None:
            raise InputError(
                _("{name} has no md5 in the lock").format(name=package.name),
                _("export with --hash sha256"),
                path=lock.path,
            )
        digest = package.md5 if hashes == "md5" else f"sha256:{package.sha256}"
        lines.append(f"{package.url.partition('#')[0]}#{digest}")
    lines += [
        f"# pip {package.name} @ {package.url.partition('#')[0]} --hash=sha256:{package.sha256}"
        for package in pip
    ]
    return "\n".join(lines) + "\n"


def _pixi(lock: Lock, platform: str, hashes: HashKind) -> str:
    """A pixi.lock of one environment. Build numbers are read off the names; there are no categories."""
    platforms = sorted([platform] if platform else lock.platforms)
    default: dict[str, Any] = {"channels": [{"url": f"{canonical_url(name)}/"} for name in _channels(lock)]}
    everything = [package for each in platforms for package in lock.on(each)]
    indexes = _indexes([package for package in everything if package.manager == "pip"])
    if indexes is not None:
        default["indexes"] = [url for url in (pypi_simple(), *indexes) if url is not None]
    default["packages"] = {
        each: [{_PIXI_KEYS[package.manager]: package.url} for package in lock.on(each)] for each in platforms
    }
    described = {package.url: _pixi_entry(package) for package in everything}
    document = {
        "version": _PIXI_VERSION,
        "environments": {"default": default},
        "packages": [described[url] for url in sorted(described)],
    }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False, width=1 << 16, allow_unicode=True)
    return text


_PIXI_KEYS = {"conda": "conda", "pip": "pypi"}


def _pixi_entry(package: Package) -> dict[str, Any]:
    entry: dict[str, Any] = {_PIXI_KEYS[package.manager]: package.url}
    if package.manager == "pip":
        return entry | {"name": package.name, "version": package.version, "sha256": package.sha256}
    # Where it is left out, pixi takes the digits at the end of the build string: 118 for py311_cu118.
    entry["build_number"] = build_number(package.build)
    entry["sha256"] = package.sha256
    if package.md5:
        entry["md5"] = package.md5
    if package.depends:
        entry["depends"] = [f"{name} {wanted}".strip() for name, wanted in sorted(package.depends.items())]
    return entry


def _environment(lock: Lock, platform: str, hashes: HashKind) -> str:
    """An environment.yml for `conda env create`: every package by version and build."""
    conda, pip = _of(lock, platform)
    lines = [
        f"# Every package of the lock for {platform}, by version and build. conda verifies none of them by a",
        "# hash of the lock: where that matters, use the lock itself or the explicit file.",
        f"name: {re.sub(r'[^A-Za-z0-9_.-]+', '-', lock.path.absolute().parent.name) or 'environment'}",
        "channels:",
        *(f"  - {name}" for name in _channels(lock)),
        "  - nodefaults",
        "dependencies:",
        *(f"  - {package.name}={package.version}={_build(package)}" for package in conda),
    ]
    if pip:
        lines.append("  - pip:")
        lines += [f"    - --extra-index-url {url}" for url in _indexes(pip) or ()]
        lines += [f"    - {_requirement(package)}" for package in pip]
    return "\n".join(lines) + "\n"


def _requirements(lock: Lock, platform: str, hashes: HashKind) -> str:
    """A requirements.txt of what pip installs, with hashes, for `pip install --no-deps -r`."""
    conda, pip = _of(lock, platform)
    if not pip:
        raise InputError(
            _("the lock has no pip packages for {platform}").format(platform=platform),
            _("conda's packages are not pip's: export `environment` or `explicit`"),
            path=lock.path,
        )
    lines = [
        f"# What pip installs on {platform}: `pip install --no-deps -r <this file>` takes just these files."
    ]
    if conda:
        python = next((package.version for package in conda if package.name == "python"), None)
        lines.append(
            f"# The lock has {len(conda)} conda packages beside them"
            + (f", Python {python} among them." if python else ".")
        )
    lines += [f"--extra-index-url {url}" for url in _indexes(pip) or ()]
    lines += [f"{_requirement(package)} \\\n    --hash=sha256:{package.sha256}" for package in pip]
    return "\n".join(lines) + "\n"


WRITERS: Mapping[str, Writer] = {
    "explicit": Writer(make=_explicit, file_name="explicit.txt"),
    "pixi": Writer(make=_pixi, file_name="pixi.lock", one_platform=False),
    "environment": Writer(make=_environment, file_name="environment.yml"),
    "requirements": Writer(make=_requirements, file_name="requirements.txt"),
}


def _of(lock: Lock, platform: str) -> tuple[list[Package], list[Package]]:
    here = lock.on(platform)
    return (
        [package for package in here if package.manager == "conda"],
        [package for package in here if package.manager == "pip"],
    )


def _in_order(packages: Sequence[Package]) -> Iterator[Package]:
    """Each package after those it depends on, where that does not go in a circle; else as they stand."""
    by_name = {package.name: package for package in packages}
    seen: set[str] = set()
    for first in packages:
        stack = [(first.name, False)]
        while stack:
            name, needs_met = stack.pop()
            if needs_met:
                yield by_name[name]
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                needs = [each for each in by_name[name].depends if each in by_name and each not in seen]
                stack += [(each, False) for each in reversed(needs)]


def _channels(lock: Lock) -> tuple[str, ...]:
    """The lock's channels by name, and those that its packages come from beside them."""
    names: dict[str, None] = {}
    for channel in lock.channels:
        name = canonicalise_url(channel).channel if "://" in channel else channel
        names.setdefault(name or channel)
    for package in lock.packages:
        if package.manager == "conda":
            channel = locate(package.url).channel
            names.setdefault(channel_name(canonical_url(channel)) or channel)
    return tuple(names)


def _indexes(pip: Sequence[Package]) -> tuple[str, ...] | None:
    """The indexes beside the public one that have these packages; None where there are no packages."""
    if not pip:
        return None
    found: dict[str, None] = {}
    for package in pip:
        if canonicalise_url(package.url).tree == "pytorch":
            # …/whl/cu121/torch-….whl, and …/whl/cu121/torch/torch-….whl
            folder = re.match(r"https://[^/]+/whl/(?:[a-z]+/)?(?:cu\d+|cpu|rocm[\d.]+|xpu)", package.url)
            found.setdefault(folder[0] if folder else package.url.rpartition("/")[0])
    return tuple(found)


def _requirement(package: Package) -> str:
    found = canonicalise_url(package.url)
    if is_pypi_file(found.url) or found.tree == "pytorch":
        return f"{package.name}=={package.version}"
    return f"{package.name} @ {package.url.partition('#')[0]}"


def _build(package: Package) -> str:
    """The build string, decoded where the archive's URL is encoded."""
    found = read_archive_url(package.url)
    return found.build if found is not None else package.build
