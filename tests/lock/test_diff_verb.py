"""`envkit diff`: what each side may be, in real repositories and real prefixes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from envkit.cli.frame import Outcome, envkit, execute
from envkit.errors import Error, InputError
from envkit.install import marker
from envkit.model import Variant

PROJECT = Path(__file__).parents[2]
FORGE = "https://conda.anaconda.org/conda-forge"
WHEELS = "https://download.pytorch.org/whl/cpu"

Row = tuple[str, str, str, str]
"""name, version, build and platform of a conda package."""


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
    command = ["git", *identity, "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def diff(*words: str) -> Outcome:
    outcome = envkit.main(["diff", *words], prog_name="envkit", standalone_mode=False)
    assert isinstance(outcome, Outcome)
    return outcome


def entry(name: str, version: str, build: str, platform: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "manager": "conda",
        "platform": platform,
        "dependencies": {},
        "url": f"{FORGE}/{platform}/{name}-{version}-{build}.conda",
        "hash": {"md5": "5" * 32, "sha256": f"{abs(hash((name, version, build, platform))):064x}"},
        "category": "main",
        "optional": False,
    }


def wheel(name: str, version: str, platform: str, category: str = "main") -> dict[str, Any]:
    return entry(name, version, "0", platform) | {
        "manager": "pip",
        "url": f"{WHEELS}/{name}-{version}-py3-none-any.whl",
        "category": category,
    }


def write_lock(path: Path, *rows: Row, wheels: tuple[dict[str, Any], ...] = ()) -> Path:
    packages = [*(entry(*row) for row in rows), *wheels]
    platforms = sorted({str(package["platform"]) for package in packages})
    document = {
        "version": 1,
        "metadata": {
            "content_hash": dict.fromkeys(platforms, "0" * 64),
            "channels": [{"url": "conda-forge", "used_env_vars": []}],
            "platforms": platforms,
            "sources": ["environment.yml"],
        },
        "package": packages,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


NUMPY_OLD: Row = ("numpy", "1.26.4", "h1_0", "linux-64")
NUMPY_NEW: Row = ("numpy", "2.0.1", "h1_0", "linux-64")
PYTHON: Row = ("python", "3.11.8", "h1_0", "linux-64")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose project is a subfolder: py311-cpu was locked, then moved on, then edited."""
    root = tmp_path / "repository" / "envs"
    shutil.copytree(PROJECT / "environments", root / "environments")
    lock = root / "environments" / "py311-cpu" / "conda-lock.yml"
    git(root.parent, "init", "-q")
    for number, rows in enumerate([(PYTHON,), (NUMPY_OLD, PYTHON)]):
        write_lock(lock, *rows)
        git(root, "add", ".")
        git(root, "commit", "-qm", f"lock {number}")
    write_lock(lock, NUMPY_NEW, PYTHON)
    monkeypatch.chdir(root)
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    return root


def prefix_of(folder: Path, *rows: Row, variant: str | None = "py311-cpu", name: str = "work") -> Path:
    """A prefix with records as conda writes them; numpy's distribution is conda's own, torch's is pip's."""
    site = folder / "lib" / "python3.11" / "site-packages"
    (folder / "conda-meta").mkdir(parents=True)
    (folder / "conda-meta" / "history").write_text("")
    for package, version, build, platform in rows:
        files = []
        if package == "numpy":
            files = [f"lib/python3.11/site-packages/numpy-{version}.dist-info/METADATA"]
            distribution(site / f"numpy-{version}.dist-info", "numpy", version)
        wanted = entry(package, version, build, platform)
        record = {
            "name": package,
            "version": version,
            "build": build,
            "build_number": 0,
            "subdir": platform,
            "fn": f"{package}-{version}-{build}.conda",
            "url": wanted["url"],
            "channel": f"{FORGE}/{platform}",
            "md5": wanted["hash"]["md5"],
            "depends": ["__glibc >=2.17,<3.0.a0", "python >=3.11,<3.12.0a0", "libzlib"],
            "files": files,
        }
        path = folder / "conda-meta" / f"{package}-{version}-{build}.json"
        path.write_text(json.dumps(record), encoding="utf-8")
    if variant is not None:
        made_for = Variant(
            name=variant,
            python="3.11",
            accelerator="cpu",
            torch="2.7.*",
            source="conda-forge",
            platforms=("linux-64",),
        )
        marker.write(
            folder,
            marker.Marker(
                name=name, platform="linux-64", packages=len(rows), lock_sha256="0" * 64, variant=made_for
            ),
        )
    return folder


