"""Whether a lock still fits, told from its head alone; and what changed where it does not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

import envkit
from envkit.errors import InputError
from envkit.lock import LockState, check, lock_path, read_head, read_lock
from envkit.matrix import Axes, read_matrix, select
from envkit.model import VirtualPackage
from envkit.render import digest

PROJECT = Path(__file__).parents[2]
MATRIX = read_matrix(PROJECT / "environments" / "matrix.yaml")
NAMES = [variant.name for variant in MATRIX.variants if MATRIX.commits(variant)]


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
    command = ["git", *identity, "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the shipped project, in a git repository of its own."""
    root = tmp_path / "project"
    for folder in ("environments", "templates"):
        shutil.copytree(PROJECT / folder, root / folder)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "as shipped")
    return root


def state(root: Path, name: str = "py311-cpu") -> LockState:
    matrix = read_matrix(root / "environments" / "matrix.yaml")
    return check(root, matrix, select(matrix, Axes(name=name)))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def edit_matrix(root: Path, old: str, new: str) -> None:
    edit(root / "environments" / "matrix.yaml", old, new)


def render_again(root: Path, name: str = "py311-cpu") -> None:
    from envkit.render import environment_file, render

    matrix = read_matrix(root / "environments" / "matrix.yaml")
    variant = select(matrix, Axes(name=name))
    environment_file(root, variant).write_text(render(matrix, variant).text, encoding="utf-8")


def lock_of(root: Path, name: str = "py311-cpu") -> Path:
    return root / "environments" / name / "conda-lock.yml"


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_locks_fit(name: str) -> None:
    found = state(PROJECT, name)
    assert (found.state, found.reason, found.diff, found.hint) == ("fresh", "", "", "")
    assert found.path == lock_of(PROJECT, name)


def test_only_the_head_of_a_lock_is_looked_at(project: Path) -> None:
    path = lock_of(project)
    head = path.read_bytes().split(b"\npackage:\n")[0]
    path.write_bytes(head + b"\npackage:\n" + b"\xff{[ this is no YAML\n" * 1000)
    assert state(project).state == "fresh"


def test_all_locks_are_checked_in_a_third_of_a_second_without_the_engines() -> None:
    program = (
        "import sys, time, envkit.cli.lock\n"
        "from envkit.up import project\n"
        "from envkit.lock import check\n"
        "began = time.process_time()\n"
        "root, matrix = project()\n"
        "kept = [variant for variant in matrix.variants if matrix.commits(variant)]\n"
        "states = {check(root, matrix, variant).state for variant in kept}\n"
        "seconds = time.process_time() - began\n"
        "heavy = [name for name in sys.modules if name.split('.')[0] in"
        " ('conda_lock', 'rattler', 'httpx', 'rich', 'pydantic')]\n"
        "print(states, heavy, seconds)\n"
    )
    seconds = []
    for _attempt in range(3):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True)
        told, _space, took = done.stdout.strip().rpartition(" ")
        assert told == "{'fresh'} []"
        seconds.append(float(took))
    assert min(seconds) < 0.3


def test_another_version_of_envkit_or_conda_lock_makes_no_lock_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envkit, "__version__", "99.0")
    monkeypatch.setitem(sys.modules, "conda_lock", None)
    assert {state(PROJECT, name).state for name in NAMES} == {"fresh"}


def test_the_digest_is_the_same_for_ever() -> None:
    packages = {
        "osx-arm64": (VirtualPackage(name="__osx", version="11.0"),),
        "linux-64": (
            VirtualPackage(name="__glibc", version="2.17"),
            VirtualPackage(name="__archspec", version="1", build="x86_64"),
        ),
    }
    text = "name: x\nchannels:\n  - conda-forge\n  - nodefaults\ndependencies:\n  - python=3.11\n"
    made = digest(text, ("conda-forge",), packages)
    assert made == "950e9b341d304c94d4e95465318b0a70ba53066977157f1beeddd201e503c785"


