"""What an installation makes: an environment at its final place, complete, and nothing beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from urllib.request import url2pathname

import pytest

from envkit.errors import Error, InputError
from envkit.model import Variant

VARIANT = Variant(
    name="py311-cpu", python="3.11", accelerator="cpu", torch="2.3.*", source="pytorch",
    platforms=("linux-64",), extras=("vision",),
)  # fmt: skip


def output(*command: object) -> str:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_programs_run_from_the_final_prefix(environment, installer):
    prefix = installer.prefix
    assert environment.prefix == prefix
    assert output(environment.python, "-c", "import sys, greeting; print(sys.prefix)") == str(prefix)
    assert output(prefix / "bin" / "greet") == "hello from greeting"
    assert output(prefix / "bin" / "where") == str(prefix)
    assert (prefix / "share" / "text.txt").read_text() == f"at {prefix}/share\n"
    assert f"{prefix}/lib\0".encode() in (prefix / "share" / "binary").read_bytes()


def test_nothing_is_left_beside_and_no_stage_is_mentioned_inside(environment, installer):
    assert installer.beside() == []
    files = [path for path in environment.prefix.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 60
    assert not [path for path in files if b"envkit-stage" in path.read_bytes()]


def test_records_name_the_package_as_the_lock_does(environment, channel):
    for package in channel.packages:
        stem = package.file_name.removesuffix(".conda")
        file = environment.prefix / "conda-meta" / f"{stem}.json"
        record = json.loads(file.read_text())
        assert (record["url"], record["sha256"]) == (package.url, package.sha256)
        assert file.stat().st_mode & 0o044, "other users of the prefix must be able to list it"
    greeting = json.loads((environment.prefix / "conda-meta" / "greeting-1.0-0.json").read_text())
    assert greeting["noarch"] == "python"


def test_marker_says_where_it_came_from(channel, installer):
    from envkit.install import read_environment

    lock = channel.lock()
    installer(lock, variant=VARIANT)
    document = json.loads((installer.prefix / "conda-meta" / "envkit").read_text())
    assert document["schema"] == 1
    assert document["packages"] == len(channel.packages)
    assert document["lock_digest"] == lock.digest
    again = read_environment("tiny")
    assert again.asked == VARIANT
    assert again.prefix == installer.prefix


def test_equal_locks_make_equal_trees(channel, installer, tree_hash):
    first = tree_hash(installer(channel.lock()).prefix)
    shuffled = channel.lock(*reversed(channel.packages))
    other = replace(shuffled, path=channel.lock().path)
    assert tree_hash(installer(other).prefix) == first


def test_replacing_is_an_exact_sync(channel, installer):
    installer(channel.lock())
    (installer.prefix / "stray.txt").write_text("user data of the old environment")
    installer(channel.lock(*channel.packages[:2]))
    assert sorted(path.name for path in installer.prefix.glob("conda-meta/*.json")) == sorted(
        f"{package.file_name.removesuffix('.conda')}.json" for package in channel.packages[:2]
    )
    assert not (installer.prefix / "share" / "data").exists()
    assert not (installer.prefix / "stray.txt").exists()
    assert installer.beside() == ["tiny.kept"]
    assert [path.name for path in (installer.prefix.parent / "tiny.kept").iterdir()] == ["stray.txt"]


def test_conda_reads_the_history(environment, channel):
    """By conda's own code, of which conda-lock carries a copy."""
    conda = pytest.importorskip("conda_lock._vendor.conda.history")
    prefix_data = pytest.importorskip("conda_lock._vendor.conda.core.prefix_data")
    history = conda.History(str(environment.prefix))
    records = prefix_data.PrefixData(str(environment.prefix)).iter_records()
    assert history.get_state() == {record.dist_str() for record in records}
    assert len(history.get_state()) == len(channel.packages)
    assert history.get_user_requests()[0]["cmd"] == ["envkit", "install"]
    assert len(history.object_log()[0]["install"]) == len(channel.packages)


@pytest.mark.parametrize("folder", ["with space", "it's", "环境", "l" * 110])
def test_awkward_prefixes(channel, installer, tmp_path, folder):
    prefix = tmp_path / folder / "tiny"
    made = installer(channel.lock(), prefix)
    assert output(prefix / "bin" / "greet") == "hello from greeting"
    assert output(prefix / "bin" / "where") == str(made.prefix)


def test_a_prefix_longer_than_the_placeholder(channel, installer, tmp_path):
    prefix = tmp_path / ("l" * 220) / "tiny"
    with pytest.raises(Error, match="too long") as caught:
        installer(channel.lock(), prefix)
    assert "--prefix" in caught.value.hint
    assert list(prefix.parent.iterdir()) == []


def test_an_archive_that_is_not_the_package(channel, installer):
    right = channel.packages[0]
    wrong = replace(right, version="9.9", url=right.url.replace(f"-{right.version}-", "-9.9-"))
    shutil.copy(url2pathname(right.url[7:]), url2pathname(wrong.url[7:]))
    with pytest.raises(Error, match=r"python-9\.9-0.*python"):
        installer(channel.lock(wrong))
    assert installer.beside() == []
    assert not installer.prefix.exists()


def test_shown_by_conda_where_conda_is_used(channel, installer, monkeypatch):
    listing = Path(os.environ["HOME"]) / ".conda" / "environments.txt"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("CONDA_EXE", raising=False)
    installer(channel.lock())
    assert not listing.exists()
    listing.parent.mkdir(parents=True)
    listing.write_text("/somewhere/else\n")
    installer(channel.lock())
    installer(channel.lock())
    assert listing.read_text() == f"/somewhere/else\n{installer.prefix}\n"
    listing.unlink()
    listing.mkdir()  # cannot be written: no reason to fail
    assert installer(channel.lock()).prefix == installer.prefix


def test_platforms(channel, installer, monkeypatch):
    with pytest.raises(Error, match="locked for, not installed on") as caught:
        installer(channel.lock(), platform="osx-arm64")
    assert not isinstance(caught.value, InputError)
    with pytest.raises(InputError, match="no packages for linux-ppc64le"):
        installer(channel.lock(), platform="linux-ppc64le")
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(Error, match="on Linux"):
        installer(channel.lock())


def test_packages_of_other_categories_stay_out(channel, installer):
    extra = replace(channel.packages[-1], category="dev")
    installer(channel.lock(*channel.packages[:-1], extra))
    assert not (installer.prefix / "share" / "data").exists()


def test_a_lock_that_names_a_package_twice(channel, installer):
    with pytest.raises(InputError, match=r"twice.*python"):
        installer(channel.lock(channel.packages[0], *channel.packages))


def test_the_records_do_not_say_where_the_cache_is(environment, installer):
    """So that the same lock makes the same bytes on every machine, and conda still reads them."""
    for record in (environment.prefix / "conda-meta").iterdir():
        text = record.read_text()
        assert str(installer.cache) not in text, record.name
        if record.suffix == ".json":
            assert {"name", "url", "files", "paths_data", "sha256"} <= json.loads(text).keys()
