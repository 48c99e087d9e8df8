"""Whom a run may ask: known hosts over https, chosen hosts, no private network by a stranger's word."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from faultyserver import Fault, Server
from tinychannel import TinyPackage, channel_files
from watching import Notes, impatient

from envkit.fetch import FetchError, Offline, Trust, archives, package_cache, repodata, wheels
from envkit.fetch.trust import Untrusted, is_upstream

FOO = TinyPackage(noarch="generic")
HEALTHY = channel_files(FOO)
PATH = f"conda-forge/noarch/{FOO.file}"
UPSTREAM = "https://conda.anaconda.org/conda-forge/noarch/x.conda"
CHOSEN = Trust(hosts=frozenset({"conda.corp", "http://plain.corp:8080/conda", "10.1.2.3", "[fd00::1]:8443"}))


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        (UPSTREAM, True),
        ("https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/x", True),
        ("https://download.pytorch.org/whl/cu121/x.whl", True),
        ("https://CONDA.anaconda.org./x", True),
        ("http://conda.anaconda.org/x", False),
        ("https://evil.example.org/x", False),
        ("https://conda.anaconda.org.evil.example/x", False),
        ("https://conda.anaconda.org@evil.example/x", False),
        ("https://8.8.8.8/x", False),
        ("https://127.0.0.1/x", False),
        ("https://localhost/x", False),
        ("https://conda.corp/x", True),
        ("https://conda.corp:8443/x", True),
        ("http://conda.corp/x", True),
        ("http://plain.corp:8080/x", True),
        ("http://plain.corp:22/x", False),
        ("https://10.1.2.3/x", True),
        ("https://10.1.2.4/x", False),
        ("https://[fd00::1]:8443/x", True),
        ("https://[fd00::1]/x", False),
        ("file:///etc/passwd", False),
        ("ftp://conda.corp/x", False),
        ("https:///x", False),
        ("https://conda.corp:99999/x", False),
        ("https://[broken/x", False),
    ],
)
def test_a_url_is_judged_before_any_connection(url: str, allowed: bool) -> None:
    assert (CHOSEN.refusal(url) is None) is allowed


@pytest.mark.parametrize(
    ("target", "origin", "allowed"),
    [
        ("https://cdn.example.org/x", UPSTREAM, True),
        ("https://9.9.9.9/x", UPSTREAM, True),
        ("http://cdn.example.org/x", UPSTREAM, False),
        ("http://conda.anaconda.org/x", UPSTREAM, False),
        ("http://conda.corp/x", UPSTREAM, False),
        ("https://10.1.2.3/x", UPSTREAM, True),
        ("https://10.1.2.4/x", UPSTREAM, False),
        ("https://192.168.0.1/x", UPSTREAM, False),
        ("https://169.254.169.254/latest", UPSTREAM, False),
        ("https://100.64.0.1/x", UPSTREAM, False),
        ("https://0.0.0.0/x", UPSTREAM, False),
        ("https://2130706433/x", UPSTREAM, False),
        ("https://0x7f.1/x", UPSTREAM, False),
        ("https://[::1]/x", UPSTREAM, False),
        ("https://[::ffff:10.0.0.1]/x", UPSTREAM, False),
        ("https://[64:ff9b::a00:1]/x", UPSTREAM, False),
        ("https://[fe80::1%25eth0]/x", UPSTREAM, False),
        ("https://conda.corp/x", "http://conda.corp/x", True),
        ("http://conda.corp/y", "http://conda.corp/x", True),
        ("http://other.corp/y", "http://conda.corp/x", False),
        ("file:///etc/passwd", UPSTREAM, False),
        ("gopher://x/y", UPSTREAM, False),
    ],
)
def test_where_a_redirect_may_lead(target: str, origin: str, allowed: bool) -> None:
    assert (CHOSEN.refusal(target, origin=origin) is None) is allowed


NAMES = {
    "public.example": ("8.8.8.8",),
    "private.example": ("192.168.7.7",),
    "both.example": ("10.9.9.9", "8.8.4.4", "::1"),
    "proxied.example": ("198.18.0.17", "fc00::11"),
    "conda.corp": ("10.1.1.1",),
    "10.0.0.8": ("10.0.0.8",),
    "198.18.0.9": ("198.18.0.9",),
}


@pytest.mark.parametrize(
    ("host", "judged"),
    [
        ("public.example", ("8.8.8.8",)),
        ("private.example", None),
        ("both.example", ("8.8.4.4",)),
        ("proxied.example", ("198.18.0.17",)),
        ("conda.corp", ("10.1.1.1",)),
        ("10.0.0.8", None),
        ("198.18.0.9", None),
    ],
)
def test_a_connection_goes_to_an_address_that_was_judged(host: str, judged: tuple[str, ...] | None) -> None:
    """A proxy that answers every name with an address of its own (fake-ip) is no private network."""
    trust = Trust(hosts=frozenset({"conda.corp"}), resolve=NAMES.__getitem__)
    if judged is None:
        with pytest.raises(Untrusted, match="private network"):
            trust.judged(host, 443)
    else:
        assert trust.judged(host, 443) == judged


def test_a_name_is_looked_up_once_and_not_again_to_connect(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What answered a public address first and a private one next gets no second look."""
    server = serve(HEALTHY)
    looked_up: list[str] = []

    def resolve(host: str) -> tuple[str, ...]:
        looked_up.append(host)
        return ("127.0.0.1",)

    def never(*_args: object, **_kw: object) -> None:
        raise AssertionError("looked up behind our back")

    url = server.url.replace("127.0.0.1", "mirror.example")
    chosen = impatient(url)
    chosen.session.trust = Trust(hosts=frozenset({url}), resolve=resolve)
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **kw: real(host, *rest, **kw) if host == "127.0.0.1" else never(),
    )
    archives([FOO.locked()], routes=chosen, cache=tmp_path)
    assert looked_up == ["mirror.example"]


