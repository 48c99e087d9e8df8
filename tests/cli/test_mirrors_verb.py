"""envkit mirrors, and a choice of mirrors in other tools' words. No host but loopback is contacted."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from envkit.channels import Carriage, Mirror, pip_conf_text, read_condarc, table
from envkit.channels.settings import MAINLAND, condarc_text
from envkit.cli.mirrors import carriage, measurements
from envkit.errors import InputError
from envkit.fetch import Session, Trust, routes
from envkit.fetch.measured import Memory
from envkit.progress import SILENT
from envkit.report.width import width

ROOT = Path(__file__).parents[2]
CHANNELS = ("conda-forge", "pytorch", "nvidia")
DEAD = "http://127.0.0.1:9"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any configuration, behind a proxy that is not there: nothing can lead out."""
    for name in (
        "CONDARC",
        "CONDA_PREFIX",
        "CONDA_EXE",
        "XDG_CONFIG_HOME",
        "ENVKIT_MIRROR",
        "ENVKIT_ONLY_MIRRORS",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name.upper(), DEAD)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "envkit"))
    return tmp_path


def envkit(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "envkit", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_who_carries_what_in_eighty_columns(home: Path) -> None:
    done = envkit("mirrors")
    assert done.returncode == 0
    assert max(width(line) for line in done.stdout.splitlines()) <= 80
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line[:1].isalpha()}
    assert lines["mirror"][1:4] == list(CHANNELS)
    assert lines["tuna"][1:4] == ["yes", "yes", "no"]
    assert lines["ustc"][1:5] == ["cache", "via", "tuna", "no"]
    assert lines["aliyun"][1:4] == ["?", "?", "?"]
    assert "nobody knows" in done.stdout
    assert not (home / "envkit").exists()


def test_the_same_for_programs(home: Path) -> None:
    tuna_alone = ("mirrors", "--mirror", "tuna", "--only-mirrors")
    assert json.loads(envkit(*tuna_alone, "--json").stdout)["result"]["routes"]["nvidia"] == []
    assert "nvidia: nobody who may be asked has it" in envkit(*tuna_alone).stdout
    result = json.loads(
        envkit("mirrors", "--json", "--mirror", "tuna,sustech", ENVKIT_ONLY_MIRRORS="1").stdout
    )
    said = result["result"]
    assert said["routes"]["nvidia"] == ["mirrors.sustech.edu.cn"]
    assert said["routes"]["pytorch"] == ["mirrors.tuna.tsinghua.edu.cn", "mirrors.sustech.edu.cn"]
    (tuna,) = [row for row in said["mirrors"] if row["id"] == "tuna"]
    assert tuna["channels"] == {"conda-forge": "yes", "pytorch": "yes", "nvidia": "no"}
    assert tuna["date"].startswith("2026")
    assert said["as_of"] == table().as_of


def test_the_mistakes_of_a_condarc_are_listed_with_their_lines(home: Path) -> None:
    (home / ".condarc").write_text(
        "channels: [conda-forge]\n"
        "custom_channels:\n"
        "  conda-forge: https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/conda-forge\n"
    )
    done = envkit("mirrors", "--json")
    (mistake,) = json.loads(done.stdout)["result"]["mistakes"]
    assert (mistake["id"], mistake["line"]) == ("doubled-name", 3)
    assert mistake["hint"] == "write https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud"
    assert f"{home}/.condarc:3: conda appends the channel's name" in envkit("mirrors").stdout


def test_when_nobody_answers(home: Path) -> None:
    done = envkit("mirrors", "test")
    assert done.returncode == 3
    assert "no mirror answers" in done.stdout
    assert not (home / "envkit" / "state").exists()


class _Index(BaseHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        pass

    def do_GET(self) -> None:
        body = b"\x28\xb5\x2f\xfd" + bytes(100_000)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT")
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Index)
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{made.server_address[1]}"
    made.shutdown()
    made.server_close()


