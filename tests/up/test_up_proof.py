"""Only a validation that passed in full lets the next one be quick, and only for that installation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_project import Project

from envkit.model import Environment
from envkit.up import proof


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    prefix = tmp_path / "prefix"
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "conda-meta" / "envkit").write_text("{}")
    return Environment(name="x", prefix=prefix, lock_sha256="a" * 64)


def test_a_proof_is_of_one_installation(environment: Environment) -> None:
    assert not proof.is_proven(environment)
    proof.remember(environment)
    assert proof.is_proven(environment)
    assert not proof.is_proven(replace(environment, lock_sha256="b" * 64))
    marker = environment.prefix / "conda-meta" / "envkit"
    marker.rename(marker.with_name("old"))
    marker.write_text("{}")
    assert not proof.is_proven(environment), "installed anew"


def test_a_proof_that_cannot_be_kept_is_no_error(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVKIT_HOME", "/proc/no")
    proof.remember(environment)
    assert not proof.is_proven(environment)


def test_what_failed_is_validated_in_full_again(project: Project) -> None:
    first, second = (project.call("up", "--json") for _time in range(2))
    assert (first.code, second.code) == (1, 1), "its torch is none"
    assert first.result["installed"] and not second.result["installed"]
    ids = [[check["id"] for check in done.result["report"]["checks"]] for done in (first, second)]
    assert ids[0] == ids[1]
    assert "loader.spawn" in ids[1]
