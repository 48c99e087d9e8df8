"""The transport that sends each request directly or through the proxy that stands before its host."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable

import httpx

from envkit.errors import InputError
from envkit.fetch.access import without_password
from envkit.messages import _

__all__ = ["Proxies"]


class Proxies(httpx.BaseTransport):
    """`direct` for what needs no proxy; else a transport for each proxy, made when it is first needed.

    httpx would make one for every variable at once, and refuse all work for a SOCKS proxy that only
    `ALL_PROXY` names while `HTTPS_PROXY` is what will be used.
    """

    def __init__(
        self, direct: httpx.BaseTransport, verifier: ssl.SSLContext, proxy_for: Callable[[str], str | None]
    ) -> None:
        self._direct = direct
        self._verifier = verifier
        self._proxy_for = proxy_for
        self._made: dict[str, httpx.HTTPTransport] = {}
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request. Raises InputError for a proxy that cannot be used at all."""
        proxy = self._proxy_for(str(request.url))
        transport = self._direct if proxy is None else self._through(proxy)
        return transport.handle_request(request)

    def close(self) -> None:
        """Close the connections to proxies; `direct` belongs to the client."""
        for transport in self._made.values():
            transport.close()

    def _through(self, proxy: str) -> httpx.HTTPTransport:
        with self._lock:
            if proxy not in self._made:
                try:
                    self._made[proxy] = httpx.HTTPTransport(verify=self._verifier, proxy=httpx.Proxy(proxy))
                except (ImportError, ValueError, httpx.InvalidURL) as problem:
                    raise InputError(
                        _("the proxy settings cannot be used: {reason}").format(
                            reason=without_password(str(problem))
                        ),
                        _("HTTPS_PROXY, HTTP_PROXY and ALL_PROXY look like http://host:port"),
                    ) from None
            return self._made[proxy]
