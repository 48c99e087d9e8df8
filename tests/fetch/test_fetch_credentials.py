"""Credentials go to their own host alone, survive no redirect, and are shown nowhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faultyserver import Fault, Server
from watching import IMPATIENT, Notes

from envkit.channels import read_condarc, shown
from envkit.errors import Error
from envkit.fetch import Session, Trust
from envkit.fetch.credentials import _asked_keyring, auth_for
from envkit.fetch.routes import routes
from envkit.fetch.transfer import fetch
from envkit.fetch.wanted import Candidate, Wanted

SECRET = "s3cret-t0ken"


@pytest.fixture(autouse=True)
def _bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "BINSTAR_CONFIG_DIR", "RATTLER_AUTH_FILE"):
        monkeypatch.delenv(name, raising=False)
    _asked_keyring.cache_clear()
    yield
    _asked_keyring.cache_clear()


@pytest.fixture(autouse=True)
def keyring(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], str]:
    """A keyring of its own: no test looks into that of the machine."""
    import keyring
    from keyring.backend import KeyringBackend
    from keyring.credentials import SimpleCredential

    kept: dict[tuple[str, str], str] = {}

    class Ring(KeyringBackend):
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

        def get_credential(self, service: str, username: str | None) -> Any:
            found = next(((name, word) for (place, name), word in kept.items() if place == service), None)
            return SimpleCredential(*found) if found else None

        def set_password(self, service: str, username: str, password: str) -> None:
            kept[service, username] = password

    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    monkeypatch.setattr("envkit.fetch.credentials._LONGEST_LOOK", 5.0)
    yield kept
    keyring.set_keyring(before)


def header(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def get(url: str, tmp_path: Path, notes: Notes, *trusted: str) -> bytes:
    session = Session(IMPATIENT, trust=Trust(hosts=frozenset({url, *trusted})))
    wanted = Wanted(name="x.json", candidates=(Candidate(url=url),))
    path = fetch(session, wanted, tmp_path / "x.partial", observer=notes).path
    assert path is not None
    return path.read_bytes()


def test_a_name_and_a_password_in_the_url(serve: Callable[..., Server], tmp_path: Path, notes: Notes) -> None:
    server = serve({"a/x.json": b"{}"})
    get(f"http://me:pa%40ss@{server.host}/a/x.json", tmp_path, notes)
    assert server.asked("x.json")[0]["Authorization"] == header("me", "pa@ss")


def test_netrc_is_for_the_hosts_it_names(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve({"x.json": b"{}"})
    file = tmp_path / "netrc"
    file.write_text(f"machine 127.0.0.1 login me password {SECRET}\ndefault login any password thing\n")
    monkeypatch.setenv("NETRC", str(file))
    get(f"{server.url}/x.json", tmp_path, notes)
    assert server.asked("x.json")[0]["Authorization"] == header("me", SECRET)
    assert auth_for("https://other.example/x") is None


def test_a_token_of_anaconda_client_goes_into_the_path(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve({f"t/{SECRET}/private/noarch/x.json": b"{}", f"repo/t/{SECRET}/team/x.json": b"{}"})
    folder = tmp_path / "binstar" / "data"
    folder.mkdir(parents=True)
    monkeypatch.setenv("BINSTAR_CONFIG_DIR", str(folder.parent))
    name = server.url.replace(":", "%3A").replace("/", "%2F")
    (folder / f"{name}.token").write_text(f"{SECRET}\n")
    get(f"{server.url}/private/noarch/x.json", tmp_path, notes)
    (folder / f"{name}.token").rename(folder / f"{name}%2Frepo.token")
    get(f"{server.url}/repo/team/x.json", tmp_path, notes)
    assert auth_for(f"{server.url}/repository/x.json") is None
    assert auth_for(server.url.replace("http:", "https:") + "/repo/x.json") is None


def test_a_token_for_the_api_host_is_for_the_conda_host_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "home/.local/share/binstar"
    folder.mkdir(parents=True)
    (folder / "https%3A%2F%2Fapi.anaconda.org.token").write_text(SECRET)
    assert auth_for("https://conda.anaconda.org/private/noarch/x.json") is not None
    assert auth_for("https://conda.anaconda.org/t/other/private/noarch/x.json") is None
    assert auth_for("https://repo.anaconda.com/pkgs/main/x.json") is None


@pytest.mark.parametrize(
    ("entry", "sent"),
    [
        ({"BearerToken": SECRET}, f"Bearer {SECRET}"),
        ({"BasicHTTP": {"username": "me", "password": SECRET}}, header("me", SECRET)),
    ],
)
@pytest.mark.parametrize("where", ["file", "keyring"])
def test_what_rattler_keeps(
    entry: dict[str, Any],
    sent: str,
    where: str,
    serve: Callable[..., Server],
    tmp_path: Path,
    notes: Notes,
    keyring: dict[tuple[str, str], str],
) -> None:
    server = serve({"x.json": b"{}"})
    if where == "keyring":
        keyring["rattler", server.host] = json.dumps(entry)
    else:
        file = tmp_path / "home/.rattler/credentials.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"127.0.0.1": entry, "*.example.com": {"BearerToken": "else"}}))
    get(f"{server.url}/x.json", tmp_path, notes)
    assert server.asked("x.json")[0]["Authorization"] == sent


def test_rattlers_conda_token_and_wildcards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "auth.json"
    file.write_text(json.dumps({"*.example.com": {"CondaToken": SECRET}}))
    monkeypatch.setenv("RATTLER_AUTH_FILE", str(file))
    assert auth_for("https://conda.example.com/x") is not None
    assert auth_for("https://a.conda.example.com/x") is not None
    assert auth_for("https://example.com/x") is None
    assert auth_for("https://conda.example.com.evil.test/x") is None
    file.write_text("[]")
    assert auth_for("https://conda.example.com/x") is None


def test_the_keyring_is_asked_for_hosts_that_are_nobodys_mirror(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes, keyring: dict[tuple[str, str], str]
) -> None:
    server = serve({"x.json": b"{}"})
    keyring[server.host, "me"] = SECRET
    keyring["mirrors.tuna.tsinghua.edu.cn", "me"] = SECRET
    get(f"{server.url}/x.json", tmp_path, notes)
    assert server.asked("x.json")[0]["Authorization"] == header("me", SECRET)
    assert auth_for("https://mirrors.tuna.tsinghua.edu.cn/x") is None


def test_a_redirect_to_another_host_carries_nothing_along(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two are two hosts to netrc: 127.0.0.1 and localhost."""
    there = serve({"x.json": b"{}"})
    elsewhere = f"http://localhost:{there.host.partition(':')[2]}"
    here = serve()
    here.faults["x.json"] = Fault(status=302, headers={"Location": f"{elsewhere}/x.json"})
    here.faults[f"t/{SECRET}/x.json"] = here.faults["x.json"]
    file = tmp_path / "netrc"
    file.write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    monkeypatch.setenv("NETRC", str(file))
    for url in (
        f"{here.url}/x.json",
        f"http://me:{SECRET}@{here.host}/x.json",
        f"{here.url}/t/{SECRET}/x.json",
    ):
        get(url, tmp_path, notes, elsewhere)
    assert len(there.log) == 3
    for _verb, path, headers in there.log:
        assert "Authorization" not in headers
        assert SECRET not in path + str(headers)
    assert here.log[0][2]["Authorization"]
    assert SECRET not in "\n".join(notes.lines)


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_failure_shows_no_secret(
    status: int, serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    server = serve()
    server.everywhere = Fault(status=status, body=b"no")
    for url in (
        f"http://me:{SECRET}@{server.host}/t/{SECRET}/noarch/x.json?key={SECRET}",
        f"{server.url}/t/{SECRET}",
    ):
        with pytest.raises(Error) as refused:
            get(url, tmp_path, notes)
        said = "\n".join([refused.value.message, refused.value.hint, *notes.lines, repr(vars(refused.value))])
        assert SECRET not in said


def test_a_condarc_with_a_token_is_used_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / ".condarc"
    file.write_text(
        f"channel_alias: http://me:{SECRET}@conda.corp.example/t/{SECRET}\n"
        f"custom_channels:\n  team: 'http://me:{SECRET}@conda.corp.example/t/{SECRET}/team '\n"
        f"proxy_servers:\n  https: http://me:{SECRET}@proxy.corp.example:8080\n"
    )
    condarc = read_condarc({}, [file])
    assert condarc.mistakes
    assert SECRET not in "\n".join(map(str, condarc.mistakes))
    chosen = routes("auto", condarc=condarc)
    assert SECRET in chosen.urls("https://conda.anaconda.org/team/noarch/x-1-0.conda")[0]
    assert SECRET not in "\n".join(chosen.describe(["team", "conda-forge"]))
    assert SECRET not in routes(f"https://me:{SECRET}@conda.example/t/{SECRET}").choice


@pytest.mark.parametrize(
    "url", [f"https://h/t/{SECRET}", f"https://h/t/{SECRET}/a", f"https://u:{SECRET}@h/a?x={SECRET}#{SECRET}"]
)
def test_a_shown_url_has_no_secret(url: str) -> None:
    assert SECRET not in shown(url)
