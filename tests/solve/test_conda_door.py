"""An unmodified conda-lock with `--conda envkit-conda`: all its verbs, on small real channels."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from small_specs import LIBHELLO
from tinychannel import TinyPackage, write_channel

from envkit.errors import InputError
from envkit.lock import read_lock
from envkit.solve.conda_channels import read_setting
from envkit.solve.explicit import read_explicit

PROGRAMS = Path(sys.executable).parent
LINUX = {"CONDA_SUBDIR": "linux-64"}


class Machine:
    """A user's home, and the two programs run in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {
            "HOME": str(home),
            "PATH": f"{PROGRAMS}:/usr/bin:/bin",
            "ENVKIT_HOME": str(home / "envkit"),
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(home / "tmp"),
            "ENVKIT_MIRROR": "official",
        }
        (home / "tmp").mkdir(parents=True)

    def run(
        self, program: str, *arguments: object, code: int = 0, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(PROGRAMS / program), *map(str, arguments)],
            env=self.environ | dict(more or {}),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr or program == "conda-lock"
        return done

    def conda(self, *arguments: object, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run("envkit-conda", *arguments, code=code, more=LINUX | more)

    def write_environment(self, channel: str, *dependencies: str) -> Path:
        path = self.home / "environment.yml"
        path.write_text(
            yaml.safe_dump(
                {
                    "channels": [channel, "nodefaults"],
                    "platforms": ["linux-64"],
                    "dependencies": list(dependencies),
                }
            )
        )
        return path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "home")


