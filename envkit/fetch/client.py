"""The HTTP client: who we are, whom we trust, whose proxy and whose credentials we use."""

from __future__ import annotations

import netrc
import os
import ssl
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from envkit import __version__
from envkit.errors import InputError
from envkit.messages import _

if TYPE_CHECKING:
    import httpx

__all__ = ["auth_for", "make_client", "proxied"]


def auth_for(url: str) -> httpx.Auth | None:
    """The credentials for one request: those in the URL, else the host's entry in ~/.netrc, else none.

    Asked anew for every redirect, so that credentials go to their own host alone.
    """
    import httpx

    parts = urlsplit(url)
    if parts.username:
        return httpx.BasicAuth(unquote(parts.username), unquote(parts.password or ""))
    try:
        return httpx.NetRCAuth(os.environ.get("NETRC"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, netrc.NetrcParseError) as problem:
        raise InputError(
            _("~/.netrc cannot be used: {reason}").format(reason=problem),
            _("correct it, or set NETRC=/dev/null to do without"),
        ) from None


def make_client() -> httpx.Client:
    """A client that leaves redirects and time-outs to its caller. Raises InputError for bad settings."""
    import logging

    import httpx

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs URLs with their credentials
    try:
        return httpx.Client(
            verify=_certificates(),
            headers={"User-Agent": f"envkit/{__version__}"},
            follow_redirects=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
        )
    except (ImportError, ValueError, httpx.InvalidURL) as problem:
        raise InputError(
            _("the proxy settings cannot be used: {reason}").format(reason=problem),
            _("HTTPS_PROXY, HTTP_PROXY and ALL_PROXY look like http://host:port"),
        ) from None


def _certificates() -> ssl.SSLContext:
    """The system's certificates and certifi's; where a variable names a file or folder, that alone."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if value := os.environ.get(name):
            try:
                return _certificates_in(value)
            except OSError as problem:
                raise InputError(
                    _("{name}={value} holds no usable certificates: {reason}").format(
                        name=name, value=value, reason=problem
                    ),
                    _("name a file of certificates in PEM form, or unset {name}").format(name=name),
                ) from None
    return _certificates_in(None)


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


def proxied(host: str) -> bool:
    """Whether a proxy of the environment stands before `host`."""
    import urllib.request

    proxies = urllib.request.getproxies()
    return any(scheme in proxies for scheme in ("http", "https", "all")) and not (
        urllib.request.proxy_bypass(host)
    )
