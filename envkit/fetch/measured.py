"""What was measured on this network, for a day; and the order of mirrors that follows from it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error
from envkit.fetch.access import Access, without_password
from envkit.fetch.measure import SECONDS, Measurement, Target, measure
from envkit.files import parse_json, write_atomically
from envkit.messages import _
from envkit.progress import SILENT, Observer

if TYPE_CHECKING:
    from envkit.fetch.session import Session

__all__ = ["LASTS", "Memory", "Ranking", "network"]

LASTS = 86400.0
"""Seconds for which a measurement counts."""

_SCHEMA = 1
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def network(
    access: Access | None = None, *, root: Path = Path("/"), environ: Mapping[str, str] = os.environ
) -> str:
    """A name for the network that this machine is in: the default route's gateway and interface, and the
    proxies. It cannot be read backwards, and is the same for the same place."""
    facts = sorted(_gateways(root))
    facts += [f"{name}={environ.get(name) or environ.get(name.upper()) or ''}" for name in _PROXIES]
    facts += [f"{key}={value}" for key, value in sorted((access or Access()).proxies.items())]
    return hashlib.sha256(without_password("\n".join(facts)).encode()).hexdigest()[:16]


def _gateways(root: Path) -> list[str]:
    """`interface gateway hardware-address` of each default route, from Linux' tables in /proc/net."""
    hardware = {fields[0]: fields[3] for fields in _rows(root / "proc/net/arp", 6)}
    found = []
    for fields in _rows(root / "proc/net/route", 8):
        if fields[1] == fields[7] == "00000000":
            address = socket.inet_ntoa(struct.pack("<L", int(fields[2], 16)))
            found.append(f"{fields[0]} {address} {hardware.get(address, '')}")
    for fields in _rows(root / "proc/net/ipv6_route", 10):
        if fields[0] == "0" * 32 and fields[1] == "00" and fields[4] != "0" * 32:
            found.append(f"{fields[9]} {fields[4]}")
    return found


def _rows(path: Path, least: int) -> list[list[str]]:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []
    rows = (line.split() for line in lines)
    return [row for row in rows if len(row) >= least and row[0] not in ("Iface", "IP")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """The file in which measurements of this and other networks are kept, each for a day."""

    path: Path
    network: str

    def read(self) -> tuple[Measurement, ...]:
        """What was measured here within a day; nothing where it is older, damaged or absent."""
        return self._networks().get(self.network, ())

    def write(self, measurements: Sequence[Measurement]) -> None:
        """Keep measurements, beside those of other mirrors and networks. Raises Error where it cannot."""
        networks = self._networks()
        known = {one.id: one for one in (*networks.get(self.network, ()), *measurements)}
        networks[self.network] = tuple(known[name] for name in sorted(known))
        document = {
            "schema": _SCHEMA,
            "networks": {name: [asdict(one) for one in networks[name]] for name in sorted(networks)},
        }
        write_atomically(self.path, json.dumps(document, indent=1, sort_keys=True) + "\n")

    def _networks(self) -> dict[str, tuple[Measurement, ...]]:
        oldest = time.time() - LASTS
        found = {}
        try:
            document = parse_json(self.path.read_bytes())
            for name, rows in document["networks"].items() if document["schema"] == _SCHEMA else ():
                kept = tuple(one for one in (Measurement(**row) for row in rows) if one.at > oldest)
                if kept:
                    found[name] = kept
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}
        return found


@dataclass(slots=True, eq=False)
class Ranking:
    """The order of some mirrors by their speed here: remembered, or measured when it is first needed.

    `ids` maps every host of those mirrors to the id of its target. Several threads may ask at once.
    """

    wanted: Sequence[Target]
    ids: Mapping[str, str]
    memory: Memory | None = None
    seconds: float = SECONDS
    _costs: Mapping[str, float] | None = None
    _read: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def arrange(
        self, hosts: Sequence[str], session: Session | None = None, observer: Observer = SILENT
    ) -> tuple[int, ...]:
        """The order in which to ask `hosts`, as positions in it.

        The mirrors of this ranking change places among themselves, all others stay where they are: the
        user's own places before them. With a `session`, and where two of them or more could serve the
        first request, they are measured unless they have been; that takes `seconds` at most. Where nobody
        answered, or nothing is known, the order stays.
        """
        places = [place for place, host in enumerate(hosts) if host in self.ids]
        order = list(range(len(hosts)))
        if len({self.ids[hosts[place]] for place in places}) < 2:
            return tuple(order)
        costs = self._known(session if places[0] == 0 else None, observer)
        ranked = sorted(places, key=lambda place: costs.get(self.ids[hosts[place]], 0.0))
        for place, better in zip(places, ranked, strict=True):
            order[place] = better
        return tuple(order)

    def _known(self, session: Session | None, observer: Observer) -> Mapping[str, float]:
        with self._lock:
            if self._costs is None and self.memory is not None and not self._read:
                self._read = True
                found = {one.id: one.cost for one in self.memory.read()}
                if all(target.id in found for target in self.wanted):
                    self._costs = found
            if self._costs is None and session is not None:
                self._costs = self._measured(session, observer)
            return self._costs or {}

    def _measured(self, session: Session, observer: Observer) -> Mapping[str, float]:
        found = measure(self.wanted, session, seconds=self.seconds)
        if not any(one.answered for one in found):
            return {}  # an unplugged cable says nothing about mirrors
        observer.note(
            _("measured from here: {mirrors}").format(
                mirrors=", ".join(told(one) for one in sorted(found, key=lambda one: one.cost))
            )
        )
        if self.memory is not None:
            with suppress(Error):  # a full disk, or a home that may not be written to
                self.memory.write(found)
        return {one.id: one.cost for one in found}


def told(one: Measurement) -> str:
    """A measurement in a few words."""
    if one.latency is None or not one.answered:
        return _("{host} does not answer").format(host=one.host)
    if one.speed is None:
        return _("{host} {latency:.0f} ms").format(host=one.host, latency=one.latency * 1000)
    return _("{host} {speed:.1f} MB/s").format(host=one.host, speed=one.speed / 1e6)