def test_what_answers_is_told_and_remembered(home: Path, server: str, tmp_path: Path) -> None:
    def row(name: str, url: str) -> Mirror:
        facts = Carriage(carried="yes", base=url)
        return Mirror(id=name, name=name, host=url.partition("://")[2], channels={"conda-forge": facts})

    facts = replace(
        table(), mirrors={"near": row("near", server), "gone": row("gone", DEAD)}, auto=("near", "gone")
    )
    session = Session(trust=Trust(hosts=frozenset({server, DEAD})))
    chosen = replace(routes("auto", only=True, facts=facts), session=session)
    memory = Memory(path=tmp_path / "m.json", network="here")
    done = measurements(chosen, facts, SILENT, columns=80, memory=memory)
    assert done.code == 0
    lines = done.text.splitlines()
    assert lines[1].startswith("near") and " ms" in lines[1]
    assert lines[2].startswith("gone") and "connection refused" in lines[2]
    assert [one.id for one in memory.read()] == ["gone", "near"]
    remembered = routes("auto", only=True, facts=facts, memory=memory.path)
    assert remembered.session.ranking is not None
    shown = replace(remembered.session.ranking, memory=memory)
    remembered.session.ranking = shown
    listed = carriage(remembered, facts, read_condarc({}, []), ["conda-forge"], columns=80)
    assert "measured here within a day: 127.0.0.1" in listed.text


def test_the_example_is_the_export_for_a_team_in_mainland_china() -> None:
    assert (ROOT / ".condarc.example").read_text() == envkit("export", "condarc").stdout
    assert (ROOT / ".condarc.example").read_text() == condarc_text(MAINLAND, CHANNELS)


def _conda(text: str, tmp_path: Path) -> Any:
    """What envkit's own reader makes of it: no mistake in it."""
    path = tmp_path / ".condarc"
    path.write_text(text)
    read = read_condarc({}, [path])
    assert read.mistakes == ()
    return read


@pytest.mark.parametrize(
    "choice", [["tuna", "sustech"], ["nju"], ["ustc", "nju"], ["official"], ["https://h.example/a"]]
)
def test_a_condarc_sends_each_channel_where_the_routes_do(choice: list[str], tmp_path: Path) -> None:
    text = condarc_text(choice, CHANNELS)
    assert max(map(len, text.splitlines())) <= 120
    read = _conda(text, tmp_path)
    for channel in CHANNELS:
        own = read.places(channel, "linux-64")
        asked = [source.url for source in routes(",".join(choice)).sources(channel, "linux-64")]
        assert own[:1] == () or own[0] in asked
        carried = [
            name for name in choice if name not in table().mirrors or table().mirrors[name].url(channel)
        ]
        assert bool(own) is bool(carried), channel


def test_a_server_that_needs_quotes_and_a_password_that_stays_out(tmp_path: Path) -> None:
    text = condarc_text(["https://me:secret@h.example/a:b%20c/"], ["team"])
    assert "secret" not in text
    assert yaml.safe_load(text)["custom_channels"] == {"team": "https://h.example/a:b%20c"}
    tricky = condarc_text(["https://h.example/'x\"y"], ["team"])
    assert yaml.safe_load(tricky)["custom_channels"] == {"team": "https://h.example/'x\"y"}
    for word in ("https://h.example/a b", "https://h.example/\nchannels: [evil]", "nowhere", "wheels"):
        with pytest.raises(InputError):
            condarc_text([word], ["team"])


def test_a_pip_conf_is_one_for_pip() -> None:
    done = envkit("export", "pip-conf", "--mirror", "nju")
    read = configparser.RawConfigParser()
    read.read_string(done.stdout)
    assert read["global"]["index-url"] == "https://mirror.nju.edu.cn/pypi/web/simple"
    assert "extra-index-url" not in read["global"]
    official = configparser.RawConfigParser()
    official.read_string(pip_conf_text(["official"]))
    assert "index-url" not in official["global"]


@pytest.mark.parametrize(
    "arguments",
    [("condarc", "some-variant"), ("condarc", "--platform", "linux-64"), ("pixi", "--mirror", "tuna")],
)
def test_what_does_not_go_together_is_said(arguments: tuple[str, ...]) -> None:
    done = envkit("export", *arguments)
    assert done.returncode == 2
    assert "has no meaning" in done.stderr


@pytest.mark.parametrize(
    ("verb", "taken"), [("up", True), ("install", True), ("lock", False), ("mirrors", False)]
)
def test_the_wheel_channel_is_offered_where_it_is_taken(verb: str, taken: bool) -> None:
    text = " ".join(envkit(verb, "--help").stdout.split())
    assert ("file:///DIR, wheels" in text) is taken
    assert "--only-mirrors" in text
