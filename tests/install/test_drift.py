"""Drift of real small environments: every kind of it, and the way back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tinychannel import MINOR, PLATFORM, SITE_PACKAGES, Channel, Link, TinyPackage

from envkit import fetch, install
from envkit.errors import Error, InputError
from envkit.install import marker
from envkit.lock import read_lock
from envkit.model import Environment, Lock, Package, Report, Status
from envkit.progress import Observer

NOTHING: Mapping[str, str] = {"HOME": "/nonexistent"}


def real_lock(path: Path, *packages: Package) -> Lock:
    """A conda-lock v1 file of the packages, written and read again."""
    rows = [
        {
            "name": package.name, "version": package.version, "manager": package.manager,
            "platform": package.platform, "dependencies": dict(package.depends), "url": package.url,
            "hash": {"sha256": package.sha256, **({"md5": package.md5} if package.md5 else {})},
            "category": "main", "optional": False,
        }
        for package in packages
    ]  # fmt: skip
    head = {
        "content_hash": {PLATFORM: "0" * 64}, "channels": [], "platforms": [PLATFORM],
        "sources": ["environment.yml"],
    }  # fmt: skip
    path.write_text(yaml.safe_dump({"version": 1, "metadata": head, "package": rows}))
    return read_lock(path)


@pytest.fixture
def channel(channel: Channel) -> Channel:
    """The usual packages, and one with links, bytecode and a script that holds the prefix."""
    channel.add(
        TinyPackage(
            "linked",
            files={
                "lib/liblinked.so.1.0": b"\x7fELF of sorts",
                "lib/liblinked.so.1": Link("liblinked.so.1.0"),
                "lib/liblinked.so": Link("liblinked.so.1"),
                f"{SITE_PACKAGES}/linked.py": "x = 1\n",
                f"{SITE_PACKAGES}/__pycache__/linked.cpython-{MINOR.replace('.', '')}.pyc": b"bytecode",
            },
            platform=PLATFORM,
        )
    )
    return channel


@pytest.fixture
def lock(channel: Channel, tmp_path: Path) -> Lock:
    return real_lock(tmp_path / "conda-lock.yml", *channel.packages)


@pytest.fixture
def tiny(lock: Lock, installer) -> Environment:
    return installer(lock)


def looked(environment: Environment, environ: Mapping[str, str] = NOTHING, **options: object) -> Report:
    return install.drift(environment, environ=environ, **options)


def findings(report: Report) -> dict[str, Status]:
    return {check.id: check.status for check in report.checks if check.status is not Status.OK}


def check_of(report: Report, id: str):
    return next(check for check in report.checks if check.id == id)


def repaired(environment: Environment, installer, **options: object) -> install.Repaired:
    notes: list[str] = options.pop("notes", [])
    return install.repair(
        environment, routes=fetch.routes("official"), cache=installer.cache, observer=_Notes(notes), **options
    )


class _Notes(Observer):
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def note(self, text: str) -> None:
        self._notes.append(text)


@pytest.mark.parametrize("deep", [False, True])
def test_a_fresh_environment_has_not_drifted(tiny, deep):
    report = looked(tiny, deep=deep)
    assert findings(report) == {}
    assert len({check.id for check in report.checks}) == len(report.checks) == 15


def test_looking_changes_nothing(tiny, tree_hash):
    before = tree_hash(tiny.prefix)
    looked(tiny, deep=True)
    assert tree_hash(tiny.prefix) == before


def test_a_missing_package(tiny):
    (tiny.prefix / "conda-meta" / "data-1.0-0.json").unlink()
    report = looked(tiny)
    assert findings(report) == {"drift.missing": Status.FAIL, "drift.strays": Status.WARN}
    assert "data 1.0" in check_of(report, "drift.missing").summary
    assert "envkit drift tiny --repair" in check_of(report, "drift.missing").hint


def test_a_package_too_many(tiny, channel, tmp_path):
    fewer = real_lock(tmp_path / "fewer.yml", *(p for p in channel.packages if p.name != "data"))
    report = looked(tiny, lock=fewer)
    assert findings(report) == {"drift.lock": Status.WARN, "drift.extra": Status.FAIL}
    assert check_of(report, "drift.extra").data["packages"] == ["data 1.0"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": "2.0", "file": "data-2.0-0.conda"}, "data 2.0 -> 1.0"),
        ({"file": "data-1.0-1.conda"}, "data 1.0: 1 -> 0"),
        ({"sha256": "f" * 64}, "data 1.0: sha256 ffffffffffff... -> "),
    ],
)
def test_another_version_build_or_archive(tiny, channel, tmp_path, change, said):
    def other(package: Package) -> Package:
        if package.name != "data":
            return package
        url = f"{package.url.rpartition('/')[0]}/{change.get('file', package.file_name)}"
        values = {key: value for key, value in change.items() if key != "file"}
        return replace(package, url=url, md5=None, **({"sha256": "e" * 64} | values))

    report = looked(tiny, lock=real_lock(tmp_path / "other.yml", *map(other, channel.packages)))
    assert findings(report) == {"drift.lock": Status.WARN, "drift.other": Status.FAIL}
    assert check_of(report, "drift.other").data["packages"][0].startswith(said)


def test_another_channel_is_no_drift_where_the_archive_is_the_same(tiny, channel, tmp_path):
    moved = (
        replace(p, url=f"https://conda.anaconda.org/team/{p.subdir}/{p.file_name}") for p in channel.packages
    )
    report = looked(tiny, lock=real_lock(tmp_path / "moved.yml", *moved))
    assert findings(report) == {"drift.lock": Status.WARN}


def test_missing_and_changed_files(tiny):
    (tiny.prefix / "share/data/7.bin").unlink()
    changed = tiny.prefix / SITE_PACKAGES / "greeting.py"
    _replace(changed, changed.read_bytes() + b"# more\n")
    report = looked(tiny)
    assert findings(report) == {"drift.files-missing": Status.FAIL, "drift.files-changed": Status.FAIL}
    assert check_of(report, "drift.files-missing").data["files"] == {"data 1.0": ["share/data/7.bin"]}
    assert check_of(report, "drift.files-changed").data["files"] == {
        "greeting 1.0": [f"{SITE_PACKAGES}/greeting.py"]
    }


def test_a_change_of_the_same_size_is_seen_by_its_time_and_one_dated_back_by_its_hash(tiny):
    changed = tiny.prefix / SITE_PACKAGES / "greeting.py"
    before = changed.stat()
    _replace(changed, changed.read_bytes().replace(b"hello", b"HELLO"))
    assert findings(looked(tiny)) == {"drift.files-changed": Status.FAIL}
    os.utime(changed, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert findings(looked(tiny)) == {}
    assert findings(looked(tiny, deep=True)) == {"drift.files-changed": Status.FAIL}


def test_a_touched_file_is_hashed_and_found_the_same(tiny):
    (tiny.prefix / SITE_PACKAGES / "greeting.py").touch()
    assert findings(looked(tiny)) == {}


@pytest.mark.parametrize("path", ["bin/where", "share/text.txt", "share/binary", "bin/greet"])
def test_files_that_hold_the_prefix(tiny, path):
    changed = tiny.prefix / path
    _replace(changed, changed.read_bytes().replace(b"/", b"_", 1), mode=0o755)
    assert findings(looked(tiny)) == {"drift.files-changed": Status.FAIL}


def test_links(tiny, tmp_path):
    link = tiny.prefix / "lib/liblinked.so"
    link.unlink()
    link.symlink_to(tmp_path / "conda-lock.yml")
    assert findings(looked(tiny)) == {"drift.files-changed": Status.FAIL}
    link.unlink()
    link.symlink_to("../share/text.txt")
    assert findings(looked(tiny)) == {"drift.files-changed": Status.FAIL}
    link.unlink()
    link.symlink_to("gone")
    assert findings(looked(tiny)) == {"drift.files-changed": Status.FAIL}


def test_a_folder_in_place_of_a_file(tiny):
    path = tiny.prefix / "share/data/7.bin"
    path.unlink()
    path.mkdir()
    assert findings(looked(tiny)) == {"drift.files-changed": Status.FAIL}


def test_bytecode_is_nobodys_business(tiny):
    cache = tiny.prefix / SITE_PACKAGES / "__pycache__"
    (bytecode,) = cache.glob("linked.*.pyc")
    _replace(bytecode, b"written anew by Python")
    (cache / "greeting.cpython-3.pyc").write_bytes(b"x")
    assert findings(looked(tiny, deep=True)) == {}
    shutil.rmtree(cache)
    assert findings(looked(tiny, deep=True)) == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read(tiny):
    (tiny.prefix / "share/text.txt").chmod(0)
    assert findings(looked(tiny, deep=True)) == {"drift.files-changed": Status.FAIL}


def test_files_of_nobody(tiny):
    site = tiny.prefix / SITE_PACKAGES
    (site / "mine.py").write_text("")
    (site / "team" / "deep").mkdir(parents=True)
    (site / "team" / "deep" / "a.py").write_text("")
    (site / "team" / "b.py").write_text("")
    report = looked(tiny)
    assert findings(report) == {"drift.strays": Status.WARN}
    check = check_of(report, "drift.strays")
    assert check.data["files"] == {f"{SITE_PACKAGES}/mine.py": 1, f"{SITE_PACKAGES}/team/": 2}
    assert f"rm -r {site}/mine.py {site}/team" in check.hint


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"name": 1}', '{"name": "data", "version": "1", "files": 3}', "\xff", "[" * 100_000,
             '{"name": "data", "version": "1", "paths_data": {"paths": [{"_path": "../../etc/passwd"}]}}',
             '{"name": "data", "version": "1", "paths_data": {"paths": [{"_path": "/etc/passwd"}]}}',
             '{"name": "data", "version": "1", "paths_data": {"paths": 3}}'],
)  # fmt: skip
def test_a_record_that_cannot_be_read(tiny, text):
    (tiny.prefix / "conda-meta" / "data-1.0-0.json").write_bytes(text.encode("latin-1"))
    report = looked(tiny)
    assert findings(report)["drift.records"] is Status.FAIL
    assert "data-1.0-0.json" in check_of(report, "drift.records").summary


def test_records_that_are_gone(tiny):
    for record in (tiny.prefix / "conda-meta").glob("*.json"):
        record.unlink()
    report = looked(tiny)
    assert findings(report)["drift.records"] is Status.FAIL
    assert findings(report)["drift.missing"] is Status.FAIL


def test_no_copy_of_a_lock(tiny, lock):
    marker.lock_copy(tiny.prefix).unlink()
    report = looked(tiny)
    assert findings(report) == {"drift.lock": Status.SKIP}
    assert "--lock FILE" in check_of(report, "drift.lock").hint
    assert findings(looked(tiny, lock=lock)) == {}


def test_a_copy_that_was_changed(tiny):
    copy = marker.lock_copy(tiny.prefix)
    copy.write_text(copy.read_text() + "# edited\n")
    assert findings(looked(tiny)) == {"drift.lock": Status.FAIL}
    copy.write_text("version: 1\n")
    assert findings(looked(tiny)) == {"drift.lock": Status.FAIL}


def test_an_environment_that_was_moved(tiny, tmp_path):
    tiny.prefix.rename(tmp_path / "elsewhere")
    moved = install.read_environment(str(tmp_path / "elsewhere"))
    report = looked(moved)
    assert findings(report) == {"drift.place": Status.FAIL}
    assert str(tiny.prefix) in check_of(report, "drift.place").summary


def test_another_name_of_the_same_place_is_no_move(tiny, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "envs")
    assert findings(looked(replace(tiny, prefix=tmp_path / "link" / "tiny"))) == {}


def test_an_environment_of_conda(tiny):
    marker.path(tiny.prefix).unlink()
    marker.lock_copy(tiny.prefix).unlink()
    theirs = install.read_environment(str(tiny.prefix))
    assert findings(looked(theirs)) == {"drift.lock": Status.SKIP}
    (tiny.prefix / "share/data/7.bin").unlink()
    report = looked(theirs)
    assert "envkit drift" not in check_of(report, "drift.files-missing").hint


def test_python_path(tiny, tmp_path):
    folder = tmp_path / "path"
    folder.mkdir()
    assert findings(looked(tiny, {"PYTHONPATH": str(folder)})) == {"drift.python-path": Status.WARN}
    (folder / "greeting.py").write_text("")
    report = looked(tiny, {"PYTHONPATH": f"{folder}:"})
    assert findings(report) == {"drift.python-path": Status.FAIL}
    assert "greeting" in check_of(report, "drift.python-path").summary
    own = {"PYTHONPATH": str(tiny.prefix / SITE_PACKAGES)}
    assert findings(looked(tiny, own)) == {}
    assert findings(looked(tiny, {"PYTHONHOME": "/usr"})) == {"drift.python-path": Status.FAIL}


def test_user_site(tiny, tmp_path):
    site = tmp_path / ".local" / SITE_PACKAGES
    site.mkdir(parents=True)
    home = {"HOME": str(tmp_path)}
    assert findings(looked(tiny, home)) == {}
    (site / "another").mkdir()
    assert findings(looked(tiny, home)) == {"drift.user-site": Status.WARN}
    (site / "greeting").mkdir()
    assert findings(looked(tiny, home)) == {"drift.user-site": Status.FAIL}
    assert findings(looked(tiny, {**home, "PYTHONNOUSERSITE": "1"})) == {}
    assert findings(looked(tiny, {"PYTHONUSERBASE": str(tmp_path / ".local")})) == {
        "drift.user-site": Status.FAIL
    }


def test_library_path(tiny, tmp_path):
    (tmp_path / "libother.so.2").write_bytes(b"")
    assert findings(looked(tiny, {"LD_LIBRARY_PATH": str(tmp_path)})) == {}
    (tmp_path / "liblinked.so.2").write_bytes(b"")
    report = looked(tiny, {"LD_LIBRARY_PATH": f"/nonexistent::{tmp_path}"})
    assert findings(report) == {"drift.library-path": Status.FAIL}
    assert check_of(report, "drift.library-path").hint == "unset LD_LIBRARY_PATH"


def test_path_files_and_customs(tiny, tmp_path):
    site = tiny.prefix / SITE_PACKAGES
    (site / "team.pth").write_text(f"# comment\n../..\n{tmp_path}\n")
    (site / "code.pth").write_text("import os\n")
    (site / "sitecustomize.py").write_text("")
    report = looked(tiny)
    assert findings(report) == {
        "drift.strays": Status.WARN, "drift.path-files": Status.WARN, "drift.site-customs": Status.WARN,
    }  # fmt: skip
    lines = check_of(report, "drift.path-files").data["lines"]
    assert lines == [f"{SITE_PACKAGES}/code.pth: import os", f"{SITE_PACKAGES}/team.pth: {tmp_path}"]


def test_repair_brings_back_what_drifted(tiny, installer, tree_hash):
    before = tree_hash(tiny.prefix)
    (tiny.prefix / "share/data/7.bin").unlink()
    (tiny.prefix / "conda-meta" / "hooks-1.0-0.json").write_text("{")
    (tiny.prefix / SITE_PACKAGES / "mine.py").write_text("")
    notes: list[str] = []
    done = repaired(tiny, installer, notes=notes)
    assert done.after is not None
    assert findings(done.after).keys() <= {"drift.python-path", "drift.user-site", "drift.library-path"}
    assert tree_hash(tiny.prefix) == before
    assert "1 files that belong to no package were moved to" in "\n".join(notes)
    assert installer.beside() == ["tiny.kept"]
    assert (tiny.prefix.parent / "tiny.kept" / SITE_PACKAGES / "mine.py").exists()


def test_repair_of_a_clean_environment_does_nothing(tiny, installer):
    inode = tiny.prefix.stat().st_ino
    done = repaired(tiny, installer)
    assert (done.after, done.lost) == (None, ())
    assert tiny.prefix.stat().st_ino == inode


def test_repair_of_a_moved_environment(tiny, installer, tmp_path):
    tiny.prefix.rename(tmp_path / "elsewhere")
    moved = install.read_environment(str(tmp_path / "elsewhere"))
    assert repaired(moved, installer).after is not None
    assert findings(looked(install.read_environment(str(tmp_path / "elsewhere")))) == {}


def test_repair_refuses_what_is_in_use(tiny, installer, tree_hash):
    (tiny.prefix / "share/data/7.bin").unlink()
    before = tree_hash(tiny.prefix)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=tiny.prefix)
    try:
        with pytest.raises(Error, match=f"in use by process {child.pid}"):
            repaired(tiny, installer)
    finally:
        child.communicate()
    assert tree_hash(tiny.prefix) == before


def test_repair_needs_the_lock_it_was_made_from(tiny, installer, lock):
    (tiny.prefix / "share/data/7.bin").unlink()
    copy = marker.lock_copy(tiny.prefix)
    copy.write_text(copy.read_text() + "# edited\n")
    with pytest.raises(Error, match="changed after") as caught:
        repaired(tiny, installer)
    assert "--lock FILE" in caught.value.hint
    copy.unlink()
    with pytest.raises(Error, match="no copy of a lock"):
        repaired(tiny, installer)
    assert (
        findings(repaired(tiny, installer, lock=lock).after or looked(tiny)).get("drift.files-missing")
        is None
    )
    assert findings(looked(tiny)) == {}


def test_repair_is_not_for_environments_of_others(tiny, installer):
    marker.path(tiny.prefix).unlink()
    with pytest.raises(InputError, match="not an environment that envkit made"):
        repaired(install.read_environment(str(tiny.prefix)), installer)


def _replace(path: Path, content: bytes, mode: int | None = None) -> None:
    """Other content under the name, and the cache's own file, which may be the same inode, left alone."""
    mode = path.stat().st_mode if mode is None else mode
    path.unlink()
    path.write_bytes(content)
    path.chmod(mode)


