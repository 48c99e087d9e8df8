"""Names and places that can hold no environment, and what is not to be replaced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envkit.errors import Error, InputError
from envkit.install import check_name


@pytest.mark.parametrize("name", ["py311-cpu", "py311-cu118+vision", "a", "环境", "2.3_x=1"])
def test_good_names(name):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", ".", ".hidden", "-x", "a b", "a..b", "a\n", "a$b", "a:b", "x" * 300, "a\0b"]
)
def test_bad_names(name, channel, installer):
    with pytest.raises(InputError) as caught:
        installer(channel.lock(), name=name)
    assert caught.value.hint


def test_a_folder_with_other_content(channel, installer, tree_hash):
    installer.prefix.mkdir(parents=True)
    (installer.prefix / "thesis.tex").write_text("years of work")
    before = tree_hash(installer.prefix)
    with pytest.raises(InputError, match=f"{installer.prefix} exists and is not an environment"):
        installer(channel.lock())
    assert tree_hash(installer.prefix) == before
    assert installer.beside() == []


def test_a_file(channel, installer):
    installer.prefix.parent.mkdir(parents=True)
    installer.prefix.write_text("")
    with pytest.raises(InputError, match="is not an environment"):
        installer(channel.lock())


def test_an_environment_of_conda_is_not_ours_to_replace(channel, installer):
    (installer.prefix / "conda-meta").mkdir(parents=True)
    (installer.prefix / "conda-meta" / "history").write_text("==> 2024-01-01 00:00:00 <==\n")
    with pytest.raises(InputError, match="envkit did not make"):
        installer(channel.lock())


def test_an_empty_folder_is_used(channel, installer):
    installer.prefix.mkdir(parents=True)
    assert installer(channel.lock()).python.exists()


def test_a_symbolic_link_stays_one(channel, installer, tmp_path):
    (tmp_path / "big-disk").mkdir()
    installer.prefix.parent.mkdir(parents=True)
    installer.prefix.symlink_to(tmp_path / "big-disk")
    made = installer(channel.lock())
    assert made.prefix == tmp_path / "big-disk"
    assert installer.prefix.is_symlink()
    assert (installer.prefix / "bin" / "python").exists()


def test_nested_environments(channel, installer):
    outer = installer(channel.lock())
    inner = outer.prefix / "envs" / "inner"
    installer(channel.lock(), inner)
    with pytest.raises(InputError, match=f"holds another environment, {inner}"):
        installer(channel.lock())
    assert (inner / "bin" / "python").exists()


@pytest.mark.parametrize("prefix", ["/proc/envkit/x", "{tmp}/file/x"])
def test_a_parent_that_cannot_be(channel, installer, tmp_path, prefix):
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match="cannot write") as caught:
        installer(channel.lock(), Path(prefix.format(tmp=tmp_path)))
    assert caught.value.code == 3
    assert caught.value.hint


def test_a_parent_without_permission(channel, installer):
    installer.prefix.parent.mkdir(parents=True)
    installer.prefix.parent.chmod(0o500)
    if os.access(installer.prefix.parent, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(Error, match="Permission denied"):
        installer(channel.lock())


@pytest.mark.parametrize("character", [":", '"', "$", "`", "\\", "\n", "\udcff"])
def test_characters_that_scripts_cannot_hold(channel, installer, tmp_path, character):
    with pytest.raises(InputError, match="holds the character"):
        installer(channel.lock(), tmp_path / f"a{character}b")


MAP_IT = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
input()
"""


@pytest.mark.parametrize("how", ["executable", "folder", "mapped file"])
def test_an_environment_in_use_is_not_replaced(environment, channel, installer, how):
    prefix = installer.prefix
    shutil.copy2(Path(sys.executable).resolve(), prefix / "bin" / "program")
    command = {
        "executable": [str(prefix / "bin" / "program"), "-c", "input()"],
        "folder": [sys.executable, "-c", "input()"],
        "mapped file": [sys.executable, "-c", MAP_IT, str(prefix / "share" / "binary")],
    }[how]
    folder = prefix / "share" if how == "folder" else "/"
    environ = os.environ | {"PYTHONHOME": sys.base_prefix}
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, env=environ) as process:
        try:
            _wait_for_start(process, how, prefix)
            with pytest.raises(Error, match=rf"in use by process .*\b{process.pid} \(") as caught:
                installer(channel.lock(*channel.packages[:1]))
        finally:
            process.kill()
    assert "--name" in caught.value.hint
    assert installer.beside() == []
    assert (prefix / "bin" / "greet").exists(), "the old environment must be as it was"
    installer(channel.lock(*channel.packages[:1]))
    assert not (prefix / "bin" / "greet").exists()


def _wait_for_start(process, how, prefix):
    maps = Path(f"/proc/{process.pid}/maps")
    for _ in range(200):
        if how != "mapped file" or str(prefix / "share" / "binary") in maps.read_text():
            return
        time.sleep(0.02)
    raise AssertionError("the child did not map the file")


@pytest.mark.parametrize("below", ["", "pkgs/tiny", "downloads", "other/tiny"])
def test_no_environment_where_clean_deletes(channel, installer, tmp_path, below):
    with pytest.raises(InputError, match="lies in the cache"):
        installer(channel.lock(), tmp_path / "cache" / below)


def test_an_environment_beside_the_folders_of_a_cache(channel, installer, tmp_path, monkeypatch):
    """ENVKIT_CACHE may name a disk on which the environments lie as well."""
    monkeypatch.setenv("ENVKIT_CACHE", str(tmp_path / "disk"))
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "disk" / "envkit"))
    for name in ("mine", "envkit/envs/tiny"):
        assert installer(channel.lock(), tmp_path / "disk" / name).prefix.is_dir()
    with pytest.raises(InputError, match="lies in the cache"):
        installer(channel.lock(), tmp_path / "disk" / "pkgs" / "tiny")
