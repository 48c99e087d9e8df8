"""Requests drawn at random from the sampled channels, and what is known of those records without a solver."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml
import zstandard

from envkit.errors import InputError
from envkit.matrix import Axes, Matrix, select
from envkit.model import Spec, VirtualPackage
from envkit.render import digest, render

PLATFORMS = ("linux-64", "linux-aarch64", "osx-arm64")
CHANNELS = ("conda-forge", "pytorch", "nvidia")
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
GUARDS = ("pytorch", "pytorch-gpu", "pytorch-cuda", "cuda-version", "cpuonly")
COMMON = """
numpy scipy pandas pillow matplotlib-base scikit-learn opencv imageio tqdm pyyaml requests h5py pyarrow jax
numba jupyterlab ipykernel transformers lightning tensorboard torchvision torchaudio torchmetrics pytest ruff
"""


class Sample:
    """The sampled channels, unpacked, without the records that lost build strings and `constrains` on their
    way (conda-lock's): with those a solve succeeds that the channel itself would refuse. A subdir that the
    sample lacks is empty.
    """

    def __init__(self, shared: Path, unpacked: Path) -> None:
        self._shared, self._unpacked = shared, unpacked

    def repodata(self, channel: str, subdir: str) -> Path:
        path = self._unpacked / channel / subdir / "repodata.json"
        if not path.exists():
            packed = self._shared / channel / subdir / "repodata.json.zst"
            document = json.loads(_read(packed)) if packed.exists() else {"info": {"subdir": subdir}}
            for kind in ("packages", "packages.conda"):
                document[kind] = {
                    file: record
                    for file, record in document.get(kind, {}).items()
                    if f"{channel}\t{subdir}\t{file}" not in self._weak
                }
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(document), encoding="utf-8")
        return path

    @cached_property
    def _weak(self) -> frozenset[str]:
        return frozenset(_read(self._shared / "condalock-sourced.tsv.zst").decode().splitlines())

    @cache  # noqa: B019, one sample a session
    def records(self, channel: str, subdir: str) -> Mapping[str, list[dict[str, Any]]]:
        """The records of a subdir by name, as JSON has them."""
        document = json.loads(self.repodata(channel, subdir).read_text(encoding="utf-8"))
        found: dict[str, list[dict[str, Any]]] = {}
        for kind in ("packages", "packages.conda"):
            for record in document.get(kind, {}).values():
                found.setdefault(record["name"], []).append(record)
        return found

    def of(self, name: str, channels: Iterable[str], platform: str) -> list[dict[str, Any]]:
        """Every record of a name that a solve for a platform may take from any of the channels."""
        return [
            record
            for channel in channels
            for subdir in (platform, "noarch")
            for record in self.records(channel, subdir).get(name, ())
        ]

    def solvable(
        self,
        channels: Sequence[str],
        platform: str,
        specs: Sequence[str],
        virtual: Sequence[VirtualPackage],
    ) -> bool:
        """Whether rattler finds any solution, asked directly."""
        from rattler import (
            ChannelPriority,
            GenericVirtualPackage,
            PackageName,
            Version,
            solve_with_sparse_repodata,
        )
        from rattler.exceptions import SolverError
        from rattler.package import BuildString

        machine = [
            GenericVirtualPackage(PackageName(one.name), Version(one.version), BuildString(one.build))
            for one in virtual
        ]

        async def run() -> object:
            return await solve_with_sparse_repodata(
                [_parsed(spec) for spec in specs],
                self._sources(tuple(channels), platform),
                virtual_packages=machine,
                channel_priority=ChannelPriority.Strict,
            )

        try:
            asyncio.run(run())
        except SolverError:
            return False
        return True

    @cache  # noqa: B019
    def _sources(self, channels: tuple[str, ...], platform: str) -> list[Any]:
        from rattler import Channel, SparseRepoData

        return [
            SparseRepoData(Channel(name), subdir, str(self.repodata(name, subdir)))
            for name in channels
            for subdir in (platform, "noarch")
        ]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(
            sorted(
                {name for subdir in (*PLATFORMS, "noarch") for name in self.records("conda-forge", subdir)}
            )
        )

    @cache  # noqa: B019
    def versions(self, name: str) -> tuple[str, ...]:
        found = (self.of(name, CHANNELS, platform) for platform in PLATFORMS)
        return tuple(sorted({record["version"] for records in found for record in records}))


def _read(path: Path) -> bytes:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        return stream.readall()


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """A request: the Spec, and the dependency lines that may be taken out of it again.

    `guards` are those that demand the accelerator, if it has any.
    """

    spec: Spec
    lines: tuple[str, ...]
    guards: frozenset[str] = frozenset()

    @property
    def accelerator(self) -> str | None:
        """The accelerator that a lock must be for; None without PyTorch, or once a guard was taken out."""
        guarded = bool(self.guards) and self.guards.issubset(self.lines)
        return self.spec.variant.accelerator if guarded else None

    def without(self, lines: Iterable[str]) -> Drawn:
        """The same request without some of its lines."""
        gone = set(lines)
        return self.only(line for line in self.lines if line not in gone)

    def only(self, lines: Iterable[str]) -> Drawn:
        kept = tuple(lines)
        return replace(self, spec=_respelt(self.spec, self.spec.variant.platforms, kept), lines=kept)

    def on(self, platform: str) -> Drawn:
        """The same request for one of its platforms."""
        return replace(self, spec=_respelt(self.spec, (platform,), self.lines))

    def named_in(self, text: str) -> tuple[str, ...]:
        """The lines whose package a text names as a word of its own."""
        words = set(_words(text))
        return tuple(line for line in self.lines if line_name(line) in words)


def draw(sample: Sample, matrix: Matrix, seed: int) -> Drawn:
    """A request that is always the same for one seed.

    A third is for CUDA and a third for the CPU, with PyTorch as the matrix renders it; the others have no
    PyTorch. To each come up to four packages, half of them common ones; half of them with a version, a tenth
    of these a version that does not exist.
    """
    rng = random.Random(seed)
    kind = ("cuda", "cpu", "plain")[seed % 3]
    further = tuple(
        dict.fromkeys(_line(sample, rng) for _each in range(rng.randint(0 if kind != "plain" else 1, 4)))
    )
    if kind == "plain":
        platforms = tuple(sorted(rng.sample(PLATFORMS, rng.choice((1, 1, 1, 2, 3)))))
        python = f"python={rng.choice(PYTHONS)}"
        base = render(matrix, select(matrix, Axes(cuda="cpu", source="conda-forge")))
        base = replace(base, variant=replace(base.variant, torch="*"))
        lines: tuple[str, ...] = (python, *further)
        guards = frozenset[str]()
    else:
        base = _torch(matrix, rng, kind)
        platforms = ("linux-64",)
        if kind == "cpu" and base.variant.source == "conda-forge":
            platforms = tuple(sorted(rng.sample(PLATFORMS, rng.choice((1, 1, 2, 3)))))
        own = _lines(base.text)
        lines = (*own, *further)
        guards = frozenset(line for line in own if line_name(line) in GUARDS)
    return Drawn(spec=_respelt(base, platforms, lines), lines=lines, guards=guards)


def _torch(matrix: Matrix, rng: random.Random, kind: str) -> Spec:
    """A variant that exists as far as the matrix knows: another is refused before anything is solved."""
    while True:
        source = rng.choice(("pytorch", "conda-forge"))
        builds = matrix.sources[source].builds  # type: ignore[index]
        cuda = rng.choice([one for one in builds if (one == "cpu") == (kind == "cpu")])
        torch = rng.choice((None, *(f"2.{minor}" for minor in range(13)), "1.13"))
        python = rng.choice(PYTHONS)
        try:
            return render(matrix, select(matrix, Axes(python=python, cuda=cuda, torch=torch, source=source)))
        except InputError:
            continue


def _line(sample: Sample, rng: random.Random) -> str:
    name = rng.choice(COMMON.split()) if rng.random() < 0.5 else rng.choice(sample.names)
    if rng.random() < 0.03:
        return f"{name}-of-nobody"
    versions = sample.versions(name)
    if rng.random() < 0.5 or not versions:
        return name
    if rng.random() < 0.1:
        return f"{name}=997.3"
    version = rng.choice(versions)
    return rng.choice(
        (f"{name}={version}", f"{name} >={version}", f"{name} <{version}", f"{name}=={version}")
    )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in yaml.safe_load(text)["dependencies"] if isinstance(line, str))


def _respelt(spec: Spec, platforms: Sequence[str], lines: Sequence[str]) -> Spec:
    channels = "".join(f"  - {channel}\n" for channel in spec.channels)
    wanted = "".join(f"  - {json.dumps(line)}\n" for line in lines)
    listed = "".join(f"  - {platform}\n" for platform in platforms)
    text = f"name: drawn\nchannels:\n{channels}  - nodefaults\nplatforms:\n{listed}dependencies:\n{wanted}"
    virtual = {platform: spec.virtual_packages[platform] for platform in platforms}
    return replace(
        spec,
        text=text,
        variant=replace(spec.variant, name="drawn", platforms=tuple(platforms)),
        virtual_packages=virtual,
        digest=digest(text, spec.channels, virtual),
    )


def line_name(line: str) -> str:
    """The package that a dependency line is about."""
    return next(iter(_words(line)), "")


def match_spec(line: str) -> str:
    """A dependency line as a match spec, as conda-lock reads it: `=1.2` is `1.2.*`."""
    name, equals, rest = line.partition("=")
    if " " in line.strip() or not equals:
        return line
    version, _equals, build = rest.removeprefix("=").partition("=")
    fuzzy = version if rest.startswith("=") or version.endswith("*") else f"{version}.*"
    return f"{name} {'==' if rest.startswith('=') else ''}{fuzzy} {build}".strip()


def _words(text: str) -> Iterator[str]:
    for word in re.findall(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", text):
        yield word.rstrip(".-").lower()


# --- a second opinion ------------------------------------------------------------------------------------


def impossible(
    sample: Sample,
    channels: Sequence[str],
    platform: str,
    specs: Sequence[str],
    virtual: Sequence[VirtualPackage],
) -> bool:
    """Whether no set of records can hold all of `specs`, found without any solver.

    Takes out records that need something of which no record is left, until nothing changes; a spec with no
    record left is the proof. What is not found so may still be impossible.
    """
    left: dict[str, list[dict[str, Any]]] = {}
    versions = {package.name: package for package in virtual}
    waiting = [_name(spec) for spec in specs]
    while waiting:
        name = waiting.pop()
        if name in left or name.startswith("__"):
            continue
        left[name] = [
            record
            for record in sample.of(name, channels, platform)
            if all(_meets(spec, record) for spec in specs if _name(spec) == name)
        ]
        waiting += [_name(need) for record in left[name] for need in record["depends"]]

    def possible(need: str) -> bool:
        name = _name(need)
        if name.startswith("__"):
            own = versions.get(name)
            return own is not None and _meets(
                need, {"name": name, "version": own.version, "build": own.build}
            )
        return any(_meets(need, record) for record in left[name])

    changed = True
    while changed:
        changed = False
        for name, records in left.items():
            kept = [record for record in records if all(possible(need) for need in record["depends"])]
            if len(kept) < len(records):
                left[name], changed = kept, True
    return any(not left.get(_name(spec)) for spec in specs)


@cache
def _parsed(spec: str) -> Any:
    from rattler import MatchSpec

    return MatchSpec(spec, strict=False)


@cache
def _name(spec: str) -> str:
    return str(_parsed(spec).name.normalized)


def _meets(spec: str, record: Mapping[str, Any]) -> bool:
    return _met(spec, record["name"], record["version"], record["build"], record.get("build_number", 0))


@cache
def _met(spec: str, name: str, version: str, build: str, number: int) -> bool:
    from rattler import PackageRecord
    from rattler.package import BuildString

    return bool(_parsed(spec).matches(PackageRecord(name, version, BuildString(build), number, "noarch")))