def test_a_change_that_is_not_rendered_yet_is_shown_as_a_diff(project: Path) -> None:
    edit_matrix(project, "conda: [numpy, pip]", "conda: [numpy, pip, tqdm]")
    found = state(project)
    assert found.state == "stale"
    assert found.reason == "since it was made: environment.yml changed (+1 -0 lines)"
    assert found.diff.splitlines()[:2] == [
        "--- environment.yml (as locked)",
        "+++ environment.yml (as the matrix renders it)",
    ]
    assert "\n+  - tqdm" in found.diff
    assert "envkit lock py311-cpu" in found.hint


def test_a_change_that_is_rendered_already_is_found_in_git(project: Path) -> None:
    edit_matrix(project, "conda: [numpy, pip]", "conda: [numpy, pip, tqdm]")
    render_again(project)
    git(project, "commit", "-qam", "rendered, not locked")
    edit_matrix(project, "conda: [numpy, pip, tqdm]", "conda: [numpy, pip, tqdm, rich]")
    render_again(project)
    found = state(project)
    assert (found.state, found.reason) == (
        "stale",
        "since it was made: environment.yml changed (+2 -0 lines)",
    )
    assert "(as locked)" in found.diff


def test_without_git_it_says_that_the_text_is_gone(project: Path) -> None:
    edit_matrix(project, "conda: [numpy, pip]", "conda: [numpy, pip, tqdm]")
    render_again(project)
    shutil.rmtree(project / ".git")
    found = state(project)
    assert (found.state, found.diff) == ("stale", "")
    assert "not here any more" in found.reason


def test_virtual_packages_alone_are_named(project: Path) -> None:
    edit_matrix(project, 'glibc: "2.17"  ', 'glibc: "2.34"  ')
    found = state(project)
    assert (found.state, found.diff) == ("stale", "")
    assert found.reason == "since it was made: __glibc was 2.17, now 2.34 (linux-64, linux-aarch64)"
    assert state(project, "py311-cu126").state == "fresh", "its source sets a glibc of its own"


def test_text_and_virtual_packages_are_told_apart(project: Path) -> None:
    edit_matrix(project, 'glibc: "2.17"  ', 'glibc: "2.28"  ')
    edit_matrix(project, "conda: [numpy, pip]", "conda: [numpy, pip, tqdm]")
    assert state(project, "py311-cu118").reason == (
        "since it was made: environment.yml changed (+1 -0 lines); __glibc was 2.17, now 2.28 (linux-64)"
    )


def test_channels_are_named(project: Path) -> None:
    edit_matrix(project, "[pytorch, nvidia, conda-forge]", "[nvidia, pytorch, conda-forge]")
    found = state(project, "py311-cu118")
    assert "channels were pytorch, nvidia, conda-forge, now nvidia, pytorch, conda-forge" in found.reason
    assert "\n+  - nvidia" in found.diff


def test_platforms_are_named(project: Path) -> None:
    edit_matrix(project, "cpu: [linux-64, linux-aarch64, osx-arm64, win-64]", "cpu: [linux-64, osx-arm64]")
    found = state(project)
    assert (found.state, found.diff) == ("stale", "")
    assert found.reason == (
        "since it was made: "
        "platforms were linux-64, linux-aarch64, osx-arm64, win-64, now linux-64, osx-arm64"
    )


def test_a_lock_without_our_digest_is_stale(project: Path) -> None:
    path = lock_of(project)
    text = path.read_text()
    custom = text[text.index("  custom_metadata:") : text.index("package:")]
    path.write_text(text.replace(custom, ""))
    found = state(project)
    assert found.state == "stale"
    assert "envkit did not make it" in found.reason


def test_no_lock_yet(project: Path) -> None:
    lock_of(project).unlink()
    found = state(project)
    assert (found.state, found.hint) == ("missing", "run `envkit lock py311-cpu`")


