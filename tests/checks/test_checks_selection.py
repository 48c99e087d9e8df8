"""Which checks are run, shown and refused."""

from __future__ import annotations

import pytest

from envkit.checks import CATALOGUE
from envkit.checks.selection import choose
from envkit.errors import InputError


def test_all_of_them_by_default() -> None:
    chosen = choose(CATALOGUE)
    assert chosen.run == CATALOGUE
    assert chosen.shown == {info.id for info in CATALOGUE}


def test_quick_runs_no_interpreter_of_its_own() -> None:
    chosen = choose(CATALOGUE, quick=True)
    assert {info.job.where.name for info in chosen.run} == {"BARE", "HERE", "WARM"}
    assert {"imports.torch", "shm.size", "fds.limit", "tmpdir.usable", "loader.fork"} <= chosen.shown
    assert {info.id for info in chosen.run} == chosen.shown


def test_an_area_and_an_id_bring_what_they_need() -> None:
    chosen = choose(CATALOGUE, only=["shm", "loader.spawn"])
    assert chosen.shown == {"shm.size", "shm.writable", "shm.capacity", "loader.spawn"}
    ids = [info.id for info in chosen.run]
    assert set(ids) - chosen.shown == {"interpreter.runs", "imports.torch", "tmpdir.usable", "workers.spawn"}
    assert ids == [info.id for info in CATALOGUE if info.id in ids]


def test_what_is_skipped_is_not_even_run_for_others() -> None:
    chosen = choose(CATALOGUE, only=["loader"], skip=["loader.fork", "tmpdir"])
    assert chosen.shown == {"loader.spawn", "loader.forkserver"}
    assert "tmpdir.usable" not in {info.id for info in chosen.run}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("shm.sise", "shm.size"), ("loaders", "loader"), ("sh", "shm"), ("zzzz", "areas are cuda, fds")],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, hint: str) -> None:
    for arguments in ({"only": [name]}, {"skip": [name]}):
        with pytest.raises(InputError) as caught:
            choose(CATALOGUE, **arguments)  # type: ignore[arg-type]
        assert name in caught.value.message
        assert hint in caught.value.hint


def test_nothing_left_to_run_is_refused() -> None:
    with pytest.raises(InputError):
        choose(CATALOGUE, only=["fds"], skip=["fds.limit"])
