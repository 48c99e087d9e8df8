"""envkit lock from its words to its files: what goes together, what stays, what strangers' files become."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tinychannel import TinyPackage, write_channel

from envkit.cli.frame import execute
from envkit.lock import read_lock

ROOT = Path(__file__).parents[2]
CHANNELS = ROOT.parent / "shared" / "channels"
RENDERED = [
    path
    for path in sorted(ROOT.glob("environments/*/environment.yml"))
    if "- pip:" not in path.read_text()  # what comes by pip needs an index
]

Run = Callable[..., tuple[int, dict[str, Any]]]

MATRIX = """\
schema: 1
defaults:
  python: "3.11"
  sources: {cpu: [conda-forge], cuda: [conda-forge]}
  platforms: {cpu: [linux-64], cuda: [linux-64]}
  packages: {conda: [numpy]}
sources:
  conda-forge:
    channels: [conda-forge]
    builds: {cpu: ">=2.1"}
    guard: {cpu: "cpu_*"}
variants:
  small: {cuda: cpu, source: conda-forge, torch: "2.4.*"}
  kept-by-nobody: {cuda: cpu, source: conda-forge, torch: "2.5.*", committed: false}
"""
PYTHON = TinyPackage("python", "3.11.9")
NUMPY = [TinyPackage("numpy", version, depends=["python"]) for version in ("1.26", "2.0")]
TORCH = [
    TinyPackage("pytorch", "2.4.0", "cpu_0", depends=["python"]),
    TinyPackage("pytorch", "2.4.0", "cuda126_0", depends=["python", "__cuda >=12.6"]),
    TinyPackage("pytorch", "2.3.0", "cuda118_0", depends=["python"]),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "environments").mkdir(parents=True)
    (folder / "environments" / "matrix.yaml").write_text(MATRIX)
    write_channel(tmp_path / "mirror" / "conda-forge", PYTHON, NUMPY[0], *TORCH)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENVKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ENVKIT_MIRROR", (tmp_path / "mirror").as_uri())
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = execute(["lock", *arguments, "--json", "--lang", "en"])
        return code, json.loads(capsys.readouterr().out)

    return call


def newer(project: Path) -> None:
    write_channel(project.parent / "mirror" / "conda-forge", PYTHON, *NUMPY, *TORCH)


def test_lock_keep_update_and_fresh(project: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("small", "--check")[0] == 1
    code, said = run("--all")
    assert code == 0
    (row,) = said["result"]["variants"]
    assert (row["variant"], row["torch"], row["changed"], row["diff"]) == ("small", "2.4.0", True, None)
    assert run("--all", "--check")[0] == 0
    newer(project)
    assert run("small")[1]["result"]["variants"][0]["changed"] is False
    assert execute(["lock", "small", "--update", "numpy", "--lang", "en"]) == 0
    told = capsys.readouterr().out
    assert "numpy" in told and "1.26 -> 2.0" in told
    assert execute(["lock", "small", "--update", "numpy", "--lang", "en"]) == 0
    told = capsys.readouterr().out
    assert "numpy cannot move" in told and "numpy 2.0 is the newest that the channels have" in told
    code, said = run("small", "--update", "nunpy")
    assert code == 2 and "nearest are numpy" in said["error"]["message"]
    assert run("--all", "--update", "nunpy")[0] == 2
    assert run("--all", "--fresh")[0] == 0


def test_a_lock_that_nobody_keeps_is_made_when_it_is_named(project: Path, run: Run) -> None:
    write_channel(
        project.parent / "mirror" / "conda-forge",
        PYTHON,
        NUMPY[0],
        TORCH[0],
        TinyPackage("pytorch", "2.5.0", "cpu_0"),
    )
    assert run("--all")[0] == 0
    path = project / "environments" / "kept-by-nobody" / "conda-lock.yml"
    assert not path.exists()
    code, said = run("--all", "--check")
    assert code == 0 and [row["state"] for row in said["result"]["variants"]] == ["fresh", "unkept"]
    assert run("kept-by-nobody", "--check")[0] == 1
    assert run("kept-by-nobody")[0] == 0 and path.exists()
    path.write_text(path.read_text().replace(read_lock(path).digest or "-", "0" * 64))
    assert run("--all", "--check")[0] == 1


def test_one_that_does_not_solve_keeps_no_other_from_it(project: Path, run: Run) -> None:
    text = MATRIX.replace("committed: false", "extras: []").replace('"2.5.*"', '"2.9.*"')
    (project / "environments" / "matrix.yaml").write_text(text)
    code, said = run("--all")
    assert code == 1
    good, bad = said["result"]["variants"]
    assert good["torch"] == "2.4.0"
    assert "pytorch" in bad["error"] and bad["details"]["proposal"]["kind"] == "specs"
    code, said = run("kept-by-nobody")
    assert code == 1 and said["error"]["details"]["lacking"][0]["spec"].startswith("pytorch")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("small", "--all"), "VARIANT and --all"),
        (("small", "--file", "x"), "VARIANT and --file"),
        (("--file", "x", "--canonicalise", "y"), "--file and --canonicalise"),
        (("small", "--check", "--fresh"), "--check and --fresh exclude each other"),
        (("small", "--update", "numpy", "--fresh"), "--update and --fresh exclude each other"),
        (("small", "-o", "x"), "--output has no meaning with VARIANT"),
        (("--all", "--cuda", "cpu"), "--cuda has no meaning with --all"),
        (("small", "--platform", "linux-64"), "--platform has no meaning with VARIANT"),
        (("--file", "x", "--torch", "2.4"), "--torch has no meaning with --file"),
        (("--canonicalise", "x", "--update", "numpy"), "--update has no meaning with --canonicalise"),
        (("--file", "x.yml", "--cuda", "twelve"), "--cuda twelve is not a version"),
    ],
)
def test_what_does_not_go_together(project: Path, run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, said = run(*arguments)
    assert (code, said["error"]["message"].startswith(message)) == (2, True), said


def environment(project: Path, *lines: str, platforms: str = "[linux-64]") -> Path:
    path = project / "theirs.yml"
    listed = "".join(f"  - {line}\n" for line in lines)
    path.write_text(f"channels: [conda-forge]\nplatforms: {platforms}\ndependencies:\n{listed}")
    return path


def test_a_strangers_file_is_locked_beside_it(project: Path, run: Run) -> None:
    path = environment(project, "python=3.11", "numpy")
    code, said = run("--file", str(path))
    assert code == 0
    lock = read_lock(project / "conda-lock.yml")
    assert said["result"]["path"] == str(project / "conda-lock.yml")
    assert {package.name for package in lock.packages} == {"python", "numpy"}
    assert f"envkit lock --file {path.name}" in lock.path.read_text()
    before = lock.path.read_bytes()
    newer(project)
    assert run("--file", str(path))[1]["result"]["changed"] is False
    assert lock.path.read_bytes() == before
    assert run("--file", str(path), "--update", "numpy")[0] == 0
    assert run("--file", str(path), "-o", "elsewhere.yml")[0] == 0
    assert (project / "elsewhere.yml").read_bytes() == lock.path.read_bytes()


def test_a_mirror_in_a_strangers_file_does_not_reach_the_lock(project: Path, run: Run) -> None:
    path = environment(project, "python=3.11")
    tuna = "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/conda-forge"
    path.write_text(path.read_text().replace("[conda-forge]", f"[{tuna}]"))
    assert run("--file", str(path))[0] == 0
    text = (project / "conda-lock.yml").read_text()
    assert "tuna" not in text and "https://conda.anaconda.org/conda-forge/linux-64/python" in text


@pytest.mark.parametrize(
    ("lines", "options", "build"),
    [
        (("pytorch",), (), "cpu_0"),  # nothing is said of CUDA: the solver's choice, and a note
        (("pytorch=*=cuda*",), ("--cuda", "12.6"), "cuda126_0"),
        (("pytorch=2.4=cuda126*",), (), "cuda126_0"),
        (("pytorch=2.3",), (), "cuda118_0"),
    ],
)
def test_cuda_is_what_the_file_or_the_user_says(
    project: Path, run: Run, lines: tuple[str, ...], options: tuple[str, ...], build: str
) -> None:
    path = environment(project, "python=3.11", *lines)
    code, said = run("--file", str(path), *options)
    assert code == 0, said
    lock = read_lock(project / "conda-lock.yml")
    assert {p.name: p.build for p in lock.packages}["pytorch"] == build
    silent = not options and "cuda" not in lines[0]
    assert any("which CUDA" in note["text"] for note in said["result"]["notes"]) is silent


def test_a_cpu_build_is_refused_where_cuda_was_said(project: Path, run: Run) -> None:
    path = environment(project, "python=3.11", "pytorch=2.4=cpu*")
    code, said = run("--file", str(path), "--cuda", "12.6")
    assert code == 1 and "is not a CUDA build" in said["error"]["message"]
    assert not (project / "conda-lock.yml").exists()


def test_an_explicit_file_becomes_a_lock_with_the_hashes_of_its_channel(project: Path, run: Run) -> None:
    path = project / "explicit.txt"
    url = f"https://conda.anaconda.org/conda-forge/linux-64/{PYTHON.file}"
    path.write_text(f"# platform: linux-64\n@EXPLICIT\n{url}#{PYTHON.md5}\n")
    code, said = run("--file", str(path))
    assert code == 0, said
    (package,) = read_lock(project / "conda-lock.yml").packages
    assert (package.url, package.sha256) == (url, PYTHON.sha256)
    path.write_text(path.read_text().replace(PYTHON.md5, hashlib.md5(b"other").hexdigest()))
    code, said = run("--file", str(path))
    assert code == 2 and said["error"]["line"] == 3


def test_a_lock_full_of_mirrors_is_rewritten(project: Path, run: Run) -> None:
    assert run("small")[0] == 0
    path = project / "environments" / "small" / "conda-lock.yml"
    own = path.read_text()
    theirs = project / "theirs-lock.yml"
    theirs.write_text(
        own.replace("https://conda.anaconda.org/", "https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud/")
    )
    code, said = run("--canonicalise", str(theirs), "-o", "clean.yml")
    assert code == 0 and said["result"]["notes"]
    assert (project / "clean.yml").read_text() == own
    assert run("--canonicalise", str(theirs))[0] == 0
    assert theirs.read_text() == own


def test_a_file_that_cannot_be_locked_is_refused_with_its_line(project: Path, run: Run) -> None:
    path = environment(project, "python=3.11", "pip", "pip: [-r more.txt]")
    code, said = run("--file", str(path))
    assert code == 2 and said["error"]["line"]
    code, said = run("--file", str(project / "nothing.yml"))
    assert code == 2 and "no such file" in said["error"]["message"]


def test_what_has_not_changed_is_not_written(project: Path, run: Run) -> None:
    assert run("small")[0] == 0
    files = [project / "environments" / "small" / name for name in ("environment.yml", "conda-lock.yml")]
    before = [(file.stat().st_ino, file.read_bytes()) for file in files]
    assert run("small")[0] == 0
    assert [(file.stat().st_ino, file.read_bytes()) for file in files] == before
    files[0].write_text("name: mine\n")
    assert run("small")[0] == 0
    assert files[0].read_bytes() == before[0][1]


@pytest.mark.slow
@pytest.mark.skipif(not CHANNELS.is_dir(), reason="the sampled channels are not beside this checkout")
@pytest.mark.parametrize("file", RENDERED, ids=[file.parent.name for file in RENDERED])
def test_every_file_that_envkit_renders_is_one_it_locks(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    monkeypatch.setenv("ENVKIT_MIRROR", CHANNELS.as_uri())
    code, said = run("--file", str(file), "-o", "out.yml")
    assert code == 0 and said["result"]["torch"], said


def test_a_lock_of_something_else_is_not_written_over(
    project: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    path = environment(project, "python=3.11")
    lock = project / "conda-lock.yml"
    other = project / "other.yml"
    other.write_text(path.read_text())
    assert run("--file", str(other))[0] == 0
    before = lock.read_bytes()
    for options in ((), ("--fresh",), ("-o", "conda-lock.yml"), ("--check",)):
        code, said = run("--file", str(path), *options)
        assert code == 2 and "lock of other.yml, not of theirs.yml" in said["error"]["message"]
        assert "-o FILE" in said["error"]["hint"]
    lock.write_text("<<<<<<< ours\n")
    code, said = run("--file", str(path))
    assert code == 2 and "cannot be read as a lock" in said["error"]["message"]
    assert lock.read_bytes() != before and lock.read_text() == "<<<<<<< ours\n"
    assert run("--file", str(path), "-o", "conda-lock.yml", "--fresh")[0] == 0
    assert run("--file", str(path))[0] == 0
    assert run("small")[0] == 0
    code, said = run("--file", "environments/small/environment.yml")
    assert code == 2 and "lock of the variant small" in said["error"]["message"]


def test_the_lock_of_a_file_can_be_checked(project: Path, run: Run) -> None:
    path = environment(project, "python=3.11")

    def state() -> tuple[int, str]:
        code, said = run("--file", str(path), "--check")
        return code, said["result"]["variants"][0]["state"]

    assert state() == (1, "missing")
    assert run("--file", str(path))[0] == 0
    assert state() == (0, "fresh")
    environment(project, "python=3.11", "numpy")
    assert state() == (1, "stale")
    assert not (project / "elsewhere.yml").exists()


def test_a_file_can_be_locked_for_another_platform(project: Path, run: Run) -> None:
    path = environment(project, "python=3.11")
    other = TinyPackage("python", "3.11.9", platform="linux-aarch64")
    write_channel(project.parent / "mirror" / "conda-forge", PYTHON, other)
    assert run("--file", str(path), "--platform", "linux-aarch64", "--platform", "linux-64")[0] == 0
    assert read_lock(project / "conda-lock.yml").platforms == ("linux-64", "linux-aarch64")


def test_check_without_a_variant_is_of_all(project: Path, run: Run) -> None:
    code, said = run("--check")
    assert code == 1
    rows = said["result"]["variants"]
    assert [(row["variant"], row["state"], row["committed"]) for row in rows] == [
        ("small", "missing", True),
        ("kept-by-nobody", "unkept", False),
    ]
    assert run("small")[0] == 0
    assert run("--check")[0] == 0
    assert execute(["render", "--check", "--json"]) == 1


def test_an_ad_hoc_lock_says_where_it_is(project: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["lock", "--torch", "2.4.0", "--cuda", "cpu", "--lang", "en"]) == 0
    assert "written to " in capsys.readouterr().out


def test_quiet_says_less(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = environment(project, "python=3.11", "pytorch")
    assert execute(["lock", "--file", str(path), "-q", "--lang", "en"]) == 0
    told = capsys.readouterr().out
    assert "note" not in told and len(told.splitlines()) == 1
    assert execute(["lock", "--check", "-q", "--lang", "en"]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "small: not locked"


def test_a_head_alone_that_changed_is_told(
    project: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("small")[0] == 0
    path = project / "environments" / "small" / "conda-lock.yml"
    path.write_text(path.read_text().replace(read_lock(path).digest or "-", "a" * 64))
    assert execute(["lock", "small", "--lang", "en"]) == 0
    assert "same packages; the lock's head was rewritten" in capsys.readouterr().out
    assert execute(["lock", "small", "--lang", "en"]) == 0
    assert "small: unchanged, torch 2.4.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("numpy=1.26",), "numpy 1.26 is the newest that `numpy 1.26.*` allows; there is 2.0"),
        (("numpy", "old"), "old 1.0 needs numpy <2, so numpy stays at 1.26"),
        (("shy",), "shy stays at 1.0: 2.0 needs python >=3.12"),
    ],
)
def test_what_holds_a_package_is_named(
    project: Path, run: Run, lines: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = environment(project, "python=3.11", *lines)
    old = TinyPackage("old", depends=["numpy <2"])
    shy = [TinyPackage("shy"), TinyPackage("shy", "2.0", depends=["python >=3.12"])]
    write_channel(project.parent / "mirror" / "conda-forge", PYTHON, *NUMPY, old, *shy)
    assert run("--file", str(path))[0] == 0
    code, said = run("--file", str(path), "--update", "shy" if "shy" in lines else "numpy")
    assert (code, said["result"]["held"]) == (0, [reason])


def test_hashes_that_a_file_lacks_are_told_of(project: Path, run: Run) -> None:
    path = project / "explicit.txt"
    url = f"https://conda.anaconda.org/conda-forge/linux-64/{PYTHON.file}"
    path.write_text(f"# platform: linux-64\n@EXPLICIT\n{url}\n")
    code, said = run("--file", str(path))
    assert code == 0, said
    assert any("sha256 of 1 packages" in note["text"] for note in said["result"]["notes"])
    head = (project / "conda-lock.yml").read_text()
    assert "hashes that it lacks" in head and "packages and hashes" not in head
    path.write_text(f"# platform: linux-64\n@EXPLICIT\n{url}#sha256:{PYTHON.sha256}\n")
    assert run("--file", str(path))[0] == 0
    assert "packages and hashes that stand there" in (project / "conda-lock.yml").read_text()