def distribution(folder: Path, name: str, version: str, *, url: str = "", sha256: str = "") -> None:
    folder.mkdir(parents=True)
    folder.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nText\n"
    )
    folder.joinpath("INSTALLER").write_text("pip\n")
    if url:
        origin = {"url": url, "archive_info": {"hashes": {"sha256": sha256}}}
        folder.joinpath("direct_url.json").write_text(json.dumps(origin))


def test_one_variant_is_compared_with_its_committed_state(project: Path) -> None:
    outcome = diff("py311-cpu")
    commit = git(project, "rev-parse", "HEAD")[:9]
    assert outcome.text == (
        f"HEAD:py311-cpu ({commit}) -> py311-cpu (environments/py311-cpu/conda-lock.yml)\n"
        "1 up\n\nlinux-64\n  up  numpy  1.26.4 -> 2.0.1"
    )
    assert outcome.code == 0


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (("HEAD~1:py311-cpu", "HEAD:py311-cpu"), "1 added"),
        (("HEAD:py311-cpu", "HEAD~1:py311-cpu"), "1 removed"),
        (("HEAD~1:py311-cpu",), "1 added"),
        (("HEAD:py311-cpu",), "1 up"),
        (("HEAD:envs/environments/py311-cpu/conda-lock.yml", "py311-cpu"), "1 up"),
        (("HEAD:./environments/py311-cpu/conda-lock.yml", "py311-cpu"), "1 up"),
        (("HEAD:./environments/py311-cpu/conda-lock.yml",), "1 up"),
        (("HEAD:envs/environments/py311-cpu/conda-lock.yml",), "1 up"),
        (("environments/py311-cpu/conda-lock.yml",), "1 up"),
        (("environments/py311-cpu",), "1 up"),
        (("py311-cpu", "environments/py311-cpu"), "no difference"),
        (("py311-cpu", "py311-cpu"), "no difference"),
        (("HEAD:py311-cu118", "py311-cu118"), "no difference"),
    ],
)
def test_sides(project: Path, words: tuple[str, ...], changes: str) -> None:
    assert diff(*words).text.splitlines()[1] == changes


def test_from_a_subfolder_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "environments" / "py311-cpu")
    assert "1 up" in diff("HEAD:py311-cpu", "conda-lock.yml").text
    assert "1 up" in diff("HEAD:./conda-lock.yml").text
    assert "1 up" in diff("conda-lock.yml").text


def test_without_arguments_every_lock_is_compared_with_head(project: Path) -> None:
    outcome = diff()
    assert outcome.text == diff("py311-cpu").text
    assert len(outcome.data["diffs"]) == 1
    git(project, "commit", "-qam", "lock 2")
    assert diff().text == "no lock differs"
    assert diff("HEAD~2:", "--platform", "osx-64").text == "no lock differs"
    assert "1 added, " not in diff("HEAD~2:").text
    assert "2.0.1" in diff("HEAD~2:").text


def test_a_lock_that_is_new_or_gone(project: Path) -> None:
    git(project, "rm", "-q", "--cached", "environments/py311-cu118/conda-lock.yml")
    git(project, "commit", "-qm", "gone")
    outcome = diff("py311-cu118")
    assert "nothing (HEAD:py311-cu118" in outcome.text
    assert outcome.text.endswith("linux-64: new, 114 packages")
    (project / "environments/py311-cu121/conda-lock.yml").unlink()
    assert "linux-64: gone, 119 packages" in diff().text


def test_a_file_may_be_of_any_name_and_need_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ENVKIT_PROJECT", raising=False)
    write_lock(tmp_path / "old", NUMPY_OLD)
    write_lock(tmp_path / "new:er", NUMPY_NEW)
    assert "1 up" in diff("old", "new:er").text
    with pytest.raises(InputError, match="cannot be read as a git repository"):
        diff("HEAD:./old", "old")
    with pytest.raises(InputError, match="to be compared"):
        diff()


def test_a_variant_comes_before_a_file_and_an_environment_of_its_name(project: Path, tmp_path: Path) -> None:
    write_lock(project / "py311-cpu", PYTHON)
    prefix_of(tmp_path / "home" / "envs" / "py311-cpu", NUMPY_OLD, PYTHON, name="py311-cpu")
    assert "1 up" in diff("HEAD:py311-cpu", "py311-cpu").text
    assert "1 removed" in diff("HEAD:py311-cpu", "./py311-cpu").text
    assert diff("HEAD:py311-cpu", "env:py311-cpu").text.splitlines()[1] == "no difference"


