"""The table of mirrors (data/mirrors.yaml): which channel, label and subdir each one carries.

Every row of the table names its source and its date; nothing here was made up and nothing is contacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

__all__ = ["Carriage", "Mirror", "Table", "table"]


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

    `bases` says of each folder of channels on the server whether it is of the "cloud" or the "pkgs" kind.
    """

    id: str
    name: str
    host: str
    channels: Mapping[str, Carriage]
    bases: Mapping[str, str]
    zst: bool = True

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
class Table:
    """The mirrors that envkit can use, and the order in which `auto` asks them."""

    mirrors: Mapping[str, Mirror]
    auto: tuple[str, ...]
    upstream: Mirror
    evidence_needed: frozenset[str]

    def carriers(self, channel: str) -> tuple[str, ...]:
        """The ids of the mirrors known to carry `channel`, upstream left out."""
        return tuple(
            mirror.id
            for mirror in self.mirrors.values()
            if mirror is not self.upstream and mirror.url(channel)
        )

    @property
    def cloud(self) -> str:
        """The canonical URL under which named channels lie."""
        return next(base for base, kind in self.upstream.bases.items() if kind == "cloud")

    @property
    def pkgs(self) -> str:
        """The canonical URL under which `pkgs/main` and the like lie, with the "pkgs"."""
        return next(base for base, kind in self.upstream.bases.items() if kind == "pkgs")

    def canonical(self, url: str) -> str:
        """`url` with a mirror's base replaced by upstream's; unchanged where no mirror's base fits."""
        for mirror in self.mirrors.values():
            for base, kind in mirror.bases.items():
                if url.startswith(f"{base}/"):
                    return (self.pkgs if kind == "pkgs" else self.cloud) + url.removeprefix(base)
        return url


@cache
def table() -> Table:
    """The table as shipped."""
    document = yaml.load(
        files("envkit").joinpath("data/mirrors.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    routing = document["routing"]
    mirrors = {row["id"]: _mirror(row) for row in document["mirrors"] if _speaks_conda(row)}
    return Table(
        mirrors=mirrors,
        auto=tuple(routing["auto"]),
        upstream=mirrors[routing["upstream"]],
        evidence_needed=frozenset(routing["evidence_needed"]),
    )


def _speaks_conda(row: Mapping[str, Any]) -> bool:
    return str(row.get("conda", {}).get("cloud_base", "")).startswith("https://")


def _mirror(row: Mapping[str, Any]) -> Mirror:
    conda = row["conda"]
    cloud = str(conda["cloud_base"])
    bases = {cloud: "cloud"}
    if "extra_cloud_base" in conda:
        bases[str(conda["extra_cloud_base"])] = "cloud"
    channels = {name: _carriage(facts, cloud) for name, facts in conda["channels"].items()}
    if "pkgs_base" in conda:
        pkgs = str(conda["pkgs_base"])
        bases[pkgs] = "pkgs"
        said = conda.get("pkgs", {})
        for name in ("main", "r", "msys2"):
            channels[f"pkgs/{name}"] = Carriage(carried=str(said.get(name, "unknown")), base=pkgs)
    return Mirror(
        id=row["id"],
        name=row["name"],
        host=row["host"],
        channels=channels,
        bases=bases,
        zst=not str(conda.get("metadata", {}).get("repodata.json.zst", "")).startswith("no"),
    )


def _carriage(facts: Mapping[str, Any], base: str) -> Carriage:
    subdirs = facts.get("subdirs")
    return Carriage(
        carried=str(facts["carried"]),
        base=str(facts.get("base", base)),
        subdirs=frozenset(subdirs) if subdirs is not None else None,
        labels=facts.get("labels", "no") != "no",
    )
