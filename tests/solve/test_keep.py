"""Locking again: pins stay, an update moves what it must and nothing else, and what is gone is told."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from small_specs import PYTHON, make_spec
from tinychannel import TinyPackage, write_channel

from envkit import fetch
from envkit.errors import InputError
from envkit.lock import diff
from envkit.model import Lock, Spec
from envkit.progress import Observer
from envkit.solve import write_lock

Locked = Callable[..., Lock]

NEW_PYTHON = TinyPackage("python", "3.12.4", "h1_0_cpython")
NUMPY = [TinyPackage("numpy", version, depends=["python"]) for version in ("1.26", "2.0", "2.1")]
# pandas 2.1 cannot live with NumPy 2, and 2.3 needs a newer pytz.
PANDAS = [
    TinyPackage("pandas", "2.1", depends=["numpy <2", "pytz"]),
    TinyPackage("pandas", "2.2", depends=["numpy >=1.26", "pytz"]),
    TinyPackage("pandas", "2.3", depends=["numpy >=2.1", "pytz >=2025"]),
]
PYTZ = [TinyPackage("pytz", version) for version in ("2024", "2025")]
IDLE = [TinyPackage("idle", version) for version in ("1.0", "1.1")]


class Listener(Observer):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def channel(tmp_path: Path) -> Callable[..., None]:
    """Puts packages, and no others, into the channel."""

    def fill(*packages: TinyPackage, name: str = "conda-forge") -> None:
        write_channel(tmp_path / "mirror" / name, *packages)

    return fill


@pytest.fixture
def locked(tmp_path: Path) -> Locked:
    """Locks into one file; each call sees the channel as it is now."""
    number = itertools.count()

    def lock(spec: Spec, **how: object) -> Lock:
        return write_lock(
            spec,
            tmp_path / "conda-lock.yml",
            routes=fetch.routes((tmp_path / "mirror").as_uri()),
            cache=tmp_path / f"cache{next(number)}",
            **how,  # type: ignore[arg-type]
        )

    return lock


def versions(lock: Lock, platform: str = "linux-64") -> dict[str, str]:
    return {package.name: package.version for package in lock.on(platform)}


def changed(before: Lock, after: Lock) -> list[str]:
    return [change.package.name for change in diff(before.packages, after.packages).changes]


def old_world(channel: Callable[..., None], *more: TinyPackage) -> None:
    channel(PYTHON, NUMPY[0], PANDAS[0], PYTZ[0], IDLE[0], *more)


def new_world(channel: Callable[..., None], *more: TinyPackage) -> None:
    channel(PYTHON, NEW_PYTHON, *NUMPY, *PANDAS, *PYTZ, *IDLE, *more)


SPEC = make_spec("python=3.11", "numpy", "pandas", "idle")


def test_an_unchanged_spec_keeps_the_same_bytes(
    tmp_path: Path, channel: Callable[..., None], locked: Locked
) -> None:
    old_world(channel)
    locked(SPEC)
    before = (tmp_path / "conda-lock.yml").read_bytes()
    new_world(channel)
    locked(SPEC)
    assert (tmp_path / "conda-lock.yml").read_bytes() == before
    assert versions(locked(SPEC, fresh=True)) == {
        "python": "3.11.9", "numpy": "2.1", "pandas": "2.3", "pytz": "2025", "idle": "1.1",
    }  # fmt: skip


def test_an_update_moves_what_it_must_and_python_never(channel: Callable[..., None], locked: Locked) -> None:
    old_world(channel)
    before = locked(make_spec("python", "numpy", "pandas", "idle"))
    new_world(channel)
    idle = locked(make_spec("python", "numpy", "pandas", "idle"), update=["idle"])
    assert changed(before, idle) == ["idle"]
    # NumPy 2 cannot be had with pandas 2.1; of the newer ones 2.2 would do, and pytz would stay.
    after = locked(make_spec("python", "numpy", "pandas", "idle"), update=["numpy"])
    assert versions(after)["numpy"] == "2.1"
    assert "python" not in changed(before, after)
    assert set(changed(idle, after)) <= {"numpy", "pandas", "pytz"}
    assert versions(after)["idle"] == "1.1"


def test_a_spec_stays_in_force_in_an_update(channel: Callable[..., None], locked: Locked) -> None:
    old_world(channel)
    spec = make_spec("python=3.11", "numpy <2", "pandas")
    before = locked(spec)
    new_world(channel)
    after = locked(spec, update=["python", "numpy"])
    assert changed(before, after) == []
    assert versions(locked(spec, update=["pandas"]))["pandas"] == "2.2"


def test_a_changed_spec_keeps_what_can_stay(channel: Callable[..., None], locked: Locked) -> None:
    old_world(channel)
    before = locked(SPEC)
    new_world(channel)
    after = locked(make_spec("python=3.11", "numpy >=2", "pandas", "idle"))
    assert {"python", "idle"}.isdisjoint(changed(before, after))
    assert versions(after)["numpy"] >= "2.0"
    assert locked(make_spec("python=3.11", "numpy >=2", "pandas")).packages == tuple(
        package for package in after.packages if package.name != "idle"
    )


def test_a_record_that_is_gone_moves_and_that_is_said(channel: Callable[..., None], locked: Locked) -> None:
    old_world(channel)
    locked(SPEC)
    rebuilt = TinyPackage("idle", "1.0", "1")
    channel(PYTHON, *NUMPY, *PANDAS, PYTZ[0], rebuilt, IDLE[1])
    listener = Listener()
    after = locked(make_spec("python=3.11", "numpy", "pandas", "idle", "pytz"), observer=listener)
    assert versions(after)["idle"] == "1.0"
    assert versions(after)["numpy"] == "1.26"
    assert any("idle-1.0-0.conda is no longer in its channel" in note for note in listener.notes)


@pytest.mark.parametrize(
    ("names", "message"),
    [(["nunpy"], "'nunpy' is not in the lock; the nearest are numpy"), (["numpy=2"], "not in the lock")],
)
def test_an_unknown_name_is_an_error(
    channel: Callable[..., None], locked: Locked, names: Sequence[str], message: str
) -> None:
    old_world(channel)
    locked(SPEC)
    with pytest.raises(InputError, match=message):
        locked(SPEC, update=names)


def test_nothing_can_be_updated_where_there_is_no_lock(channel: Callable[..., None], locked: Locked) -> None:
    old_world(channel)
    with pytest.raises(InputError, match="no lock yet"):
        locked(SPEC, update=["numpy"])


def test_a_lock_that_cannot_be_read_is_made_anew(
    tmp_path: Path, channel: Callable[..., None], locked: Locked
) -> None:
    old_world(channel)
    (tmp_path / "conda-lock.yml").write_text("<<<<<<< ours\n")
    listener = Listener()
    assert versions(locked(SPEC, observer=listener))["numpy"] == "1.26"
    assert any("cannot be read and is made anew" in note for note in listener.notes)


def test_torch_moves_to_one_version_on_all_platforms(channel: Callable[..., None], locked: Locked) -> None:
    both = ("linux-64", "linux-aarch64")
    spec = make_spec("pytorch", "idle", platforms=both)

    def torch(version: str, platform: str) -> TinyPackage:
        return TinyPackage("pytorch", version, "cpu_0", platform=platform)

    idle = [TinyPackage("idle", version, platform=platform) for version in ("1.0",) for platform in both]
    channel(*(torch("2.1", platform) for platform in both), *idle)
    locked(spec)
    channel(
        *(torch(version, "linux-64") for version in ("2.1", "2.2", "2.3")),
        *(torch(version, "linux-aarch64") for version in ("2.1", "2.2")),
        *idle,
    )
    after = locked(spec, update=["pytorch"])
    assert {versions(after, platform)["pytorch"] for platform in both} == {"2.2"}
