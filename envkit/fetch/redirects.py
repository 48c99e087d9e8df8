"""Where a redirect may lead: never from the open internet into a private network, never off TLS."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from envkit.messages import _

__all__ = ["refused_redirect"]


def addresses(host: str) -> tuple[str, ...]:
    """The addresses that a host name stands for; empty where it cannot be resolved."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def refused_redirect(
    origin: str, target: str, *, resolve: Callable[[str], Sequence[str]] = addresses
) -> str | None:
    """Why a redirect from `origin` to `target` must not be followed; None where it may be.

    On one host TLS may not be given up. To another host it must be https, and the host must not stand
    for a private address unless the origin does too (a mirror inside a company's network).
    """
    here, there = urlsplit(origin), urlsplit(target)
    if there.scheme not in ("http", "https") or not there.hostname or not here.hostname:
        return _("redirected to something that is no web address")
    if here.scheme == "https" and there.scheme != "https":
        return _("redirected from https to plain http at {host}").format(host=there.hostname)
    if there.hostname == here.hostname or _private(resolve(here.hostname)):
        return None
    if there.scheme != "https":
        return _("redirected to plain http at {host}").format(host=there.hostname)
    if _private(resolve(there.hostname)):
        return _("redirected to {host}, which is in a private network").format(host=there.hostname)
    return None


def _private(found: Sequence[str]) -> bool:
    return any(not ipaddress.ip_address(address.partition("%")[0]).is_global for address in found)
