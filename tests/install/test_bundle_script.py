"""A bundle on a machine that has nothing: no network, no envkit, a POSIX shell and Python alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from smallbundle import ROOT, call, digest, mirror_and_lock, pip_sees, snapshot, write_shelf

PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
ALONE = ("unshare", "-rn")
SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]
SCRIPT = ROOT / "envkit" / "install" / "bundle" / "install.sh"

needs_unshare = pytest.mark.skipif(
    subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0, reason="no unshare"
)


def make(folder: Path, *, shelf: Path | None) -> Path:
    mirror, path = mirror_and_lock(folder)
    env = {"ENVKIT_HOME": str(folder / "maker"), "HOME": str(folder)}
    if shelf is not None:
        env |= pip_sees(shelf)
    done = call(
        "bundle", "--lock", str(path), "--name", "tiny", "--mirror", mirror.as_uri(), "--only-mirrors",
        "-o", str(folder / "tiny.tar"), "--json", env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["result"]
    assert said["sha256"] == digest((folder / "tiny.tar").read_bytes())
    assert said["bytes"] == (folder / "tiny.tar").stat().st_size
    shutil.rmtree(mirror)
    return folder / "tiny.tar"


@pytest.fixture(scope="module")
def tar(tmp_path_factory):
    """A bundle with what envkit imports, as it is installed here."""
    folder = tmp_path_factory.mktemp("bundle")
    return make(folder, shelf=write_shelf(folder / "wheels", real=True))


@pytest.fixture(scope="module")
def folder(tar, tmp_path_factory):
    """The same, unpacked where names are hard."""
    place = tmp_path_factory.mktemp("there") / '-it\'s a "bundle" $HOME `x`'
    with tarfile.open(tar) as bundle:
        bundle.extractall(place)
    return place


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python with the standard library alone."""
    made = tmp_path_factory.mktemp("python") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    return made / "bin"


@pytest.fixture
def bare(tmp_path, bare_python):
    """A machine's environment: nothing of envkit in it."""
    (tmp_path / "tmp").mkdir()
    return {
        "PATH": f"{bare_python}:/usr/bin:/bin", "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"), "LC_ALL": "C.UTF-8", "PYTHONPATH": "/nowhere",
    }  # fmt: skip