def test_an_environment_against_a_lock(project: Path, tmp_path: Path) -> None:
    lock = write_lock(
        tmp_path / "made.yml",
        NUMPY_OLD,
        PYTHON,
        ("python", "3.11.8", "h1_0", "osx-arm64"),
        wheels=(wheel("torch", "2.7.0", "linux-64"), wheel("pytest", "8.0", "linux-64", "dev")),
    )
    prefix = prefix_of(tmp_path / "home" / "envs" / "work", NUMPY_OLD, PYTHON)
    site = prefix / "lib/python3.11/site-packages"
    torch = wheel("torch", "2.7.0", "linux-64")
    distribution(
        site / "torch-2.7.0.dist-info", "torch", "2.7.0", url=torch["url"], sha256=torch["hash"]["sha256"]
    )
    outcome = diff(str(lock), "work")
    assert outcome.text.splitlines()[1] == "no difference"
    assert f"environment work ({prefix}: 2 conda packages, 1 from pip)" in outcome.text
    assert [side["kind"] for side in (outcome.data["diffs"][0]["a"], outcome.data["diffs"][0]["b"])] == [
        "lock",
        "environment",
    ]
    shutil.rmtree(site / "torch-2.7.0.dist-info")
    distribution(site / "torch-2.8.0.dist-info", "torch", "2.8.0")
    distribution(site / "Odd_Name-1.dist-info", "Odd_Name", "1")
    text = diff(str(lock), "work").text
    assert "torch (pip)     2.7.0 -> 2.8.0" in text
    assert "Odd_Name (pip)  1" in text


def test_an_environment_alone_is_compared_with_its_variants_committed_lock(
    project: Path, tmp_path: Path
) -> None:
    prefix = prefix_of(tmp_path / "elsewhere", PYTHON)
    assert diff(str(prefix)).text.splitlines()[1] == "1 removed"
    stranger = prefix_of(tmp_path / "stranger", PYTHON, variant=None)
    with pytest.raises(InputError, match="no committed state"):
        diff(str(stranger))
    assert diff(str(prefix), str(stranger)).text.splitlines()[1] == "no difference"


def test_a_record_that_cannot_be_read_is_named(project: Path, tmp_path: Path) -> None:
    prefix = prefix_of(tmp_path / "broken", PYTHON)
    (prefix / "conda-meta" / "numpy-1.json").write_text("{")
    with pytest.raises(InputError, match=r"numpy-1\.json"):
        diff("py311-cpu", str(prefix))


