"""Which hosts may be asked at all: what stands in a lock or a redirect is a stranger's word (decision 11)."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import SplitResult, urlsplit

from envkit.channels import hostname, pypi_files, table
from envkit.messages import _

__all__ = ["Trust", "Untrusted", "is_upstream"]

_PORTS = {"https": 443, "http": 80}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_FAKE = ipaddress.ip_network("198.18.0.0/15")
"""Proxies that work as a network device (Clash, sing-box: "fake-ip") answer every name with one of these.
They were set aside for measuring (RFC 2544), so that nobody's own servers live there."""


class Untrusted(Exception):
    """A host may not be asked; the text says why."""


def addresses(host: str) -> tuple[str, ...]:
    """The addresses that a host name stands for. Raises OSError where it cannot be resolved."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, kw_only=True, slots=True)
class Trust:
    """Whom one run may ask.

    `hosts` are those that the user chose (a mirror's URL, `--allow-host`, a place of the user's own
    .condarc), each as a host, `host:port` or URL; without a port all ports are meant. They alone may be
    asked over plain http, and they alone may be in a private network. Beside them there are the hosts of
    the table of mirrors, upstream included, over https. `resolve` gives the addresses of a name.
    """

    hosts: frozenset[str] = frozenset()
    resolve: Callable[[str], Sequence[str]] = field(default=addresses, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", frozenset(_spelling(host) for host in self.hosts))

    def also(self, hosts: Iterable[str]) -> Trust:
        """The same, with more hosts that the user chose."""
        return Trust(hosts=self.hosts | frozenset(hosts), resolve=self.resolve)

    def refusal(self, url: str, *, origin: str | None = None) -> str | None:
        """Why `url` may not be asked, before any connection; None where it may be.

        With an `origin`, whose host answered by a redirect to `url`, a host that nobody knows is allowed
        too: over https, and at a public address. What a name stands for is judged by `judged`.
        """
        parts = _split(url)
        if parts is None or parts.scheme not in _PORTS or not parts.hostname:
            return _("that is no web address")
        host = parts.hostname.rstrip(".")
        if origin is not None and origin.startswith("https://") and parts.scheme != "https":
            return _("that would be plain http, at {host}").format(host=host)
        if self._chosen(host, parts.port or _PORTS[parts.scheme]):
            return None
        if parts.scheme != "https":
            return _("that would be plain http, at {host}").format(host=host)
        if (literal := _literal(host)) is not None and not _public(literal, named=False):
            return _("{host} is an address in a private network").format(host=host)
        if origin is None and host not in _known():
            return _("{host} is not a host that envkit knows").format(host=host)
        return None

    def judged(self, host: str, port: int) -> tuple[str, ...]:
        """The addresses of `host` to which a connection may be made, and to no other.

        Raises Untrusted where there is none, OSError where the name cannot be resolved.
        """
        found = tuple(self.resolve(host))
        if self._chosen(host.rstrip("."), port):
            return found
        named = _literal(host) is None
        public = tuple(address for address in found if _public(_parsed(address), named=named))
        if found and not public:
            raise Untrusted(
                _("{host} is in a private network ({address})").format(host=host, address=found[0])
            )
        return public

    def _chosen(self, host: str, port: int) -> bool:
        return host.lower() in self.hosts or f"{host.lower()}:{port}" in self.hosts


@cache
def _known() -> frozenset[str]:
    """The hosts of the table of mirrors, and the one where the Python index keeps its files."""
    known = {base.place.partition("/")[0].lower() for base in table().bases}
    if (files := pypi_files()) is not None:
        known.add(urlsplit(files).hostname or "")
    return frozenset(known)


def is_upstream(url: str) -> bool:
    """Whether the host of `url` is where channels and packages come from, and no mirror."""
    return (hostname(url) or "") in _upstream()


@cache
def _upstream() -> frozenset[str]:
    facts = table()
    bases = (facts.cloud, facts.pkgs, facts.pytorch, pypi_files() or "")
    return frozenset(name for base in bases if (name := hostname(base)))


def _spelling(word: str) -> str:
    """What a user wrote for a host: a host, host:port or a URL, as `host` or `host:port`."""
    parts = _split(word if "://" in word else f"//{word}")
    if parts is None or not parts.hostname:
        return word.strip("[]").lower()  # an IPv6 address without its brackets
    host = parts.hostname.rstrip(".")
    return f"{host}:{parts.port}" if parts.port else host


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port else None
    except ValueError:
        return None


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(address.partition("%")[0])


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is written as, in any way that resolvers read; None for a name."""
    try:
        return _parsed(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _public(address: ipaddress.IPv4Address | ipaddress.IPv6Address, *, named: bool) -> bool:
    """Whether an address is on the open internet; one that was looked up by name may be a proxy's."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _public(inner, named=named)
    elif named and address in _FAKE:
        return True
    return address.is_global and not address.is_multicast