def sh(*arguments, env, shell="sh", cwd=None, within=()):
    program = ["busybox", "sh"] if shell == "busybox" else [shell]
    done = subprocess.run(
        [*within, *program, *map(str, arguments)],
        env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_the_script_is_sound():
    for shell in SHELLS:
        assert sh("-n", SCRIPT, env=os.environ, shell=shell).returncode == 0


@needs_unshare
@pytest.mark.parametrize("shell", SHELLS)
def test_installs_alone(folder, bare, tmp_path, shell):
    """From a folder and to a prefix that a careless script would trip over, with networking unshared."""
    prefix = tmp_path / "-p it's"
    done = sh(
        folder / "install.sh", prefix.name, "--progress", "plain",
        env=bare, shell=shell, cwd=tmp_path, within=ALONE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (prefix / "share" / "foo.txt").read_text() == "this is foo\n"
    assert (prefix / "conda-meta" / "history").is_file()
    assert "the bundle's sha256 is" in done.stderr
    assert snapshot(tmp_path / "tmp") == []
    # What it says to evaluate is there to be evaluated.
    entered = sh("-c", f'{done.stdout}\nprintf %s "$CONDA_PREFIX"', env=bare, shell="bash", cwd=tmp_path)
    assert entered.stdout == str(prefix), entered.stderr


def test_from_its_own_folder(folder, bare, tmp_path):
    done = sh("install.sh", tmp_path / "env", env=bare, cwd=folder)
    assert done.returncode == 0, done.stderr


def test_writes_nothing_into_the_bundle(folder, bare, tmp_path):
    before = snapshot(folder)
    assert sh(folder / "install.sh", tmp_path / "env", env=bare).returncode == 0
    assert snapshot(folder) == before


def test_exit_codes_pass_through(folder, bare, tmp_path):
    (tmp_path / "taken").write_text("a file")
    done = sh(folder / "install.sh", tmp_path / "taken", env=bare)
    assert done.returncode == 2
    assert "error:" in done.stderr
    assert "hint:" in done.stderr
    done = sh(folder / "install.sh", tmp_path / "env", "--sha256", "0" * 64, env=bare)
    assert done.returncode == 2
    assert not (tmp_path / "env").exists()
    done = sh(folder / "install.sh", "--envkit", "drift", tmp_path / "env", env=bare)
    assert done.returncode == 2 or done.returncode == 3
    assert snapshot(tmp_path / "tmp") == []


def test_usage(folder, bare):
    for arguments, code in (((), 2), (("--help",), 0), (("",), 2)):
        done = sh(folder / "install.sh", *arguments, env=bare)
        assert done.returncode == code
        assert "usage:" in done.stderr


def test_a_python_that_is_named(folder, bare, bare_python, tmp_path):
    named = tmp_path / "my python"
    named.write_text(f'#!/bin/sh\nexec {bare_python}/python3 "$@"\n')
    named.chmod(0o755)
    done = sh(folder / "install.sh", tmp_path / "env", env=bare | {"PYTHON": str(named)})
    assert done.returncode == 0, done.stderr
    done = sh(folder / "install.sh", tmp_path / "env", env=bare | {"PYTHON": "/bin/true-not"})
    assert done.returncode == 3
    assert "PYTHON" in done.stderr


def test_the_script_without_the_rest(bare, tmp_path):
    shutil.copy(SCRIPT, tmp_path / "install.sh")
    done = sh("install.sh", "env", env=bare, cwd=tmp_path)
    assert done.returncode == 2
    assert "tar -xf" in done.stderr


def test_without_python(folder, bare, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(folder / "install.sh"), str(tmp_path / "env")],
        env=bare | {"PATH": str(tmp_path / "bin")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "PYTHON=" in done.stderr


@pytest.mark.parametrize("name", ["bundle.json", "envkit-wheels/envkit-*.whl"])
def test_damaged_wheels_are_not_run(tar, bare, tmp_path, name):
    with tarfile.open(tar) as bundle:
        bundle.extractall(tmp_path / "there")
    (harmed,) = (tmp_path / "there").glob(name)
    harmed.write_bytes(harmed.read_bytes()[:-100])
    done = sh(tmp_path / "there" / "install.sh", tmp_path / "env", env=bare)
    assert done.returncode == 3
    assert "damaged" in done.stderr
    assert snapshot(tmp_path / "tmp") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_interrupted_it_cleans_up(folder, bare, tmp_path, number):
    for delay in (0.0, 0.2, 0.5):
        process = subprocess.Popen(
            ["sh", str(folder / "install.sh"), str(tmp_path / "env")],
            env=bare, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        while not snapshot(tmp_path / "tmp") and process.poll() is None:
            time.sleep(0.01)
        time.sleep(delay)
        os.killpg(process.pid, number)
        said = process.communicate(timeout=60)[1]
        assert "Traceback" not in said
        assert process.returncode in (0, 130, 128 + number), said
        assert snapshot(tmp_path / "tmp") == []


@needs_unshare
def test_from_a_tar_with_networking_unshared(tar, tmp_path):
    env = {"ENVKIT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    for prefix in ("first", "second"):
        done = call(
            "install", "--from", str(tar), "--offline", "--sha256", digest(tar.read_bytes()).upper(),
            "--prefix", str(tmp_path / prefix), "--json", env=env, within=ALONE,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["result"]["installed"]
    done = call("install", "--from", str(tar), "--offline", env=env, within=ALONE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "home" / "envs" / "tiny" / "share" / "foo.txt").is_file()
    done = call("install", "--from", str(tar), "--offline", "--json", env=env, within=ALONE)
    assert not json.loads(done.stdout)["result"]["installed"]
    assert snapshot(tmp_path / "home" / "cache" / "bundles") == [".lock"]


def test_a_cut_one_is_refused_by_the_command(tar, tmp_path):
    (tmp_path / "cut.tar").write_bytes(tar.read_bytes()[:100_000])
    done = call(
        "install", "--from", str(tmp_path / "cut.tar"), "--offline", "--json",
        env={"ENVKIT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert "cut off" in error["message"]
    assert "sha256" in error["hint"]
    assert not (tmp_path / "home").exists()


def _runs(python):
    return python and subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


@pytest.mark.network
@pytest.mark.slow
@needs_unshare
def test_with_the_wheels_that_pip_fetches(tmp_path, bare):
    """The real ones, in every Python that is here."""
    there = tmp_path / "there"
    with tarfile.open(make(tmp_path, shelf=None)) as bundle:
        bundle.extractall(there)
    pythons = json.loads((there / "bundle.json").read_bytes())["pythons"]
    assert pythons == ["3.10", "3.11", "3.12", "3.13"]
    tried = 0
    for version in pythons:
        found = [
            shutil.which(f"python{version}"),
            *PYENV.glob(f"{version}.*/bin/python3"),
        ]
        for python in filter(_runs, found):
            done = sh(
                there / "install.sh",
                tmp_path / f"env-{tried}",
                env=bare | {"PYTHON": str(python)},
                within=ALONE,
            )
            assert done.returncode == 0, done.stderr
            tried += 1
    assert tried