def test_a_private_address_behind_a_public_name_is_never_connected_to(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    """A stranger's lock names a host, or a mirror redirects to one, that stands for an address in here."""
    inside, mirror = serve(HEALTHY), serve(HEALTHY)
    port = inside.host.rpartition(":")[2]
    mirror.faults[PATH] = Fault(status=302, headers={"Location": f"https://public.example:{port}/{PATH}"})
    chosen = impatient(mirror.url)
    chosen.session.trust = Trust(hosts=frozenset({mirror.url}), resolve=lambda _host: ("127.0.0.1",))
    with pytest.raises(FetchError, match=r"redirected to public.example:\d+: .* in a private network"):
        archives([FOO.locked()], routes=chosen, cache=tmp_path)
    assert inside.log == []
    assert inside.connections == 0


def test_an_unknown_host_of_a_lock_is_not_asked_and_the_hint_says_how(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(HEALTHY)
    package = FOO.locked(f"{server.url}/conda-forge")
    with pytest.raises(FetchError) as refused:
        archives([package], routes=impatient("official"), cache=tmp_path)
    assert server.connections == 0
    assert f"--allow-host {server.host}" in refused.value.hint
    archives([package], routes=impatient("official", trusted=[server.host]), cache=tmp_path)
    assert (package_cache(tmp_path) / FOO.stem).is_dir()


def test_offline_opens_no_connection_and_names_what_is_lacking(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    server, bar = serve(HEALTHY), TinyPackage("bar")
    archives([FOO.locked()], routes=impatient(server.url), cache=tmp_path)
    repodata("conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path)
    before = server.connections
    without = impatient(server.url, offline=True)
    archives([FOO.locked()], routes=without, cache=tmp_path)
    assert repodata("conda-forge", "noarch", routes=without, cache=tmp_path, max_age=0).exists()
    with pytest.raises(Offline) as lacking:
        archives([FOO.locked(), bar.locked()], routes=without, cache=tmp_path)
    assert lacking.value.code == 3
    assert bar.file in lacking.value.message
    assert FOO.file not in lacking.value.message
    with pytest.raises(Offline, match="conda-forge/linux-64"):
        repodata("conda-forge", "linux-64", routes=without, cache=tmp_path)
    with pytest.raises(Offline):
        _ = without.session.client
    assert server.connections == before
    assert wheels([], routes=without, cache=tmp_path) == {}


def test_only_upstream_gets_more_connections_than_a_campus_mirror() -> None:
    from envkit.channels import pypi_files, table

    mirrors = [f"https://{mirror.host}/x" for mirror in table().mirrors.values()]
    upstream = {
        "https://conda.anaconda.org/x",
        "https://repo.anaconda.com/x",
        "https://download.pytorch.org/x",
    }
    assert all(is_upstream(url) for url in upstream)
    assert is_upstream(f"{pypi_files()}/x")
    assert {url for url in mirrors if is_upstream(url)} <= upstream
    assert len(mirrors) > 8


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate and key for the names *.inside.example alone, not for any address."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here")
    path = tmp_path / "certificate.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=inside"),
            *("-addext", "subjectAltName=DNS:*.inside.example", "-keyout", path, "-out", f"{path}.only"),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + Path(f"{path}.only").read_text())
    return path


def test_tls_is_checked_against_the_name_and_not_the_address_that_was_judged(
    certificate: Path, serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mirror over TLS, and an unknown host that it redirects to: followed, and told."""
    mirror, cdn, other = serve(), serve(HEALTHY), serve(HEALTHY)
    for server in (mirror, cdn, other):
        server.use_tls(certificate)
    port = cdn.host.rpartition(":")[2]
    mirror.faults[PATH] = Fault(status=302, headers={"Location": f"https://cdn.inside.example:{port}/{PATH}"})
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    named = mirror.url.replace("http://127.0.0.1", "https://mirror.inside.example")
    unnamed = other.url.replace("http:", "https:")
    notes = Notes()
    chosen = impatient(unnamed, named, trusted=[f"cdn.inside.example:{port}"])
    archives([FOO.locked()], routes=chosen, cache=tmp_path, observer=notes)
    assert (package_cache(tmp_path) / FOO.stem).is_dir()
    wrong, told, last = notes.lines
    assert "TLS failed" in wrong
    assert told.startswith("mirror.inside.example:")
    assert told.endswith(f"redirects to cdn.inside.example:{port}")
    assert last.startswith("packages fetched: 1 from mirror.inside.example:")
    assert "failed: 1 at 127.0.0.1:" in last


def test_a_redirect_inside_a_company_is_refused_with_the_way_to_allow_it(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    """A repository manager that keeps its files in a store of its own."""
    manager, store = serve(), serve(HEALTHY)
    target = store.url.replace("127.0.0.1", "store.inside.example")
    manager.faults[PATH] = Fault(status=302, headers={"Location": f"{target}/{PATH}"})
    with pytest.raises(FetchError, match="plain http") as refused:
        archives([FOO.locked()], routes=impatient(manager.url), cache=tmp_path)
    host = target.removeprefix("http://")
    assert f"--allow-host {host}" in refused.value.hint
    assert store.connections == 0
    archives([FOO.locked()], routes=impatient(manager.url, trusted=[host]), cache=tmp_path)
    assert (package_cache(tmp_path) / FOO.stem).is_dir()
