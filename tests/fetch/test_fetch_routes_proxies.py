"""Whose proxy a request goes through: the environment's, a .condarc's, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import pytest
from faultyserver import Server
from watching import IMPATIENT

from envkit.channels import read_condarc
from envkit.errors import InputError
from envkit.fetch import Session, Trust
from envkit.fetch.access import Access, proxy_for, without_password

URL = "https://conda.example.com/pytorch/noarch/repodata.json"
OWN = Access(
    proxies={
        "https": "http://file:1",
        "all": "http://file:2",
        "https://conda.example.com": "http://host:3",
        "all://a.example": "http://host:4",
    }
)


@pytest.mark.parametrize(
    ("url", "access", "environ", "proxy"),
    [
        (URL, Access(), {}, None),
        (URL, Access(), {"HTTPS_PROXY": "http://e:1"}, "http://e:1"),
        (URL, Access(), {"https_proxy": "e:1", "HTTPS_PROXY": "http://other"}, "http://e:1"),
        (URL, Access(), {"HTTP_PROXY": "http://e:1"}, None),
        (URL, Access(), {"ALL_PROXY": "socks5://e:1", "HTTPS_PROXY": "http://e:2"}, "http://e:2"),
        ("http://x.example/", Access(), {"all_proxy": "socks5://e:1"}, "socks5://e:1"),
        ("http://x.example/", Access(), {"HTTP_PROXY": "http://e:1", "REQUEST_METHOD": "GET"}, None),
        (URL, OWN, {}, "http://host:3"),
        (URL, OWN, {"HTTPS_PROXY": "http://e:1", "NO_PROXY": "*"}, "http://host:3"),
        ("http://a.example/x", OWN, {}, "http://host:4"),
        ("https://b.example/x", OWN, {}, "http://file:1"),
        ("http://b.example/x", OWN, {}, "http://file:2"),
        ("https://b.example/x", OWN, {"HTTPS_PROXY": "http://e:1"}, "http://e:1"),
        ("https://b.example/x", OWN, {"NO_PROXY": "b.example"}, None),
    ],
)
def test_which_proxy(url: str, access: Access, environ: Mapping[str, str], proxy: str | None) -> None:
    assert proxy_for(url, access, environ) == proxy


@pytest.mark.parametrize(
    ("said", "bypassed"),
    [
        ("*", True),
        ("example.com", True),
        (".example.com", True),
        ("*.example.com", True),
        ("a.test, conda.example.com", True),
        ("CONDA.EXAMPLE.COM", True),
        ("example.com:443", False),
        ("ample.com", False),
        ("conda.example.com.cn", False),
        ("", False),
    ],
)
def test_no_proxy_names(said: str, bypassed: bool) -> None:
    environ = {"HTTPS_PROXY": "http://e:1", "NO_PROXY": said}
    assert (proxy_for(URL, Access(), environ) is None) is bypassed


@pytest.mark.parametrize(
    ("url", "said", "bypassed"),
    [
        ("http://192.168.3.4/x", "192.168.0.0/16", True),
        ("http://192.169.3.4/x", "192.168.0.0/16", False),
        ("http://127.0.0.1:8080/x", "127.0.0.1", True),
        ("http://127.0.0.1:8080/x", "127.0.0.1:8080", True),
        ("http://127.0.0.1:8081/x", "127.0.0.1:8080", False),
        ("http://[::1]/x", "::1", True),
    ],
)
def test_no_proxy_addresses(url: str, said: str, bypassed: bool) -> None:
    environ = {"HTTP_PROXY": "http://e:1", "NO_PROXY": said}
    assert (proxy_for(url, Access(), environ) is None) is bypassed


def test_a_request_goes_through_the_proxy_of_a_condarc(serve: Callable[..., Server], tmp_path: Path) -> None:
    proxy, direct = serve({"http://x.example/a.json": b"{}"}), serve({"b.json": b"{}"})
    file = tmp_path / ".condarc"
    file.write_text(f"proxy_servers:\n  http: {proxy.url}\n  http://127.0.0.1: ''\n")
    access = Access.of(read_condarc({"NO_PROXY": "127.0.0.1"}, [file]))
    session = Session(IMPATIENT, trust=Trust(hosts=frozenset({direct.url})), access=access)
    assert session.client.get("http://x.example/a.json").content == b"{}"
    assert proxy.log[0][1] == "http://x.example/a.json"


def test_a_socks_proxy_that_is_not_needed_stops_nothing(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What every proxy program of the kind tells its users to export, all three at once."""
    proxy = serve({"http://x.example/a.json": b"{}"})
    monkeypatch.setenv("ALL_PROXY", "socks5://me:secret@127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    session = Session(IMPATIENT)
    assert session.client.get("http://x.example/a.json").content == b"{}"
    with pytest.raises(httpx.ConnectError) as refused:
        session.client.get("https://x.example/a.json")
    assert "secret" not in str(refused.value)


def test_a_certificate_of_a_condarc_is_used_unless_a_variable_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, certificate = tmp_path / ".condarc", tmp_path / "ca.pem"
    certificate.write_text("no certificate\n")
    file.write_text(f"ssl_verify: {certificate}\n")
    access = Access.of(read_condarc({}, [file]))
    assert access.certificates == certificate
    with pytest.raises(InputError, match="ssl_verify"):
        access.verifier()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    with pytest.raises(InputError, match="SSL_CERT_FILE"):
        access.verifier()


def test_a_password_of_a_proxy_is_not_shown() -> None:
    assert (
        without_password("unknown scheme 'gopher://me:secret@proxy:70'")
        == "unknown scheme 'gopher://proxy:70'"
    )