@pytest.mark.parametrize(
    ("change", "reason", "has_diff"),
    [
        (lambda file: edit(file, "  - numpy\n", "  - numpy<2\n"), "is not what the matrix renders", True),
        (
            lambda file: file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n")),
            "in line ends only",
            False,
        ),
        (lambda file: file.unlink(), "environment.yml is missing", False),
        (lambda file: file.write_bytes(b"name: \xff\n"), "not UTF-8", False),
    ],
)
def test_a_file_that_is_not_the_rendering_is_told(project: Path, change, reason: str, has_diff: bool) -> None:
    change(project / "environments" / "py311-cpu" / "environment.yml")
    found = state(project)
    assert found.state == "unrendered"
    assert reason in found.reason
    assert bool(found.diff) == has_diff
    assert "envkit render py311-cpu" in found.hint


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (b"", "empty"),
        (b"<<<<<<< HEAD\nversion: 1\n=======\n", ""),
        (b"version: 2\nmetadata: {}\npackage: []\n", "version"),
        (b"version: 1\nmetadata:\n  platforms: 7\npackage:\n", "metadata.platforms"),
        (b"\xff\xfe\x00v", "UTF-8"),
    ],
)
def test_what_is_no_lock_is_unreadable(project: Path, content: bytes, fragment: str) -> None:
    lock_of(project).write_bytes(content)
    found = state(project)
    assert found.state == "unreadable"
    assert fragment in found.reason


def json_layout(text: str) -> str:
    return json.dumps(yaml.safe_load(text))


def packages_first(text: str) -> str:
    return yaml.safe_dump(dict(reversed(yaml.safe_load(text).items())), sort_keys=False)


@pytest.mark.parametrize(
    "layout",
    [
        json_layout,
        packages_first,
        lambda text: yaml.safe_dump(yaml.safe_load(text), sort_keys=True),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\npackage:\n", '\n"package":\n'),
        lambda text: text.replace("\nversion: 1\n", "\n---\nversion: 1\n"),
        lambda text: text.replace("\nversion: 1\n", "\n" + "# a long preface\n" * 1000 + "version: 1\n"),
    ],
)
def test_an_odd_layout_is_read_as_well(project: Path, layout) -> None:
    path = lock_of(project, "py311-cu118")
    text = layout(path.read_text(encoding="utf-8"))
    path.write_bytes(text.encode())
    lock, head = read_lock(path), read_head(path)
    assert (head.digest, head.channels, head.platforms) == (lock.digest, lock.channels, lock.platforms)
    assert state(project, "py311-cu118").state == "fresh"


def test_a_lock_that_is_not_listed_lies_in_the_state_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    matrix = read_matrix(project / "environments" / "matrix.yaml")
    variant = select(matrix, Axes(name="py310-cpu"))
    found = check(project, matrix, variant)
    assert (found.state, found.path) == ("unkept", lock_path(project, variant, listed=False))
    found.path.parent.mkdir(parents=True)
    shutil.copy(lock_of(project), found.path)
    other = check(project, matrix, variant)
    assert (other.state, other.diff) == ("stale", "")


def test_many_stale_locks_are_explained_soon(project: Path) -> None:
    edit_matrix(project, "conda: [numpy, pip]", "conda: [numpy, pip, tqdm]")
    for name in NAMES:
        render_again(project, name)
    began = time.process_time()
    reasons = {state(project, name).reason for name in NAMES}
    assert time.process_time() - began < 3
    assert reasons == {"since it was made: environment.yml changed (+1 -0 lines)"}


def test_a_state_as_json(project: Path) -> None:
    edit_matrix(project, "conda: [numpy, pip]", "conda: [numpy, pip, tqdm]")
    row = json.loads(json.dumps(state(project).to_json()))
    assert row.keys() == {"variant", "path", "state", "fresh", "reason", "diff", "hint"}
    assert (row["variant"], row["state"], row["fresh"]) == ("py311-cpu", "stale", False)


def test_a_template_that_fails_is_an_error(project: Path) -> None:
    (project / "templates" / "environment.yml.j2").write_text("name: {{ nonsense }}\n")
    with pytest.raises(InputError, match="nonsense"):
        state(project)
