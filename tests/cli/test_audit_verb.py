"""envkit audit from the command line: what is meant, what is shown, how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tinychannel import TinyPackage, write_channel

from envkit.cli.frame import execute

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "environments" / "py311-cu118" / "conda-lock.yml"

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def asked(captured: Captured, *arguments: str) -> tuple[int, dict[str, object]]:
    code = execute(["audit", *arguments, "--json"])
    return code, json.loads(captured.readouterr().out)["result"]


@pytest.mark.parametrize("word", ["py311-cu118", str(LOCK), str(LOCK.parent)])
def test_a_variant_its_file_or_its_folder(word: str, capsys: Captured) -> None:
    code, result = asked(capsys, word, "--no-host")
    assert code == 0 and result["ok"]
    (report,) = result["reports"]
    checks = {check["id"]: check for check in report["checks"]}
    assert report["subject"] == "py311-cu118"
    assert "11.8" in checks["lock.accelerator"]["summary"]
    assert checks["lock.accelerator"]["status"] == "ok"


def test_all_variants(capsys: Captured) -> None:
    code, result = asked(capsys, "--all", "--no-host")
    assert code == 0
    assert {report["subject"] for report in result["reports"]} >= {"py311-cpu", "py311-cu118"}


def test_a_missing_lock_does_not_keep_the_others_from_being_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    shutil.copytree(ROOT / "environments", tmp_path / "environments")
    (tmp_path / "environments" / "py311-cu118" / "conda-lock.yml").unlink()
    (tmp_path / "environments" / "py311-cu121" / "conda-lock.yml").write_text("version: 2\n")
    monkeypatch.chdir(tmp_path)
    code, result = asked(capsys, "--all", "--no-host")
    assert code == 1
    assert [report["checks"][0]["id"] for report in result["reports"] if not report["ok"]] == [
        "lock.readable"
    ] * 2


def test_what_is_good_is_shown_with_v_only(capsys: Captured) -> None:
    assert execute(["audit", "py311-cu118", "--host", "glibc=2.17,driver=440.33,gpu=8.6"]) == 1
    told = capsys.readouterr().out
    assert "FAILED   lock.host-driver" in told and "lock.names" not in told
    assert "py311-cu118: nothing serious found in it, but it does not run on that machine" in told
    assert "0.0 s" not in told
    assert execute(["audit", "py311-cu118", "--no-host", "-v"]) == 0
    assert "lock.names" in capsys.readouterr().out


def test_a_strangers_lock_and_the_server_it_names(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "theirs.yml"
    text = LOCK.read_text().replace("https://conda.anaconda.org/nvidia", "https://conda.example.com/nvidia")
    path.write_text(text)
    assert execute(["audit", str(path), "--no-host"]) == 1
    assert "lock.hosts" in capsys.readouterr().out
    assert execute(["audit", str(path), "--no-host", "--allow-host", "conda.example.com"]) == 0
    capsys.readouterr()
    assert (
        execute(["audit", str(path), "--no-host", "--allow-host", "conda.example.com", "--cuda", "12.1"]) == 1
    )


def test_records_from_a_folder_of_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENVKIT_CACHE", str(tmp_path / "cache"))
    packages = TinyPackage("a", depends=["b * py_*"]), TinyPackage("b", build="cpp_0")
    write_channel(tmp_path / "mirror" / "conda-forge", *packages)
    needs = {"a": "b: '*'", "b": ""}
    entries = "".join(
        f"- name: {one.name}\n  version: '1.0'\n  manager: conda\n  platform: linux-64\n"
        f"  dependencies: {{{needs[one.name]}}}\n"
        f"  url: https://conda.anaconda.org/conda-forge/linux-64/{one.stem}.conda\n"
        f"  hash: {{md5: {'ab' * 16}, sha256: {'ab' * 32}}}\n"
        for one in packages
    )
    path = tmp_path / "conda-lock.yml"
    path.write_text(
        "version: 1\nmetadata:\n  content_hash: {}\n  channels: [{url: conda-forge, used_env_vars: []}]\n"
        f"  platforms: [linux-64]\n  sources: []\npackage:\n{entries}"
    )
    assert execute(["audit", str(path), "--no-host"]) == 0
    capsys.readouterr()
    code, result = asked(capsys, str(path), "--no-host", "--records", (tmp_path / "mirror").as_uri())
    assert code == 1
    failed = {check["id"] for check in result["reports"][0]["checks"] if check["status"] == "fail"}
    assert failed == {"lock.records", "lock.builds"}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["py311-cu118", "--all"],
        ["no-such-variant"],
        ["no/such/conda-lock.yml"],
        ["py311-cu118", "--cuda", "new"],
        ["py311-cu118", "--host", "foo=1"],
        ["py311-cu118", "--host", "glibc=2.17", "--no-host"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: Captured) -> None:
    assert execute(["audit", *arguments]) == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["", "https://u:hunter2@conda.corp.example/conda", "corp.example/conda"])
def test_an_allowed_host_that_is_none_is_refused(host: str, capsys: Captured) -> None:
    assert execute(["audit", str(LOCK), "--no-host", "--allow-host", host]) == 2
    said = capsys.readouterr().err
    assert "is not the name of a server" in said
    assert "hunter2" not in said
    assert host != "https://u:hunter2@conda.corp.example/conda" or "--allow-host conda.corp.example" in said


@pytest.mark.parametrize("host", ["Conda.Corp.example", "127.0.0.1", "::1", "my_host"])
def test_an_allowed_host(host: str, capsys: Captured) -> None:
    code, result = asked(capsys, str(LOCK), "--no-host", "--allow-host", host)
    assert code == 0 and result["ok"]


def test_trust_and_fit_are_two_answers(capsys: Captured) -> None:
    _code, result = asked(capsys, "py311-cu118", "--host", "glibc=2.12,driver=535.104,gpu=8.6")
    (report,) = result["reports"]
    assert (report["ok"], report["trusted"], report["fits"]) == (False, True, False)
    _code, result = asked(capsys, "py311-cu118", "--no-host")
    assert (result["reports"][0]["trusted"], result["reports"][0]["fits"]) == (True, None)


def test_what_fits_a_machine_is_named(capsys: Captured) -> None:
    assert execute(["audit", "py311-cu129", "--host", "glibc=2.28,driver=470.1,gpu=8.6", "--lang", "en"]) == 1
    assert "runs there; " in capsys.readouterr().out.splitlines()[-1]


def test_all_locks_take_a_line_each(capsys: Captured) -> None:
    assert execute(["audit", "--all", "--host", "glibc=2.28,driver=525.60,gpu=8.6", "--lang", "en"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["lock", "file", "trusted", "runs"]
    named = {line.split()[0]: line for line in lines[1:]}
    assert named["py311-cu118"].split()[1:3] == ["yes", "yes"]
    assert named["py311-cu129"].split()[1:3] == ["yes", "no"]


def test_quiet_tells_what_failed_alone(capsys: Captured) -> None:
    assert execute(["audit", "py311-cu118", "--no-host", "-q", "--lang", "en"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert execute(["audit", "py311-cu118", "--host", "glibc=2.12", "-q", "--lang", "en"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("FAILED") and "skipped  " not in told
    assert execute(["audit", "--all", "--no-host", "-q", "--lang", "en"]) == 0
    assert capsys.readouterr().out == ""


def test_a_finding_names_the_package_and_its_line(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "theirs.yml"
    text = LOCK.read_text().replace("https://conda.anaconda.org/nvidia", "https://conda.example.com/nvidia")
    path.write_text(text)
    assert execute(["audit", str(path), "--no-host", "--lang", "en", "-v"]) == 1
    (told, *_more) = [line for line in capsys.readouterr().out.splitlines() if "cuda-cudart" in line]
    assert "package[" not in told
    number = int(told.partition(", line ")[2].partition(":")[0])
    assert text.split("\n")[number - 1].startswith("- name: cuda-cudart")
