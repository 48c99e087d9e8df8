"""Finding environments, and seeing whether one is what a lock asks for."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.errors import Error, InputError
from envkit.install import is_current, is_environment, names, read_environment, remove


def test_current_and_fast(environment, channel):
    lock = channel.lock()
    assert is_current(environment, lock)
    began = time.perf_counter()
    for _ in range(20):
        is_current(read_environment("tiny"), lock)
    assert (time.perf_counter() - began) / 20 < 0.05


@pytest.mark.parametrize(
    "damage",
    [
        lambda prefix: (prefix / "conda-meta" / "greeting-1.0-0.json").unlink(),
        lambda prefix: (prefix / "conda-meta" / "other-1.0-0.json").write_text("{}"),
        lambda prefix: (prefix / "bin" / "python").unlink(),
        lambda prefix: (prefix / "conda-meta" / "envkit").unlink(),
        lambda prefix: (prefix / "conda-meta" / "envkit").write_text("{"),
    ],
    ids=["record gone", "extra record", "python gone", "marker gone", "marker damaged"],
)
def test_damaged_is_not_current(environment, channel, damage):
    damage(environment.prefix)
    assert not is_current(environment, channel.lock())


def test_another_lock_is_not_current(environment, channel):
    lock = channel.lock()
    lock.path.write_text(lock.path.read_text() + "# changed\n")
    assert not is_current(environment, lock)
    assert not is_current(environment, replace(lock, path=Path("/nowhere/conda-lock.yml")))


def test_by_name_and_by_path(environment, monkeypatch):
    assert read_environment("tiny") == environment
    assert read_environment(str(environment.prefix)) == environment
    monkeypatch.chdir(environment.prefix)
    assert read_environment(".") == environment
    assert read_environment("../tiny/") == environment
    assert names() == ("tiny",)


def test_not_found_names_the_nearest(environment, monkeypatch, tmp_path):
    with pytest.raises(InputError, match="no environment tinny") as caught:
        read_environment("tinny")
    assert "did you mean tiny" in caught.value.hint
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "none"))
    with pytest.raises(InputError) as caught:
        read_environment("tiny")
    assert "envkit up" in caught.value.hint
    with pytest.raises(InputError, match="cannot be the name"):
        read_environment("..x")


def test_an_environment_of_conda(tmp_path):
    (tmp_path / "theirs" / "conda-meta").mkdir(parents=True)
    with pytest.raises(Error, match="half-made"):
        read_environment(str(tmp_path / "theirs"))
    (tmp_path / "theirs" / "conda-meta" / "history").touch()
    found = read_environment(str(tmp_path / "theirs"))
    assert (found.name, found.asked, found.lock_sha256) == ("theirs", None, None)
    with pytest.raises(InputError, match="not an environment that envkit made") as caught:
        remove(found)
    assert "conda env remove" in caught.value.hint


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 2}', '{"schema": 1}', '{"schema": 1, "variant": 3}'])
def test_a_damaged_marker(environment, text):
    (environment.prefix / "conda-meta" / "envkit").write_text(text)
    with pytest.raises(Error, match="cannot be read") as caught:
        read_environment("tiny")
    assert "envkit install" in caught.value.hint
    assert not is_environment(environment.prefix)
    assert names() == ()


def test_a_damaged_marker_can_be_installed_over(environment, channel, installer):
    (environment.prefix / "conda-meta" / "envkit").write_text("{")
    assert is_current(installer(channel.lock()), channel.lock())


def test_remove(environment, installer):
    listing = Path.home() / ".conda" / "environments.txt"
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text(f"/somewhere/else\n{environment.prefix}\n")
    remove(environment)
    assert not environment.prefix.exists()
    assert installer.beside() == []
    assert listing.read_text() == "/somewhere/else\n"
    assert names() == ()
