"""The table of mirrors (data/mirrors.yaml): which channel, label and subdir each one carries, and where.

Every row of the table names its source and its date; nothing here was made up and nothing is contacted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from envkit.channels.pypi import pypi_files, pypi_simple

__all__ = ["Base", "Carriage", "Mirror", "Table", "Tree", "table"]

Tree = Literal["cloud", "pkgs", "files", "simple", "pytorch"]
"""What lies below a base: named channels, Anaconda's own channels, the Python index's files or its simple
API, PyTorch's wheel index."""

_DATE = re.compile(r"\b20\d\d-[01]\d(?:-[0-3]\d)?\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class Carriage:
    """What the table knows of one channel on one mirror.

    `carried` is "yes", "cache" (fetched when asked for), "redirect" (another mirror answers), "no" or
    "unknown". `base` stands where the channel lies beside the mirror's other channels; `subdirs` is None
    where the table has no list.
    """

    carried: str
    base: str
    subdirs: frozenset[str] | None = None
    labels: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Mirror:
    """One row: a server that speaks conda's layout. `channels` has "pkgs/main" and the like as well.

    `files` and `wheels` are where it has copies of the Python index's files and of PyTorch's wheel index
    (`wheels_carried`: "no" and "unknown" are two things); `flat` says that the latter is one list of files,
    for pip's --find-links; `simple` is its simple API.
    `redirects` is the id of the mirror that answers for what this one lacks: the two are not independent.
    `date` is that of the newest evidence for the row, as far as it is known ("2026-05-08").
    """

    id: str
    name: str
    host: str
    channels: Mapping[str, Carriage]
    zst: bool = True
    files: str | None = None
    wheels: str | None = None
    wheels_carried: str = "unknown"
    flat: bool = False
    simple: str | None = None
    redirects: str | None = None
    date: str | None = None

    def url(self, channel: str, subdir: str | None = None, *, sure: bool = True) -> str | None:
        """Where this mirror has `channel` (and its `subdir`), or None where it does not carry it.

        A channel of which the table says "unknown" counts only where `sure` is False. Labels
        ("nvidia/label/cuda-12.1.1") are carried only where the table says so: most sites sync the main
        label alone (tuna/issues#690, 2020-01-03).
        """
        name, _slash, label = channel.partition("/label/")
        found = self.channels.get(name)
        if found is None or found.carried == "no" or (sure and found.carried == "unknown"):
            return None
        if label and not found.labels:
            return None
        if subdir is not None and found.subdirs is not None and subdir not in found.subdirs:
            return None
        return f"{found.base}/{channel.removeprefix('pkgs/')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """A folder on a server, `host/path`, what it holds, and the id of the row of the table it belongs to.

    `only` names the channels below it that are copies of upstream's, None where all are.
    """

    place: str
    tree: Tree
    only: frozenset[str] | None = None
    row: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """The mirrors that envkit can use, and the order in which `auto` asks them.

    `bases` are all folders that the table knows, those that are only read and never asked included; the
    longest comes first. `cloud`, `pkgs` and `pytorch` are the canonical bases of named channels, of
    Anaconda's own and of PyTorch's wheel index.
    """

    mirrors: Mapping[str, Mirror]
    auto: tuple[str, ...]
    upstream: Mirror
    as_of: str
    evidence_needed: frozenset[str]
    bases: tuple[Base, ...]
    cloud: str
    pkgs: str
    pytorch: str

    def carriers(self, channel: str) -> tuple[str, ...]:
        """The ids of the mirrors known to carry `channel`, upstream left out."""
        return tuple(
            mirror.id
            for mirror in self.mirrors.values()
            if mirror is not self.upstream and mirror.url(channel)
        )

    def base_of(self, url: str) -> Base | None:
        """The folder of the table that `url` (https or http, with the usual port) is or lies in."""
        place = _place(url)
        return next(
            (base for base in self.bases if place == base.place or place.startswith(f"{base.place}/")), None
        )

    def at_host(self, host: str) -> frozenset[Base]:
        """All folders of the table on one host."""
        return frozenset(base for base in self.bases if base.place.partition("/")[0] == host)

    def canonical(self, tree: Tree) -> str | None:
        """The canonical base of a tree; None for the Python index where pip is not here to name it."""
        if tree == "files":
            return pypi_files()
        if tree == "simple":
            return pypi_simple()
        return {"cloud": self.cloud, "pkgs": self.pkgs, "pytorch": self.pytorch}[tree]


@cache
def table() -> Table:
    """The table as shipped."""
    document = yaml.load(
        files("envkit").joinpath("data/mirrors.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    routing, canonical = document["routing"], document["canonical"]
    redirects = routing["redirects"]
    mirrors = {
        row["id"]: _mirror(row, redirects.get(row["id"])) for row in document["mirrors"] if _speaks_conda(row)
    }
    return Table(
        mirrors=mirrors,
        auto=tuple(routing["auto"]),
        upstream=mirrors[routing["upstream"]],
        as_of=str(document["as_of"]),
        evidence_needed=frozenset(routing["evidence_needed"]),
        bases=tuple(sorted(_all_bases(document), key=lambda base: (-len(base.place), base.place))),
        cloud=str(canonical["conda_cloud"]),
        pkgs=str(canonical["conda_pkgs"]),
        pytorch=str(canonical["pytorch_wheels"]),
    )


def _speaks_conda(row: Mapping[str, Any]) -> bool:
    return str(row.get("conda", {}).get("cloud_base", "")).startswith("https://")


def _mirror(row: Mapping[str, Any], redirects: str | None) -> Mirror:
    conda = row["conda"]
    cloud = str(conda["cloud_base"])
    channels = {name: _carriage(facts, cloud) for name, facts in conda["channels"].items()}
    if "pkgs_base" in conda:
        pkgs = str(conda["pkgs_base"])
        said = conda.get("pkgs", {})
        for name in ("main", "r", "msys2"):
            channels[f"pkgs/{name}"] = Carriage(carried=str(said.get(name, "unknown")), base=pkgs)
    return Mirror(
        id=row["id"],
        name=row["name"],
        host=row["host"],
        channels=channels,
        zst=not str(conda.get("metadata", {}).get("repodata.json.zst", "")).startswith("no"),
        files=row.get("pypi", {}).get("files"),
        wheels=_wheels(row.get("pytorch_wheels", {})),
        wheels_carried=str(row.get("pytorch_wheels", {}).get("carried", "unknown")),
        flat="index" not in row.get("pytorch_wheels", {}),
        simple=row.get("pypi", {}).get("simple"),
        redirects=redirects,
        date=_newest_date(row),
    )


def _wheels(facts: Mapping[str, Any]) -> str | None:
    """The folder that stands for PyTorch's own `whl`: an index or a flat listing of files, by accelerator."""
    if facts.get("carried") != "yes":
        return None
    return str(facts.get("index") or facts["find_links"]).removesuffix("/{cu}")


def _newest_date(facts: object) -> str | None:
    """The newest date (or month) anywhere in the evidence of a row."""
    return max(_DATE.findall(str(facts)), default=None)


def _carriage(facts: Mapping[str, Any], base: str) -> Carriage:
    subdirs = facts.get("subdirs")
    return Carriage(
        carried=str(facts["carried"]),
        base=str(facts.get("base", base)),
        subdirs=frozenset(subdirs) if subdirs is not None else None,
        labels=facts.get("labels", "no") != "no",
    )


def _all_bases(document: Mapping[str, Any]) -> Iterator[Base]:
    own: tuple[tuple[str | None, Tree], ...] = ((pypi_files(), "files"), (pypi_simple(), "simple"))
    for url, tree in own:
        if url is not None:
            yield Base(place=_place(url), tree=tree, row=document["routing"]["upstream"])
    for row in document["mirrors"]:
        spellings = document["spellings"].get(row["id"], {})
        # Upstream's other names serve other trees (`_bases_of`), a mirror's serve all that it has.
        aliases = () if row.get("kind") == "upstream" else row.get("aliases", ())
        hosts = (row["host"], *aliases, *spellings.get("hosts", ()))
        only = None
        if spellings.get("own_channels"):
            channels = row["conda"]["channels"]
            only = frozenset(name for name, facts in channels.items() if facts["carried"] != "no")
        for url, kind in _bases_of(row, spellings):
            host, slash, folder = _place(url).partition("/")
            limited = only if kind in ("cloud", "pkgs") else None
            yield Base(place=f"{host}{slash}{folder}", tree=kind, only=limited, row=row["id"])
            if host == row["host"]:
                for other in hosts[1:]:
                    yield Base(place=f"{other}{slash}{folder}", tree=kind, only=limited, row=row["id"])


def _bases_of(row: Mapping[str, Any], spellings: Mapping[str, Any]) -> Iterator[tuple[str, Tree]]:
    conda, pypi, wheels = (row.get(key, {}) for key in ("conda", "pypi", "pytorch_wheels"))
    for key, tree in _CONDA_KEYS.items():
        if key in conda:
            yield conda[key], tree
    for url in spellings.get("conda", ()):
        yield url, "cloud"
    if row.get("kind") == "upstream" and "pkgs_base" in conda:
        for host in row.get("aliases", ()):
            yield f"https://{host}/pkgs", "pkgs"
    stored = [*([pypi["files"]] if "files" in pypi else ()), *spellings.get("files", ())]
    for url in stored:
        yield url, "files"
    for url in (
        *(pypi[key] for key in ("simple", "alt_simple") if key in pypi),
        *spellings.get("simple", ()),
    ):
        # The table calls one folder of files (sjtug's) an index, because pip can list it.
        if url not in stored:
            yield from _index(url)
    for key in ("index", "find_links"):
        if str(wheels.get(key, "")).endswith("/{cu}"):
            yield wheels[key].removesuffix("/{cu}"), "pytorch"
    if "files_host" in wheels:
        yield f"https://{wheels['files_host']}/whl", "pytorch"


_CONDA_KEYS: Mapping[str, Tree] = {"cloud_base": "cloud", "extra_cloud_base": "cloud", "pkgs_base": "pkgs"}


def _index(simple: str) -> Iterator[tuple[str, Tree]]:
    """A simple API, and the folder beside it in which its pages' relative links end (`../../packages/`)."""
    yield simple, "simple"
    if simple.endswith("/simple"):
        yield simple.removesuffix("simple") + "packages", "files"


def _place(url: str) -> str:
    return url.partition("://")[2].rstrip("/")