@pytest.fixture
def served(channel: Path) -> Iterator[str]:
    """The channel on a loopback server."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(channel))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def check_installed(prefix: Path, libhello: str = "lib\n") -> None:
    assert (prefix / "lib/python3.11/site-packages/hello.py").read_text() == "print('hello')\n"
    assert (prefix / "lib/libhello.txt").read_text() == libhello
    records = {path.name for path in (prefix / "conda-meta").glob("*.json")}
    assert {"hello-2.0-py_0.json", "python-3.11.9-h1_0_cpython.json"} <= records
    hello = json.loads((prefix / "conda-meta/hello-2.0-py_0.json").read_text())
    assert hello["depends"] == ["python >=3.11", "libhello 1.* hb_*"]


@pytest.mark.parametrize("transport", ["file", pytest.param("http", marks=pytest.mark.slow)])
def test_conda_lock_locks_renders_and_installs(
    machine: Machine, channel: Path, served: str, transport: str
) -> None:
    url = f"file://{channel}" if transport == "file" else served
    source = machine.write_environment(url, "python=3.11", "hello")
    machine.run("conda-lock", "lock", "--conda", "envkit-conda", "-f", source)
    lock = read_lock(machine.home / "conda-lock.yml")
    assert [(package.name, package.version) for package in lock.packages] == [
        ("hello", "2.0"),
        ("libhello", "1.5"),
        ("python", "3.11.9"),
    ]
    assert all(package.url.startswith(f"{url}/") for package in lock.packages)
    machine.run("conda-lock", "render", "--kind", "explicit", "-p", "linux-64", "conda-lock.yml")
    assert len(read_explicit(machine.home / "conda-linux-64.lock")) == 3
    prefix = machine.home / "env"
    machine.run("conda-lock", "install", "--conda", "envkit-conda", "-p", prefix, "conda-lock.yml")
    check_installed(prefix)
    assert (prefix / "conda-meta/history").exists()


@pytest.mark.slow
def test_conda_lock_updates_one_package_of_a_lock(machine: Machine, channel: Path) -> None:
    source = machine.write_environment(f"file://{channel}", "hello", "libhello=1.4")
    machine.run("conda-lock", "lock", "--conda", "envkit-conda", "-f", source)
    machine.write_environment(f"file://{channel}", "hello", "libhello")
    machine.run("conda-lock", "lock", "--conda", "envkit-conda", "-f", source, "--update", "hello")
    assert {p.name: p.version for p in read_lock(machine.home / "conda-lock.yml").packages}[
        "libhello"
    ] == "1.4"
    machine.run("conda-lock", "lock", "--conda", "envkit-conda", "-f", source, "--update", "libhello")
    after = {p.name: p.version for p in read_lock(machine.home / "conda-lock.yml").packages}
    assert after == {"hello": "2.0", "libhello": "1.5", "python": "3.11.9"}


def test_conda_lock_tells_why_it_cannot_be_solved(machine: Machine, channel: Path) -> None:
    source = machine.write_environment(f"file://{channel}", "hello", "libhello=9")
    done = machine.run("conda-lock", "lock", "--conda", "envkit-conda", "-f", source, code=1)
    assert "Could not lock the environment for platform linux-64" in done.stderr
    assert "libhello" in done.stderr


@pytest.mark.slow
def test_an_env_kind_lock_installs_too(machine: Machine, channel: Path) -> None:
    source = machine.write_environment(f"file://{channel}", "hello", "libhello=1.4")
    machine.run("conda-lock", "-k", "env", "--conda", "envkit-conda", "-f", source)
    prefix = machine.home / "env"
    machine.run("conda-lock", "install", "--conda", "envkit-conda", "-p", prefix, "conda-linux-64.lock.yml")
    check_installed(prefix, libhello="old\n")


def test_a_changed_archive_is_not_installed(machine: Machine, channel: Path) -> None:
    archive = channel / "noarch/hello-2.0-py_0.conda"
    archive.write_bytes(archive.read_bytes()[:-1] + b"x")
    prefix = machine.home / "env"
    done = machine.conda("create", "-y", "-p", prefix, "-c", f"file://{channel}", "hello", code=3)
    assert "hello-2.0-py_0.conda" in done.stderr
    assert not (prefix / "conda-meta").exists()


def test_another_hash_than_the_channels_is_not_installed(machine: Machine, channel: Path) -> None:
    listed = machine.home / "explicit.txt"
    listed.write_text(f"@EXPLICIT\nfile://{channel}/noarch/hello-2.0-py_0.conda#{'0' * 32}\n")
    done = machine.conda("create", "-y", "-p", machine.home / "env", "--file", listed, code=3)
    assert "with other hashes" in done.stderr
    assert "envkit install --lock" in done.stderr


def test_a_dry_run_touches_nothing(machine: Machine, channel: Path) -> None:
    prefix = machine.home / "env"
    done = machine.conda(
        "create", "--prefix", prefix, "--dry-run", "--json", "--override-channels",
        "--channel", f"file://{channel}", "hello", "libhello 1.4.*",
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert answer["success"] is True
    fetched = {one["name"]: one for one in answer["actions"]["FETCH"]}
    assert fetched["libhello"]["version"] == "1.4"
    assert fetched["hello"]["depends"] == ["python >=3.11", "libhello 1.* hb_*"]
    assert fetched["hello"]["url"] == f"file://{channel}/noarch/hello-2.0-py_0.conda"
    assert len(fetched["hello"]["sha256"]) == 64 and len(fetched["hello"]["md5"]) == 32
    assert {one["name"] for one in answer["actions"]["LINK"]} == fetched.keys()
    assert not prefix.exists()


def test_creates_lists_and_runs(machine: Machine, channel: Path) -> None:
    prefix = machine.home / "env"
    machine.conda("create", "-y", "-n", "made", "-c", f"file://{channel}", "hello")
    prefix = machine.home / "envkit/envs/made"
    check_installed(prefix)
    names = {one["name"] for one in json.loads(machine.conda("list", "-p", prefix, "--json").stdout)}
    assert names == {"hello", "libhello", "python"}
    assert machine.conda("run", "-p", prefix, "python3.11").stdout == "3.11.9\n"
    machine.conda("run", "-p", prefix, "sh", "-c", "exit 7", code=7)
    machine.conda("run", "-p", prefix, "no-such-program", code=3)


def test_what_conda_says_of_itself(machine: Machine) -> None:
    assert machine.conda("--version").stdout.startswith("conda 24.")
    info = json.loads(machine.conda("info", "--json", CONDA_PKGS_DIRS="/a/b").stdout)
    assert info["pkgs_dirs"] == ["/a/b"]
    assert info["platform"] == "linux-64"
    config = json.loads(machine.conda("config", "--show", "channel_priority", "--json").stdout)
    assert config["channel_priority"] == "strict"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("create", "-p", "x", "--dry-run", "hello"), 2, "no channel"),
        (("create", "-p", "x", "-c", "file:///nowhere", "hello"), 3, "nowhere"),
        (("install", "-p", "x", "hello"), 2, "does not change environments"),
        (("create", "hello"), 2, "--prefix"),
        (("create", "-n", "../x", "hello"), 2, "not a name"),
        (("remove", "-p", "x"), 2, "invalid choice"),
        (("run", "-p", "nowhere", "ls"), 2, "not a conda environment"),
        (("create", "-p", "x", "--file", "nowhere.txt"), 2, "no such file"),
    ],
)
def test_bad_requests(machine: Machine, arguments: tuple[str, ...], code: int, message: str) -> None:
    assert message in machine.conda(*arguments, code=code).stderr


def test_errors_are_json_where_json_was_asked_for(machine: Machine, channel: Path) -> None:
    done = machine.conda(
        "create", "-p", "x", "--dry-run", "--json", "-c", f"file://{channel}", "nosuchthing", code=1
    )
    answer = json.loads(done.stdout)
    assert answer["success"] is False
    assert "nosuchthing" in answer["message"]


def test_a_folder_that_is_no_environment_is_left_alone(machine: Machine, channel: Path) -> None:
    prefix = machine.home / "mine"
    prefix.mkdir()
    (prefix / "thesis.txt").write_text("words")
    done = machine.conda("create", "-y", "-p", prefix, "-c", f"file://{channel}", "hello", code=2)
    assert "not a conda environment" in done.stderr
    assert [path.name for path in prefix.iterdir()] == ["thesis.txt"]


def test_virtual_packages_of_conda_locks_channel(tmp_path: Path) -> None:
    from conda_lock.virtual_package import default_virtual_package_repodata

    repodata = default_virtual_package_repodata(cuda_version="12.1")
    for platform, expected in [
        (
            "linux-64",
            {"__archspec": "1", "__cuda": "12.1", "__glibc": "2.28", "__linux": "5.10", "__unix": "0"},
        ),
        ("osx-64", {"__archspec": "1", "__osx": "11.0", "__unix": "0"}),
    ]:
        setting = read_setting(["conda-forge", repodata.channel_url], {"CONDA_SUBDIR": platform})
        assert setting.channels == ("conda-forge",)
        assert {one.name: one.version for one in setting.virtual_packages} == expected
    assert {one.name: one.build for one in setting.virtual_packages}["__archspec"] == "x86_64"


def test_virtual_packages_without_it_are_the_machines_with_condas_overrides() -> None:
    environ = {"CONDA_OVERRIDE_CUDA": "12.4", "CONDA_OVERRIDE_GLIBC": "2.17"}
    found = {one.name: one.version for one in read_setting(["defaults"], environ).virtual_packages}
    assert (found["__cuda"], found["__glibc"]) == ("12.4", "2.17")
    assert read_setting(["defaults", "conda-forge"], environ).channels == (
        "pkgs/main",
        "pkgs/r",
        "conda-forge",
    )
    other = read_setting(["conda-forge"], {"CONDA_SUBDIR": "win-64", "CONDA_OVERRIDE_CUDA": ""})
    assert [one.name for one in other.virtual_packages] == ["__win"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("https://h/c/linux-64/x-1-0.conda", "no md5 or sha256"),
        ("https://h/c/linux-64/x-1-0.conda#abc", "no md5 or sha256"),
        ("https://h/c/linux-64/x-1-0.zip#" + "0" * 32, "not the URL"),
        ("https://h/c/../x-1-0.conda#" + "0" * 32, "not the URL"),
        ("https://h/c/linux-64/x-1.conda#" + "0" * 32, "not the file name"),
        ("rm -rf", "not the URL"),
    ],
)
def test_explicit_files_are_read_strictly(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "explicit.txt"
    path.write_text(f"# comment\n@EXPLICIT\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        read_explicit(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    path.write_text("https://h/c/linux-64/x-1-0.conda\n")
    with pytest.raises(InputError, match="@EXPLICIT"):
        read_explicit(path)


def test_explicit_hashes_of_both_kinds(tmp_path: Path) -> None:
    path = tmp_path / "explicit.txt"
    url = "https://h/c/linux-64/x-1-0.conda"
    path.write_text(f"@EXPLICIT\n{url}#{'AB' * 16}\n{url}#sha256:{'cd' * 32}\n{url}#{'ef' * 32}\n")
    one, two, three = read_explicit(path)
    assert (one.md5, one.sha256) == ("ab" * 16, None)
    assert (two.md5, two.sha256, three.sha256) == (None, "cd" * 32, "ef" * 32)
    assert one.agrees("ab" * 16, "00" * 32) and not one.agrees("00" * 16, "00" * 32)


def test_the_door_leaves_no_temporary_folders(machine: Machine, channel: Path) -> None:
    machine.conda("create", "-p", "x", "--dry-run", "--json", "-c", f"file://{channel}", "hello")
    assert not any((machine.home / "tmp").iterdir())


def test_a_channel_is_told_from_a_virtual_one(tmp_path: Path) -> None:
    write_channel(tmp_path / "real", LIBHELLO, TinyPackage("__odd"))
    setting = read_setting([f"file://{tmp_path}/real"], LINUX)
    assert setting.channels == (f"file://{tmp_path}/real",)
