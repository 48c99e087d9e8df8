"""Hosts that stand for a machine of the reader's own network, however they are written.

A lock from outside that names one makes whoever installs it send requests into their network. What a public
name resolves to cannot be told without asking; fetch looks at that when it follows a redirect.
"""

from __future__ import annotations

import ipaddress
import socket
import unicodedata
from urllib.parse import unquote

__all__ = ["is_private_host"]

_LOCAL = ("localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa")
"""Top names that the public DNS does not have: RFC 6761, RFC 6762, RFC 8375, ICANN's reserved .internal."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_private_host(host: str) -> bool:
    """Whether a host of a URL is a loopback, link-local, private or otherwise not public address or name.

    Knows the notations that resolvers take: 2130706433, 0x7f000001, 0177.0.0.1, 127.1, full-width digits,
    percent-encoding, a trailing dot, IPv6 with an IPv4 address inside, a zone. A name without a dot is one
    of a local network.
    """
    name = unicodedata.normalize("NFKC", unquote(host)).strip("[]").rstrip(".").lower()
    address = _address(name.partition("%")[0])
    if address is not None:
        return not _inner(address).is_global
    return "." not in name or any(name == local or name.endswith(f".{local}") for local in _LOCAL)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        pass
    try:
        # The C library's rules: one to four parts, each decimal, octal or hexadecimal.
        return (
            ipaddress.IPv4Address(socket.inet_aton(name)) if name[:1].isdigit() and " " not in name else None
        )
    except (OSError, UnicodeError):
        return None


def _inner(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address that an IPv6 one leads to, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    compatible = int(address) >> 32 == 0 and int(address) > 1  # ::127.0.0.1, but not :: and ::1
    if address in _NAT64 or compatible:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo or address
