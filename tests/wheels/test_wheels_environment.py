"""From a folder of wheels to an environment that works, and what is in its packages."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from wheel_shelf import MINOR, Heard, Made, link, make_wheel, only_see, run, variant

from envkit import wheels
from envkit.errors import Error
from envkit.progress import Observer

MODULES = "ssl ctypes sqlite3 lzma bz2 curses readline multiprocessing venv ensurepip zlib uuid decimal"
QUIET = {"PIP_ROOT_USER_ACTION": "ignore", "PIP_CONFIG_FILE": os.devnull}


def members(archive: Path, part: str) -> dict[str, bytes]:
    """The files of the `pkg` or `info` half of a .conda archive; links as their targets."""
    with zipfile.ZipFile(archive) as outer:
        assert all(member.compress_type == zipfile.ZIP_STORED for member in outer.infolist())
        raw = outer.read(f"{part}-{archive.stem}.tar.zst")
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().stream_reader(raw).read())) as tar:
        return {
            member.name: tar.extractfile(member).read() if member.isreg() else member.linkname.encode()
            for member in tar
        }


def archive(made: Made, name: str) -> Path:
    (found,) = made.channel.glob(f"*/{name}-[0-9]*.conda")
    return found


def importable(python: Path) -> set[str]:
    """Those of MODULES that an interpreter can import."""
    script = """if True:
        import importlib, sys
        for name in sys.argv[1:]:
            try:
                importlib.import_module(name)
            except ImportError:
                continue
            print(name)
    """
    return set(run(python, "-c", script, *MODULES.split()).split())


def test_the_solver_takes_every_package(made: Made) -> None:
    names = {record.rsplit("-", 2)[0] for record in made.records}
    assert names == {"python", "python_abi", "pip", "tiny-binary", "tiny-pure", "tiny-dep", "tiny-extra"}
    assert any(re.fullmatch(r"tiny-binary-3\.1-local_7_py3\d+h[0-9a-f]{8}_0", one) for one in made.records)
    assert any(re.fullmatch(r"python-[\d.]+-envkit_h[0-9a-f]{8}_0", one) for one in made.records)


def test_what_works_in_the_source_works_in_the_copy(made: Made) -> None:
    base = Path(sys.base_prefix, "bin", f"python{MINOR}")
    assert importable(base) - importable(made.prefix / "bin" / "python") == set()


def test_the_copy_is_on_its_own(made: Made) -> None:
    python = made.prefix / "bin" / "python"
    script = "import sys, os, json; print(json.dumps([sys.prefix, os.__file__, sys.path, sys.version]))"
    prefix, os_file, path, version = json.loads(run(python, "-I", "-c", script))
    assert prefix == str(made.prefix)
    assert Path(os_file).is_relative_to(made.prefix)
    assert all(Path(entry).is_relative_to(made.prefix) for entry in path)
    assert version == sys.version
    libraries = run(python, "-c", "print(open('/proc/self/maps').read())")
    assert f"{sys.base_prefix}/" not in libraries or sys.base_prefix == "/usr"


def test_sysconfig_names_the_new_prefix(made: Made) -> None:
    script = "import sysconfig, json; print(json.dumps(sysconfig.get_config_vars()))"
    found = json.loads(run(made.prefix / "bin" / "python", "-c", script))
    assert found["prefix"] == str(made.prefix)
    assert found["INCLUDEPY"] == f"{made.prefix}/include/python{MINOR}"
    assert (
        Path(found["INCLUDEPY"], "Python.h").exists()
        == Path(sys.base_prefix, "include", f"python{MINOR}", "Python.h").exists()
    )


def test_pip_check_is_clean(made: Made) -> None:
    assert "No broken requirements" in run(made.prefix / "bin" / "python", "-m", "pip", "check")


def test_commands_run_in_the_prefix(made: Made) -> None:
    commands = made.prefix / "bin"
    assert run(commands / "tiny-pure") == f"pure at {made.prefix}\n"
    assert run(commands / "tiny-script") == f"by {made.prefix}\n"
    assert run(commands / "tiny-binary") == "42\n"
    assert run(commands / "tiny-sh") == "shell\n"
    assert Path(run(commands / "tiny-py").strip()).parent == commands
    assert (commands / "pip").is_file()


def test_data_folders_go_to_their_places(made: Made) -> None:
    site = made.prefix / "lib" / f"python{MINOR}" / "site-packages"
    assert (made.prefix / "share/tiny/data.txt").read_text() == "data\n"
    assert (made.prefix / f"include/python{MINOR}/tiny_binary/tiny.h").exists()
    assert (site / "tiny_purelib.py").exists()
    assert (site / "tiny_platlib.py").exists()
    assert (site / "tiny_é.txt").read_text() == "é"


def test_pip_installs_inside(made: Made, tmp_path: Path) -> None:
    make_wheel(
        tmp_path,
        "later",
        files={"later.py": "def main():\n    print('later')\n"},
        entry_points="[console_scripts]\nlater = later:main\n",
    )
    python = made.prefix / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-index", "--find-links", tmp_path, "later", **QUIET)
    assert run(made.prefix / "bin" / "later") == "later\n"


@pytest.mark.slow
def test_pip_uninstalls_what_was_repacked(made: Made, tmp_path: Path) -> None:
    prefix = tmp_path / "copy"
    link(made.channel, prefix, tmp_path / "packages", f"python={MINOR}.*", "tiny-binary", "pip")
    run(prefix / "bin" / "python", "-m", "pip", "uninstall", "--yes", "tiny-binary", "tiny-pure", **QUIET)
    left = [path.name for path in prefix.rglob("*tiny*") if path.is_file() and "conda-meta" not in path.parts]
    assert sorted(left) == ["tiny_dep.py", "tiny_extra.py", "tiny_é.txt"]


def test_venv_works_inside(made: Made, tmp_path: Path) -> None:
    run(made.prefix / "bin" / "python", "-m", "venv", "--without-pip", tmp_path / "inner")
    script = "import sys; print(sys.prefix, sys.base_prefix)"
    assert run(tmp_path / "inner" / "bin" / "python", "-c", script) == f"{tmp_path / 'inner'} {made.prefix}\n"


@pytest.mark.slow
def test_venv_with_pip_works_inside(made: Made, tmp_path: Path) -> None:
    if "ensurepip" not in importable(Path(sys.base_prefix, "bin", f"python{MINOR}")):
        pytest.skip("this Python has no ensurepip")
    run(made.prefix / "bin" / "python", "-m", "venv", tmp_path / "inner")
    assert str(tmp_path) in run(tmp_path / "inner" / "bin" / "pip", "--version")


def test_licences_and_metadata_are_kept(made: Made) -> None:
    info = members(archive(made, "tiny-pure"), "info")
    assert info["info/licenses/LICENSE"] == b"Permission is granted.\n"
    about = json.loads(info["info/about.json"])
    assert about["summary"] == "made by a test"
    assert about["license"] == "MIT"
    python = members(archive(made, "python"), "info")
    licences = [text for name, text in python.items() if name.startswith("info/licenses/")]
    assert any(b"Python Software Foundation" in text or b"PSF" in text for text in licences)
    payload = members(archive(made, "tiny-binary"), "pkg")
    site = f"lib/python{MINOR}/site-packages/tiny_binary-3.1+local.7.dist-info"
    assert payload[f"{site}/LICENSE"] == b"Permission is granted.\n"
    assert payload[f"{site}/INSTALLER"] == b"conda\n"


def test_metadata_is_true(made: Made) -> None:
    binary = json.loads(members(archive(made, "tiny-binary"), "info")["info/index.json"])
    abi = f"cp{MINOR.replace('.', '')}"
    assert binary["depends"] == [
        "__glibc >=2.17",
        f"python {MINOR}.*",
        f"python_abi {MINOR}.* *_{abi}",
        "tiny-extra",
        "tiny-pure >=1",
    ]
    pure = json.loads(members(archive(made, "tiny-pure"), "info")["info/index.json"])
    assert pure["noarch"] == "python"
    assert pure["depends"] == ["python", "tiny-dep !=1.2.4,<2a0", "tiny-dep >=1.2,1.*"]
    link_json = json.loads(members(archive(made, "tiny-pure"), "info")["info/link.json"])
    assert link_json["noarch"]["entry_points"] == ["tiny-pure = tiny_pure.tool:main"]


def test_record_names_what_is_there(made: Made) -> None:
    site = made.prefix / "lib" / f"python{MINOR}" / "site-packages"
    for record in site.glob("tiny_*.dist-info/RECORD"):
        for line in record.read_text().splitlines():
            assert (site / line.rsplit(",", 2)[0]).exists(), line
    assert not list(site.glob("*/direct_url.json"))


def test_paths_and_hashes_agree(made: Made) -> None:
    import hashlib

    for file in made.channel.glob("*/*.conda"):
        payload, info = members(file, "pkg"), members(file, "info")
        paths = json.loads(info["info/paths.json"])["paths"]
        assert [entry["_path"] for entry in paths] == list(payload)
        assert info["info/files"].decode().splitlines() == list(payload)
        for entry in paths:
            if entry["path_type"] == "hardlink":
                assert hashlib.sha256(payload[entry["_path"]]).hexdigest() == entry["sha256"]
                assert len(payload[entry["_path"]]) == entry["size_in_bytes"]


def test_tests_and_graphics_stay_out(made: Made) -> None:
    names = members(archive(made, "python"), "pkg")
    for part in ("/test/", "/idlelib/", "/tkinter/", "site-packages/", "__pycache__", ".a\0"):
        assert not [name for name in names if part in f"{name}\0"], part


def test_repodata_agrees_with_the_archives(made: Made) -> None:
    from envkit.files import sha256_of

    for subdir in made.channel.iterdir():
        packages = json.loads((subdir / "repodata.json").read_text())["packages.conda"]
        assert sorted(packages) == sorted(path.name for path in subdir.glob("*.conda"))
        for name, record in packages.items():
            assert record["sha256"] == sha256_of(subdir / name)
            assert record["size"] == (subdir / name).stat().st_size
            index = json.loads(members(subdir / name, "info")["info/index.json"])
            assert index.items() <= record.items()


def test_a_second_build_packs_nothing(made: Made, monkeypatch: pytest.MonkeyPatch, heard: Heard) -> None:
    only_see(monkeypatch, made.shelf)
    asked = wheels.plan(variant(), ["tiny-binary"], observer=Observer())
    before = {path: path.stat().st_mtime_ns for path in made.cache.rglob("*.conda")}
    # Nothing is read again either: the wheels may be gone.
    hidden = made.shelf.rename(made.shelf.with_name("elsewhere"))
    try:
        assert wheels.build(asked, cache=made.cache, observer=heard) == made.channel
    finally:
        hidden.rename(made.shelf)
    assert {path: path.stat().st_mtime_ns for path in made.cache.rglob("*.conda")} == before
    assert heard.tasks == {}


def test_a_lost_channel_is_laid_out_again_from_the_packages(
    made: Made, monkeypatch: pytest.MonkeyPatch, heard: Heard
) -> None:
    only_see(monkeypatch, made.shelf)
    asked = wheels.plan(variant(), ["tiny-binary"], observer=Observer())
    before = {path.name: path.read_bytes() for path in made.channel.rglob("repodata.json")}
    (next(made.channel.glob("noarch/tiny-dep*.conda"))).unlink()
    assert wheels.build(asked, cache=made.cache, observer=heard) == made.channel
    assert {path.name: path.read_bytes() for path in made.channel.rglob("repodata.json")} == before
    assert heard.tasks == {}


BUILD = """
import os, signal, sys
from pathlib import Path
from wheel_shelf import variant
from envkit import wheels
from envkit.errors import Error
from envkit.progress import Observer

