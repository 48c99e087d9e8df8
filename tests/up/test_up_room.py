"""Whether the disks hold what the wheel channel is about to do, said before anything large comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from envkit.errors import Error, ExitCode
from envkit.progress import Observer
from envkit.up.room import require_room
from envkit.wheels import Wheel


@dataclass
class Heard(Observer):
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)


def wheel(size: int | None, url: str = "https://h.example/torch-2.7.1-py3-none-any.whl") -> Wheel:
    return Wheel(name="torch", version="2.7.1", url=url, sha256="0" * 64, size=size)


def test_what_is_needed_and_free_is_told(tmp_path: Path) -> None:
    heard = Heard()
    require_room([wheel(10_000_000)], tmp_path / "envs" / "x", tmp_path / "cache", heard)
    (note,) = heard.notes
    assert str(tmp_path / "cache") in note
    assert "about 57 MB needed to download, pack and install" in note


def test_gigabytes_that_have_no_room_are_refused_before_they_come(tmp_path: Path) -> None:
    heard = Heard()
    with pytest.raises(Error, match="no room on the disk") as refused:
        require_room([wheel(10**15)], tmp_path / "envs" / "x", tmp_path / "cache", heard)
    assert refused.value.code == ExitCode.ENVIRONMENT
    assert "ENVKIT_CACHE" in refused.value.hint
    assert not heard.notes


def test_a_wheel_on_this_disk_is_not_downloaded(tmp_path: Path) -> None:
    heard = Heard()
    require_room([wheel(10_000_000, "file:///x/torch-2.7.1-py3-none-any.whl")], tmp_path, tmp_path, heard)
    assert "about 47 MB needed" in heard.notes[0]


@pytest.mark.parametrize("size", [None, 0])
def test_nothing_to_say_of_nothing(tmp_path: Path, size: int | None) -> None:
    heard = Heard()
    require_room([wheel(size)], tmp_path, tmp_path, heard)
    assert not heard.notes


@pytest.mark.skipif(Path("/dev/shm").stat().st_dev == Path("/tmp").stat().st_dev, reason="one file system")
def test_a_prefix_on_another_disk_is_counted_for_itself(tmp_path: Path) -> None:
    heard = Heard()
    require_room([wheel(1_000_000)], Path("/dev/shm/envs/x"), tmp_path / "cache", heard)
    assert len(heard.notes) == 2
