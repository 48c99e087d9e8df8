"""Through which proxy a host is reached, and whose certificates vouch for it."""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from envkit.channels import Condarc
from envkit.errors import InputError
from envkit.messages import _

__all__ = ["Access", "proxy_for", "without_password"]

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """What a user's .condarc says of the way to a host. The environment's own variables come before it.

    `proxies` maps "https", "http" or "all", or one of them with a host ("https://conda.example.com"), to a
    proxy's URL; a host's own entry is the only thing that wins over `HTTPS_PROXY`. `certificates` is a file
    or folder in PEM form.
    """

    proxies: Mapping[str, str] = field(default_factory=dict)
    certificates: Path | None = None

    @staticmethod
    def of(condarc: Condarc | None) -> Access:
        """What a .condarc says; nothing, where there is none.

        `ssl_verify: false` is not taken over: it is the word of a file written long ago for some other
        reason, while an unchecked index is what everything else here rests on. What a proxy that
        opens TLS needs is its certificate, which `ssl_verify` can name too.
        """
        if condarc is None:
            return Access()
        return Access(proxies=condarc.proxies, certificates=condarc.certificates)

    def verifier(self) -> ssl.SSLContext:
        """The system's certificates and certifi's; where a variable or a .condarc names some, those alone.

        Raises InputError where they cannot be used.
        """
        for name in _CERTIFICATES:
            if value := os.environ.get(name):
                return _verifier(name, value)
        if self.certificates is not None:
            return _verifier("ssl_verify", str(self.certificates))
        return _certificates_in(None)


def proxy_for(url: str, access: Access, environ: Mapping[str, str] = os.environ) -> str | None:
    """The proxy for one URL; None where it is asked directly.

    The proxy that a .condarc names for this very host comes first. NO_PROXY (names, their subdomains,
    addresses, networks, each with or without a port, or `*`) is for all others, be they of the environment
    or of a .condarc.
    """
    parts = urlsplit(url)
    scheme, host = parts.scheme, parts.hostname or ""
    for key in (f"{scheme}://{host}", f"all://{host}"):
        if key in access.proxies:
            return access.proxies[key]
    if _bypassed(host, parts.port, _variable("no_proxy", environ)):
        return None
    for name in (scheme, "all"):
        if value := _variable(f"{name}_proxy", environ):
            return value if "://" in value else f"http://{value}"
    return access.proxies.get(scheme) or access.proxies.get("all")


def without_password(text: str) -> str:
    """A text without what stands before the @ of a URL in it."""
    return re.sub(r"://[^/@\s'\"]*@", "://", text)


def _variable(name: str, environ: Mapping[str, str]) -> str:
    """As curl reads them, lower case first. Where CGI runs us, HTTP_PROXY in capitals is someone's header."""
    if name == "http_proxy" and "REQUEST_METHOD" in environ:
        return environ.get(name, "").strip()
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _bypassed(host: str, port: int | None, said: str) -> bool:
    return any(_covers(entry, host.lower(), port) for entry in re.split(r"[,\s]+", said.lower()) if entry)


def _covers(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    name, colon, number = entry.removeprefix("*").removeprefix(".").rpartition(":")
    if colon and number.isdigit():
        if int(number) != port:
            return False
    else:
        name = entry.removeprefix("*").removeprefix(".")
    return host == name or host.endswith(f".{name}")


def _verifier(name: str, value: str) -> ssl.SSLContext:
    try:
        return _certificates_in(value)
    except OSError as problem:
        raise InputError(
            _("{name}={value} holds no usable certificates: {reason}").format(
                name=name, value=value, reason=problem
            ),
            _("name a file of certificates in PEM form, or unset {name}").format(name=name),
        ) from None


@cache
def _certificates_in(place: str | None) -> ssl.SSLContext:
    import certifi

    if place is None:
        context = ssl.create_default_context()
        context.load_verify_locations(cafile=certifi.where())
        return context
    if Path(place).is_dir():
        return ssl.create_default_context(capath=place)
    return ssl.create_default_context(cafile=place)
