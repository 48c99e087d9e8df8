"""Fixtures of the tests of fetch: servers on loopback, an observer, a plain network."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from faultyserver import Server
from watching import Notes


@pytest.fixture(autouse=True)
def _plain_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy and no credentials of the machine that runs the tests."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server with these files: `serve({"conda-forge/noarch/x.conda": b"..."})`."""
    started: list[Server] = []

    def start(files: Mapping[str, bytes] | None = None) -> Server:
        server = Server()
        server.files.update(files or {})
        started.append(server)
        return server

    start.started = started  # type: ignore[attr-defined]
    yield start
    for server in started:
        server.close()


@pytest.fixture
def dead_url() -> str:
    """The URL of a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