def test_what_a_record_says_cannot_steer_a_terminal(project: Path, tmp_path: Path) -> None:
    prefix = prefix_of(tmp_path / "odd", ("x\x1b[31m", "1", "0", "linux-64"))
    assert "\x1b" not in diff("py311-cpu", str(prefix)).text


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("nosuch:py311-cpu", "py311-cpu"), "no revision 'nosuch'", "git log"),
        (("--", "--output=x:py311-cpu", "py311-cpu"), "no revision", ""),
        (
            ("HEAD:py311-cu999", "py311-cpu"),
            "no environments/py311-cu999/conda-lock.yml at HEAD",
            "py311-cu118",
        ),
        (("HEAD:", "py311-cpu"), "names no lock", "HEAD:VARIANT"),
        (("HEAD:no/such.yml", "py311-cpu"), "no no/such.yml at HEAD", ""),
        (("HEAD:envs/environments/matrix.yaml", "py311-cpu"), "version", ""),
        (("py311-cpuu",), "no variant here, no file and no environment", "py311-cpu"),
        (("https://example.org/conda-lock.yml", "py311-cpu"), "is an address", "download"),
        (("no/such/file.yml", "py311-cpu"), "no such file", ""),
        (("environments", "py311-cpu"), "holds no conda-lock.yml", ""),
        (("env:nothing", "py311-cpu"), "no environment nothing", ""),
        (("py310-cpu", "py311-cpu"), "py310-cpu has no lock yet", "env:py310-cpu"),
        (("py311-cpu", "py311-cpu", "--platform", "osx-arm64"), "neither side has packages", "linux-64"),
    ],
)
def test_what_cannot_be_compared_is_named(
    project: Path, words: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(InputError) as raised:
        diff(*words)
    assert message in str(raised.value)
    assert hint in raised.value.hint


def test_a_machine_without_git(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Error, match="git is not installed"):
        diff("py311-cpu")
    assert "no difference" in diff("py311-cpu", "environments/py311-cpu").text


def test_a_repository_without_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    write_lock(tmp_path / "a.yml", PYTHON)
    with pytest.raises(InputError, match="no revision 'HEAD'"):
        diff("a.yml")


def test_the_index_and_other_shapes_of_revisions(project: Path) -> None:
    git(project, "add", "environments/py311-cpu/conda-lock.yml")
    assert diff("HEAD:py311-cpu", ":py311-cpu").text.splitlines()[:2] == [
        f"HEAD:py311-cpu ({git(project, 'rev-parse', 'HEAD')[:9]}) -> :py311-cpu (staged)",
        "1 up",
    ]
    assert diff(":").text == "no lock differs"
    with pytest.raises(InputError, match="at the index"):
        diff(":py311-cu999", "py311-cpu")
    git(project, "tag", "v1", "HEAD~1")
    assert diff("v1:py311-cpu").text.splitlines()[1] == "1 added"
    assert diff("HEAD^{/lock 0}:py311-cpu").text.splitlines()[1] == "1 added"
    commit = git(project, "rev-parse", "HEAD").strip()
    assert diff(f"{commit}:py311-cpu").text.splitlines()[1] == "1 up"


def test_one_platform(project: Path) -> None:
    write_lock(Path("a.yml"), NUMPY_OLD, ("numpy", "1.26.4", "h2_0", "osx-arm64"))
    write_lock(Path("b.yml"), NUMPY_NEW, ("numpy", "1.26.4", "h2_1", "osx-arm64"))
    assert diff("a.yml", "b.yml").text.splitlines()[1] == "1 up, 1 rebuilt"
    assert diff("a.yml", "b.yml", "--platform", "osx-arm64").text.splitlines()[1] == "1 rebuilt"


def test_exit_codes_and_forms(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["diff", "py311-cpu"]) == 0
    assert execute(["diff", "py311-cpu", "--exit-code"]) == 1
    assert execute(["diff", "py311-cpu", "environments/py311-cpu", "--exit-code"]) == 0
    capsys.readouterr()
    assert execute(["diff", "py311-cpu", "-q"]) == 0
    assert capsys.readouterr().out == "py311-cpu (environments/py311-cpu/conda-lock.yml): 1 up\n"
    assert execute(["diff", "py311-cpu", "--markdown"]) == 0
    assert "| up | numpy | 1.26.4 → 2.0.1 |" in capsys.readouterr().out
    assert execute(["diff", "py311-cpu", "--json", "--exit-code"]) == 1
    document = json.loads(capsys.readouterr().out)
    (one,) = document["result"]["diffs"]
    assert (document["result"]["different"], one["counts"]["up"]) == (True, 1)
    assert execute(["diff", "nosuch:x", "py311-cpu"]) == 2
    assert "hint:" in capsys.readouterr().err


def test_a_pull_request_is_shown_no_place_of_this_machine(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lock(tmp_path / "elsewhere" / "their_lock.yml", NUMPY_OLD)
    prefix_of(tmp_path / "home" / "envs" / "work", NUMPY_OLD)
    lock = project / "environments" / "py311-cpu" / "conda-lock.yml"
    for words, title in (
        ((str(lock), "py311-cpu"), "envs/environments/py311-cpu/conda-lock.yml → py311-cpu (envs/env"),
        ((str(tmp_path / "elsewhere" / "their_lock.yml"), "py311-cpu"), "`elsewhere/their_lock.yml` → "),
        (("env:work", "py311-cpu"), "environment work (1 conda packages, 0 from pip) → py311-cpu"),
    ):
        assert execute(["diff", *words, "--markdown"]) == 0
        told = capsys.readouterr().out
        assert told.startswith(f"### {title}") and str(tmp_path) not in told


def test_a_repository_of_someone_else_is_told_in_gits_words(project: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(project.parent / ".git", 12345, 12345)
    os.chown(project.parent, 12345, 12345)
    os.chown(project, 12345, 12345)
    try:
        with pytest.raises(InputError, match="dubious ownership"):
            diff("py311-cpu")
    finally:
        for folder in (project.parent / ".git", project.parent, project):
            os.chown(folder, 0, 0)


def test_an_address_is_refused_without_its_password() -> None:
    with pytest.raises(InputError) as caught:
        diff("https://u:hunter2@repo.example/conda-lock.yml", "py311-cpu")
    assert "repo.example" in str(caught.value)
    assert "hunter2" not in str(caught.value)
