"""What a user put into an environment by hand is moved aside when the environment is replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from envkit.install import drift
from envkit.install.stage import recover
from envkit.progress import SILENT


def fill(prefix: Path) -> None:
    (prefix / "data" / "runs").mkdir(parents=True)
    (prefix / "data" / "runs" / "model.ckpt").write_bytes(b"weeks of work")
    (prefix / "bin" / "mytool").write_text("#!/bin/sh\n")
    (prefix / "bin" / "gone").symlink_to("/nowhere")
    (prefix / "conda-meta" / "state").write_text('{"env_vars": {"SEED": "7"}}')
    (prefix / "empty").mkdir()
    (prefix / "bin" / "__pycache__").mkdir()
    (prefix / "bin" / "__pycache__" / "x.pyc").write_bytes(b"")


def kept(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


MINE = {"data/runs/model.ckpt", "bin/mytool", "bin/gone", "conda-meta/state"}


def test_a_replaced_environment_leaves_them_beside_it(channel, installer):
    lock = channel.lock()
    made = installer(lock)
    for place in ("tiny.kept", "tiny.kept-2"):
        fill(made.prefix)
        installer(lock, force=True)
        assert kept(made.prefix.parent / place) == MINE
        assert not (made.prefix / "data").exists()
        assert (
            f"4 files that belong to no package were moved to {made.prefix.parent / place}" in installer.notes
        )
    assert (made.prefix.parent / "tiny.kept" / "bin" / "gone").readlink() == Path("/nowhere")


def test_drift_names_them(channel, installer):
    made = installer(channel.lock())
    fill(made.prefix)
    strays = {check.id: check for check in drift(made).checks}["drift.strays"]
    assert strays.data["files"] == {"bin/gone": 1, "bin/mytool": 1, "data/": 1}


def test_those_of_an_environment_whose_replacement_was_killed(channel, installer):
    """The exchange had happened, the old environment was not deleted yet."""
    made = installer(channel.lock())
    fill(made.prefix)
    stage = made.prefix.parent / ".tiny.envkit-stage-4194304"
    stage.mkdir()
    owner = {"schema": 1, "prefix": str(made.prefix), "pid": 4194304, "boot": "another"}
    (stage / "owner.json").write_text(json.dumps(owner))
    made.prefix.rename(stage / "prefix")
    installer(channel.lock())
    recover(made.prefix, SILENT)
    assert not stage.exists()
    assert kept(made.prefix.parent / "tiny.kept") == MINE


def test_what_is_left_of_a_half_deleted_environment_is_nobody_s(channel, installer):
    """Its records went first: then every file of a package looks like a user's."""
    made = installer(channel.lock())
    stage = made.prefix.parent / ".tiny.envkit-stage-4194304"
    stage.mkdir()
    owner = {"schema": 1, "prefix": str(made.prefix), "pid": 4194304, "boot": "another"}
    (stage / "owner.json").write_text(json.dumps(owner))
    shutil.copytree(made.prefix, stage / "gone", symlinks=True)
    for record in (stage / "gone" / "conda-meta").glob("*.json"):
        record.unlink()
    recover(made.prefix, SILENT)
    assert installer.beside() == []


def test_what_cannot_be_moved_is_not_deleted(channel, installer, monkeypatch):
    lock = channel.lock()
    made = installer(lock)
    fill(made.prefix)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.name == "data":
            raise PermissionError(13, "Permission denied")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    installer(lock, force=True)
    assert any(
        "holds files of yours that cannot be moved: Permission denied" in note for note in installer.notes
    )
    assert not any("may be deleted" in note for note in installer.notes)
    assert [path.read_bytes() for path in made.prefix.parent.rglob("model.ckpt")] == [b"weeks of work"]
