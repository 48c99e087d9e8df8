"""The HTTP client: who we are, whom we trust, and whose proxy we use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envkit import __version__
from envkit.fetch.access import Access, proxy_for

if TYPE_CHECKING:
    import httpx

__all__ = ["make_client"]


def make_client(access: Access | None = None) -> httpx.Client:
    """A client that leaves redirects and time-outs to its caller. Raises InputError for bad settings."""
    import logging

    import httpx

    from envkit.fetch.proxies import Proxies

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs URLs with their credentials
    access = access or Access()
    verifier = access.verifier()
    direct = httpx.HTTPTransport(verify=verifier, limits=httpx.Limits(max_keepalive_connections=16))
    return httpx.Client(
        transport=direct,
        mounts={"all://": Proxies(direct, verifier, lambda url: proxy_for(url, access))},
        headers={"User-Agent": f"envkit/{__version__}"},
        follow_redirects=False,
        trust_env=False,
    )