class Killer(Observer):
    left = int(sys.argv[2])
    def advance(self, task, amount=1):
        Killer.left -= 1
        if Killer.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def note(self, text):
        print(text)

try:
    asked = wheels.plan(variant(), ["tiny-binary"], observer=Observer())
    print(wheels.build(asked, cache=Path(sys.argv[1]), observer=Killer()))
except Error as error:
    print(f"{error.message} | {error.hint}")
    sys.exit(int(error.code))
"""


def build_elsewhere(cache: Path, die_after: int = 0, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", BUILD, str(cache), str(die_after)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )


def test_killed_and_run_again_it_gives_the_same_bytes(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_see(monkeypatch, made.shelf)
    cache = tmp_path / "cache"
    killed = build_elsewhere(cache, die_after=2)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert not (cache / "wheels" / "channels").exists()
    assert list(cache.glob("wheels/packages/*/record.json"))
    again = build_elsewhere(cache)
    said, problems = again.communicate()
    assert again.returncode == 0, problems
    channel = Path(said.strip())
    assert channel.name == made.channel.name
    for path in made.channel.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (channel / path.relative_to(made.channel)).read_bytes(), path.name
    assert not (cache / "wheels" / "work").exists()


@pytest.mark.slow
def test_two_at_once_share_the_work(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_see(monkeypatch, made.shelf)
    both = [build_elsewhere(tmp_path / "cache") for _one in range(2)]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert len({output.splitlines()[-1] for output, _problems in said}) == 1


def test_a_full_disk_is_one_clear_error(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = f'mount -t tmpfs -o size=4m tmpfs "{small}" && exec "$@"'
    inside = ("unshare", "--mount", "sh", "-c", mount, "sh")
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("a file system of a size of its own cannot be mounted here")
    only_see(monkeypatch, made.shelf)
    full = build_elsewhere(small / "cache", prefix=inside)
    said, problems = full.communicate()
    assert full.returncode == 3, problems
    assert "No space left" in said
    assert "ENVKIT_CACHE" in said


def test_a_changed_wheel_is_refused(shelf: Path, tmp_path: Path) -> None:
    path = make_wheel(shelf, "changing", files={"changing.py": "A = 1\n"})
    asked = wheels.plan(variant(), ["changing"], observer=Observer())
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(Error, match="sha256 differs"):
        wheels.build(asked, cache=tmp_path / "cache", observer=Observer())
    path.unlink()
    with pytest.raises(Error, match="no longer there"):
        wheels.build(asked, cache=tmp_path / "cache", observer=Observer())


def unsafe(name: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (unsafe("../outside.py"), "unsafe path"),
        (unsafe("bad/../../outside.py"), "unsafe path"),
        (unsafe("/etc/outside"), "unsafe path"),
        (unsafe("bad\\outside.py"), "unsafe path"),
        (unsafe("bad/link", 0o120777), "not a plain file"),
        (unsafe("bad/fifo", 0o010644), "not a plain file"),
        (unsafe("bad-1.0.data/data/conda-meta/history"), "unexpected file"),
        (unsafe("bad-1.0.data/elsewhere/x"), "unknown folder"),
        (unsafe("bad.py"), "unexpected file"),
        (unsafe("other-1.0.dist-info/METADATA"), "dist-info folders"),
    ],
    ids=lambda value: value.filename if isinstance(value, zipfile.ZipInfo) else None,
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_unsafe_wheel_is_refused(tmp_path: Path, member: zipfile.ZipInfo, said: str) -> None:
    from envkit.wheels.wheel import Layout, pack_wheel
    from envkit.wheels.writer import Index, PackageWriter

    wheel = make_wheel(tmp_path, "bad", files={"bad.py": ""}, members=[(member, b"/etc/passwd")])
    index = Index(name="bad", version="1.0", build="0", subdir="noarch", depends=())
    with pytest.raises(Error, match=said):
        with PackageWriter(tmp_path / "bad-1.0-0.conda", index, level=1) as package:
            pack_wheel(wheel, "bad", Layout.of(MINOR, noarch=True), package)


@pytest.mark.parametrize("points", ["x/y = a:b", ".. = a:b", "ok = a:b; import os", "ok = a"])
def test_an_entry_point_that_is_no_name_is_refused(tmp_path: Path, points: str) -> None:
    from envkit.wheels.wheel import Layout, pack_wheel
    from envkit.wheels.writer import Index, PackageWriter

    wheel = make_wheel(tmp_path, "bad", entry_points=f"[console_scripts]\n{points}\n")
    index = Index(name="bad", version="1.0", build="0", subdir="noarch", depends=())
    with pytest.raises(Error, match="entry point"):
        with PackageWriter(tmp_path / "bad-1.0-0.conda", index, level=1) as package:
            pack_wheel(wheel, "bad", Layout.of(MINOR, noarch=True), package)


def test_a_broken_wheel_is_refused(tmp_path: Path) -> None:
    from envkit.wheels.wheel import Layout, pack_wheel
    from envkit.wheels.writer import Index, PackageWriter

    wheel = make_wheel(tmp_path, "bad", files={"bad.py": "x = 1\n" * 500})
    raw = bytearray(wheel.read_bytes())
    raw[40:60] = bytes(20)
    wheel.write_bytes(raw)
    index = Index(name="bad", version="1.0", build="0", subdir="noarch", depends=())
    with pytest.raises(Error, match="not a sound wheel"):
        with PackageWriter(tmp_path / "bad-1.0-0.conda", index, level=1) as package:
            pack_wheel(wheel, "bad", Layout.of(MINOR, noarch=True), package)
