"""A variant of the team's matrix into a bundle, and the bundle into an environment somewhere else."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from small_project import OTHER, VARIANT, Project
from smallbundle import pip_sees, write_shelf


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shelf(tmp_path_factory.mktemp("shelf") / "wheels", real=False)


@pytest.fixture
def ready(project: Project, shelf: Path) -> Project:
    project.environ |= pip_sees(shelf)
    return project


def test_a_variant_goes_and_comes(ready: Project, tmp_path: Path) -> None:
    made = ready.ok("bundle", VARIANT, "-o", str(tmp_path / "env.tar"))
    assert made["name"] == VARIANT
    assert made["host_bound"] is False
    with tarfile.open(tmp_path / "env.tar") as bundle:
        found = {member.name: bundle.extractfile(member) for member in bundle}
        lock, spec = (found[name].read() for name in ("conda-lock.yml", "environment.yml"))
    assert lock == ready.lock.read_bytes()
    assert spec == (ready.lock.parent / "environment.yml").read_bytes()
    there = Project(tmp_path / "there", "official")
    nowhere = tmp_path / "no" / "project"
    nowhere.mkdir(parents=True)
    done = there.ok("install", "--from", str(tmp_path / "env.tar"), "--sha256", made["sha256"], cwd=nowhere)
    assert Path(done["prefix"]) == there.prefix(VARIANT)
    assert (there.prefix(VARIANT) / "conda-meta" / "envkit-lock.yml").read_bytes() == lock


def test_axes_choose_and_words_are_said(ready: Project, tmp_path: Path) -> None:
    done = ready.call("bundle", "--with", "vision", "-o", str(tmp_path / "env.tar"), "--name", "mine")
    assert done.code == 0, done.err
    digest = next(line.split()[1] for line in done.out.splitlines() if line.startswith("sha256 "))
    assert f"--sha256 {digest}" in done.out
    with tarfile.open(tmp_path / "env.tar") as bundle:
        contents = json.load(bundle.extractfile("bundle.json"))
        assert any("imageio" in row["path"] for row in contents["members"])
    assert contents["name"] == "mine"
    assert OTHER


def test_same_environment_as_over_the_mirror(ready: Project, installed: Project, tmp_path: Path) -> None:
    """conda-meta does not say where the packages came from."""
    ready.ok("bundle", VARIANT, "-o", str(tmp_path / "env.tar"))
    there = Project(tmp_path / "there", "official")
    there.ok("install", "--from", str(tmp_path / "env.tar"))
    for path in (installed.prefix(VARIANT) / "conda-meta").glob("*.json"):
        ours = (there.prefix(VARIANT) / "conda-meta" / path.name).read_text()
        assert json.loads(ours)["url"] == json.loads(path.read_text())["url"]
        assert "bundles" not in ours


def test_an_installed_environment_is_bundled_from_its_own_lock(ready: Project, tmp_path: Path) -> None:
    """Under a name that the wheel channel gives, and under one that nobody knows."""
    output = str(tmp_path / "env.tar")
    for name in ("wheels-py311-cpu", "strangers"):
        hint = ready.fails("bundle", name, "-o", output, code=2)["hint"]
        assert "--lock PREFIX/conda-meta/envkit-lock.yml" in hint
        ready.ok("install", "--lock", str(ready.lock), "--name", name)
        assert ready.ok("bundle", name, "-o", output)["name"] == name
        with tarfile.open(output) as bundle:
            assert bundle.extractfile("conda-lock.yml").read() == ready.lock.read_bytes()


def test_offline_hints_at_no_bundle(ready: Project, tmp_path: Path) -> None:
    text = ready.lock.read_text()
    strange = tmp_path / "strange.yml"
    strange.write_text(text)
    hint = ready.fails(
        "bundle", "--lock", str(strange), "--offline", "--mirror", "official", "-o", str(tmp_path / "e.tar"),
        code=3,
    )["hint"]  # fmt: skip
    assert "--offline" in hint
    assert "--from" not in hint


def test_what_cannot_be_bundled(ready: Project, tmp_path: Path) -> None:
    output = str(tmp_path / "env.tar")
    ready.fails("bundle", "nothing-like-it", "-o", output, code=2)
    ready.fails("bundle", VARIANT, "-o", str(tmp_path), code=2)
    ready.fails("bundle", VARIANT, "--platform", "osx-arm64", "-o", output, code=3)
    ready.fails("bundle", VARIANT, "--lock", str(ready.lock), "-o", output, code=2)
    ready.fails("bundle", VARIANT, code=2)
    ready.matrix.write_text(ready.matrix.read_text().replace('torch: "2.4.*"}', 'torch: ">=2.4"}'))
    ready.fails("bundle", VARIANT, "-o", output, code=1)
    assert not (tmp_path / "env.tar").exists()