@pytest.fixture
def with_pip(pip_channel, wheel, installer, tmp_path) -> Environment:
    """An environment whose lock has a pip section."""
    return installer(real_lock(tmp_path / "pip.yml", *pip_channel.packages, wheel))


def pip(environment: Environment, *words: str) -> None:
    done = subprocess.run(
        [environment.python, "-m", "pip", *words, "--no-index", "--disable-pip-version-check"],
        env={**os.environ, "PYTHONNOUSERSITE": "1", "PYTHONPATH": ""}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def project(folder: Path, name: str) -> Path:
    """A wheel of one module, made without a build."""
    folder.mkdir()
    file = folder / f"{name}-3.0-py3-none-any.whl"
    info = f"{name}-3.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", "three = 3\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    return file


@pytest.mark.parametrize("deep", [False, True])
def test_a_pip_section_that_has_not_drifted(with_pip, deep):
    assert findings(looked(with_pip, deep=deep)) == {}


def test_a_package_that_pip_added_is_named_before_repair_takes_it_out(with_pip, installer, tmp_path):
    pip(with_pip, "install", str(project(tmp_path / "dist", "added_one")))
    report = looked(with_pip)
    assert findings(report) == {"drift.added": Status.FAIL}
    assert "added_one 3.0" in check_of(report, "drift.added").summary
    assert "pip uninstall -y added_one" in check_of(report, "drift.added").hint
    notes: list[str] = []
    assert repaired(with_pip, installer, notes=notes).after is not None
    assert "added_one 3.0" in notes[0]
    assert findings(looked(with_pip)) == {}


def test_a_package_of_the_pip_section_changed_missing_and_of_another_version(with_pip, tmp_path):
    script = with_pip.prefix / "bin/tiny-wheel"
    script.write_text(script.read_text().replace("import", "Import"))
    assert check_of(looked(with_pip), "drift.files-changed").data["files"] == {
        "Tiny_Wheel 1.0": ["bin/tiny-wheel"]
    }
    pip(with_pip, "install", "--upgrade", str(project(tmp_path / "dist", "tiny_wheel")))
    assert check_of(looked(with_pip), "drift.other").data["packages"] == ["tiny_wheel 1.0 -> 3.0"]
    for left in (with_pip.prefix / SITE_PACKAGES).glob("[Tt]iny_[Ww]heel*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    assert check_of(looked(with_pip), "drift.missing").data["packages"] == ["tiny-wheel 1.0"]


@pytest.mark.parametrize(
    "place",
    [
        "conda-meta/linked-1.0-0.json",
        "conda-meta/envkit-lock.yml",
        f"{SITE_PACKAGES}/odd-1.0.dist-info/RECORD",
        f"{SITE_PACKAGES}/odd-1.0.dist-info/METADATA",
        f"{SITE_PACKAGES}/odd.pth",
        "bin/where",
        "share/text.txt",
    ],
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(
    channel: Channel, installer, tmp_path: Path, place: str
) -> None:
    made = installer(real_lock(tmp_path / "lock.yml", *channel.packages))
    file = made.prefix / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    command = "import sys; from envkit.install import *; drift(read_environment(sys.argv[1]), deep=True)"
    subprocess.run([sys.executable, "-c", command, str(made.prefix)], check=True, timeout=60)


def test_a_path_file_with_a_nul_is_read_like_any_other(tiny: Environment) -> None:
    (tiny.prefix / SITE_PACKAGES / "odd.pth").write_bytes(b"\xff\xfe\0/x\n/elsewhere\n")
    assert "odd.pth" in check_of(looked(tiny), "drift.path-files").summary


def test_a_pipe_for_a_lock_does_not_stop_the_next_installation(
    tiny: Environment, lock: Lock, installer
) -> None:
    copy = marker.lock_copy(tiny.prefix)
    copy.unlink()
    os.mkfifo(copy)
    done = subprocess.run(installer.command(lock, tiny.prefix), timeout=60, check=False)
    assert done.returncode == 0
