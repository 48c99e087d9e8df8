"""Cleaning: every kind finds what it should and nothing else; nothing in use goes."""

from __future__ import annotations

import multiprocessing.shared_memory
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tinychannel import Channel, TinyPackage

from envkit import fetch, install
from envkit.errors import Error
from envkit.model import Lock
from envkit.up.clean import KINDS, clean, here
from envkit.up.clean.found import Place

DEAD = 4_194_305
"""Above the highest process id of a machine with the usual limit."""
CACHE_KINDS = ("unfinished", "partial", "downloads", "packages", "pip-files", "channels", "pip", "repodata")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Folders of our own for everything, shared memory in a real one."""
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ENVKIT_CACHE", raising=False)
    shared = Path(tempfile.mkdtemp(prefix="envkit-test-", dir="/dev/shm"))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    yield replace(here(), temporary=temporary, shared_memory=shared)
    shutil.rmtree(shared)


@pytest.fixture
def lock(tmp_path: Path) -> Lock:
    made = Channel(tmp_path / "channel")
    for name in ("one", "two"):
        made.add(TinyPackage(name, files={f"share/{name}.bin": b"%d" % len(name) * 50_000}))
    return made.lock()


def installed(lock: Lock, place: Place, name: str = "tiny") -> Path:
    made = install.install(
        lock,
        place.environments / name,
        name=name,
        variant=None,
        routes=fetch.routes("official"),
        cache=place.cache,
    )
    return made.prefix


def cleaned(place: Place, *kinds: str, every: bool = False) -> dict[str, list[str]]:
    """The names of what went, by kind; all that was found went, unless it was a dry run."""
    result = {}
    for one in clean(place, kinds, every=every):
        assert one.skipped == ""
        assert one.failed == ()
        if one.chosen:
            result[one.kind.name] = sorted(path.name for path in one.paths)
            assert place.dry_run or not any(os.path.lexists(path) for path in one.paths)
    return result


def tree(*folders: Path) -> list[tuple[str, int]]:
    return sorted(
        (str(path), path.lstat().st_mtime_ns) for folder in folders for path in [folder, *folder.rglob("*")]
    )


def old(path: Path) -> Path:
    before = time.time() - 3 * 86_400
    os.utime(path, (before, before))
    return path


def test_nothing_where_there_is_nothing(place, tmp_path):
    assert set(map(len, cleaned(place, every=True).values())) == {0}
    assert not (tmp_path / "home").exists()


def test_without_a_choice_what_must_be_fetched_again_stays(place, lock):
    prefix = installed(lock, place)
    install.remove(install.read_environment(str(prefix)))
    (place.cache / "downloads").mkdir(exist_ok=True)
    (place.cache / "downloads" / f"{'a' * 64}.partial").write_bytes(b"half")
    done = {one.kind.name: one for one in clean(place)}
    assert [name for name, one in done.items() if one.chosen] == [
        "staging", "temporary", "shared-memory", "unfinished",
    ]  # fmt: skip
    assert len(done["packages"].paths) == 2
    assert done["packages"].size > 100_000
    assert (place.cache / "downloads" / f"{'a' * 64}.partial").exists()
    assert (place.cache / "pkgs" / "one-1.0-0").is_dir()


def test_packages_that_an_environment_uses_stay(place, lock):
    installed(lock, place)
    assert cleaned(place, "packages") == {"packages": []}
    (only,) = clean(place, ["packages"])
    assert only.kept > 2 * 50_000


def test_packages_of_an_environment_anywhere_stay_and_go_with_it(place, lock, tmp_path):
    elsewhere = install.install(
        lock,
        tmp_path / "elsewhere",
        name="e",
        variant=None,
        routes=fetch.routes("official"),
        cache=place.cache,
    )
    assert cleaned(place, "packages") == {"packages": []}
    install.remove(elsewhere)
    (only,) = clean(replace(place, dry_run=True), ["packages"])
    assert cleaned(place, "packages") == {"packages": ["one-1.0-0", "two-1.0-0"]}
    assert only.size > 100_000
    assert not list((place.cache / "pkgs").glob("one*"))
    installed(lock, place)  # fetched again


def test_packages_that_were_copied_into_an_environment_stay(place, lock):
    prefix = installed(lock, place)
    for path in prefix.rglob("*.bin"):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    assert cleaned(place, "packages") == {"packages": []}


def test_what_is_unfinished_or_no_longer_trusted(place, lock):
    installed(lock, place)
    own = place.cache / "pkgs" / ".envkit"
    (own / "unpacking" / "three-1.0-0").mkdir()
    (place.cache / "wheels" / "work" / "tmpx").mkdir(parents=True)
    (place.cache / "repodata").mkdir(exist_ok=True)
    (place.cache / "repodata" / ".fetch-x").mkdir()
    (own / "locks" / "gone-1.0-0.lock").touch()
    (own / "seals" / "two-1.0-0.json").unlink()
    (place.cache / "pkgs" / "one-1.0-0" / "share" / "more").write_text("somebody's")
    sha256 = lock.packages[0].sha256
    (place.cache / "downloads" / f"{'b' * 64}.partial").write_bytes(b"of something else")
    (place.cache / "downloads" / f"{sha256}.partial").write_bytes(b"half")
    found = cleaned(place, "unfinished")["unfinished"]
    assert {"three-1.0-0", "tmpx", ".fetch-x", "gone-1.0-0.lock", "one-1.0-0", "two-1.0-0"} <= set(found)
    # The package is no longer trusted: its download would be resumed.
    assert f"{sha256}.partial" not in found
    installed(lock, place, "again")
    (place.cache / "downloads" / f"{sha256}.partial").write_bytes(b"half")
    assert cleaned(place, "unfinished") == {"unfinished": [f"{sha256}.partial"]}
    assert (place.cache / "downloads" / f"{'b' * 64}.partial").exists()
    assert cleaned(place, "partial") == {"partial": [f"{'b' * 64}.partial"]}


def test_downloads_wheels_pip_and_indexes(place):
    for path in (
        f"downloads/{'a' * 64}.conda", f"pip-files/{'b' * 64}/x.whl", "wheels/lock", "pip/http/x", "pypi/x",
        "repodata/index.json",
    ):  # fmt: skip
        (place.cache / path).parent.mkdir(parents=True, exist_ok=True)
        (place.cache / path).write_bytes(b"x")
    assert cleaned(place, "downloads", "pip-files", "pip", "repodata") == {
        "downloads": [f"{'a' * 64}.conda"], "pip-files": ["b" * 64], "pip": ["pip", "pypi"],
        "repodata": ["index.json"],
    }  # fmt: skip
    assert (place.cache / "wheels" / "lock").exists()


def test_channels_that_a_lock_names_stay(place):
    root = place.cache / "wheels"
    for key, package in (("1" * 32, "p1"), ("2" * 32, "p2"), ("3" * 32, "p3")):
        (root / "packages" / package).mkdir(parents=True)
        (root / "packages" / package / "x.conda").write_bytes(package.encode())
        (root / "channels" / key / "linux-64").mkdir(parents=True)
        os.link(root / "packages" / package / "x.conda", root / "channels" / key / "linux-64" / "x.conda")
    locks = place.state / "locks" / "wheels"
    locks.mkdir(parents=True)
    (locks / "conda-lock.yml").write_text(f"url: file://{root}/channels/{'1' * 32}/linux-64/x.conda\n")
    copy = place.environments / "e" / "conda-meta"
    copy.mkdir(parents=True)
    (copy / "envkit-lock.yml").write_text(f"- url: file://{root}/channels/{'2' * 32}\n")
    assert cleaned(place, "channels") == {"channels": ["3" * 32, "p3"]}
    assert sorted(path.name for path in (root / "packages").iterdir()) == ["p1", "p2"]


def test_a_dry_run_touches_nothing(place, lock, tmp_path):
    prefix = installed(lock, place)
    install.remove(install.read_environment(str(prefix)))
    (place.temporary / f"envkit-checks-{DEAD}-abcdefgh").mkdir()
    stage = place.environments / ".x.envkit-stage-1"
    stage.mkdir()
    before = tree(tmp_path / "home", place.temporary)
    found = cleaned(replace(place, dry_run=True), every=True)
    assert found["packages"] == ["one-1.0-0", "two-1.0-0"]
    assert found["temporary"] == [f"envkit-checks-{DEAD}-abcdefgh"]
    assert found["staging"] == [".x.envkit-stage-1"]
    assert tree(tmp_path / "home", place.temporary) == before


def test_what_another_process_uses_stays(place, lock):
    prefix = installed(lock, place)
    install.remove(install.read_environment(str(prefix)))
    code = "import sys\nfrom pathlib import Path\nfrom envkit.fetch.use import use\n"
    code += "use(Path(sys.argv[1])); print('in use', flush=True); sys.stdin.read()\n"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(place.cache)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "in use\n"
        for dry_run in (True, False):
            done = clean(replace(place, dry_run=dry_run), CACHE_KINDS)
            assert all(one.skipped and not one.paths for one in done)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert cleaned(place, "packages") == {"packages": ["one-1.0-0", "two-1.0-0"]}
    finally:
        child.kill()
        child.communicate()


INSTALL = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tinychannel import Channel, TinyPackage
from envkit import fetch, install
from envkit.install import link as linking
made = Channel(Path(sys.argv[2]))
made.add(TinyPackage("one")), made.add(TinyPackage("two"))
real = linking.link
def slowly(*args, **options):
    print("fetched", flush=True)
    sys.stdin.readline()
    return real(*args, **options)
sys.modules["envkit.install.install"].link = slowly
install.install(made.lock(), Path(sys.argv[3]), name="tiny", variant=None,
                routes=fetch.routes("official"), cache=Path(sys.argv[4]))
"""


def test_an_install_between_fetching_and_linking_loses_nothing(place, tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", INSTALL, str(Path(__file__).parents[1]), str(tmp_path / "theirs"),
         str(place.environments / "tiny"), str(place.cache)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "fetched\n"
    done = clean(place, [*CACHE_KINDS, "staging"])
    assert {one.kind.name for one in done if one.skipped} == set(CACHE_KINDS)
    assert not any(one.paths for one in done)
    child.communicate("\n", timeout=120)
    assert child.returncode == 0
    assert (place.environments / "tiny" / "share" / "one.txt").exists()


def test_whoever_wants_the_cache_waits_for_the_cleaning(place):
    from envkit.fetch.use import alone

    place.cache.mkdir(parents=True)
    code = "import sys\nfrom pathlib import Path\nfrom envkit.fetch.use import use\n"
    code += "from envkit.progress import Observer\nclass Say(Observer):\n"
    code += "    def note(self, text): print(text, flush=True)\n"
    code += "use(Path(sys.argv[1]), Say()); print('in use', flush=True)\n"
    with alone(place.cache) as free:
        assert free
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(place.cache)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert str(place.cache) in child.stdout.readline()
    assert child.communicate(timeout=60)[0] == "in use\n"


KILLED = """
import os, signal, sys
from pathlib import Path
from envkit.install.hold import hold
from envkit.install.stage import staged
from envkit.progress import SILENT
prefix = Path(sys.argv[1])
with hold(prefix, SILENT), staged(prefix, SILENT) as stage:
    stage.prefix.mkdir()
    (stage.prefix / "file").write_text("half-made")
    print("staged", flush=True)
    if sys.argv[2] == "wait":
        sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_stages_of_dead_processes_go_and_those_of_living_ones_stay(place, lock):
    installed(lock, place)
    order = [sys.executable, "-c", KILLED]
    subprocess.run([*order, str(place.environments / "tiny"), ""], check=False, stdout=subprocess.DEVNULL)
    (place.environments / ".lonely.envkit-lock").touch()
    child = subprocess.Popen(
        [*order, str(place.environments / "busy"), "wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "staged\n"
        found = cleaned(place, "staging")["staging"]
        assert len(found) == 2
        assert found[0] == ".lonely.envkit-lock"
        assert found[1].startswith(".tiny.envkit-stage-")
        left = sorted(path.name for path in place.environments.iterdir())
        assert left == [".busy.envkit-lock", f".busy.envkit-stage-{child.pid}", "tiny"]
    finally:
        child.communicate()
    assert len(cleaned(place, "staging")["staging"]) == 1
    assert [path.name for path in place.environments.iterdir()] == ["tiny"]


def test_temporary_folders(place):
    mine = {
        f"envkit-checks-{DEAD}-abcdefgh": True,
        f"envkit-pip-{DEAD}-abcdefgh.txt": True,
        f"envkit-checks-{os.getpid()}-abcdefgh": False,
        "envkit-checks-abcdefgh": False,
        "envkit-plan-hgfedcba": True,
        "envkit-notes": False,
        f"envkit-other-{DEAD}-abcdefgh": False,
    }
    for name in mine:
        path = place.temporary / name
        path.write_text("x") if name.endswith(".txt") else path.mkdir()
    old(place.temporary / "envkit-plan-hgfedcba")
    (place.temporary / f"envkit-lock-{DEAD}-abcdefgh").symlink_to(place.temporary)
    assert cleaned(place, "temporary")["temporary"] == sorted(name for name, goes in mine.items() if goes)


def test_shared_memory(place):
    for name in (
        f"torch_{DEAD}_1_0", f"torch_{os.getpid()}_1_0", "sem.mp-abc", "psm_0123abcd", "sem.another",
        "theirs", "psm_ffff",
    ):  # fmt: skip
        old_one = place.shared_memory / name
        old_one.write_bytes(b"x" * 5000)
        old(old_one)
    (place.shared_memory / f"torch_{DEAD}_2_0").write_bytes(b"young")
    with (place.shared_memory / "psm_ffff").open("rb"):
        assert cleaned(place, "shared-memory")["shared-memory"] == [
            "psm_0123abcd", "sem.mp-abc", f"torch_{DEAD}_1_0",
        ]  # fmt: skip
    assert cleaned(place, "shared-memory")["shared-memory"] == ["psm_ffff"]


def test_shared_memory_that_is_mapped_stays(place):
    used = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    try:
        real = Path("/dev/shm") / used.name.lstrip("/")
        os.link(real, place.shared_memory / "psm_abc123")
        old(real)
        assert cleaned(place, "shared-memory") == {"shared-memory": []}
    finally:
        used.close()
        used.unlink()
    assert cleaned(place, "shared-memory") == {"shared-memory": ["psm_abc123"]}


def test_what_cannot_be_deleted_is_told(place):
    if os.geteuid() == 0:
        pytest.skip("root deletes everything")
    folder = place.cache / "downloads"
    folder.mkdir(parents=True)
    (folder / f"{'a' * 64}.conda").write_bytes(b"x")
    folder.chmod(0o500)
    try:
        (one,) = clean(place, ["downloads"])
    finally:
        folder.chmod(0o700)
    assert [path.name for path, _reason in one.failed] == [f"{'a' * 64}.conda"]
    assert one.size == 0


def test_every_kind_is_documented():
    import envkit.up.clean

    assert all(f"\n    {kind.name} " in (envkit.up.clean.__doc__ or "") for kind in KINDS)


def test_sizes_are_what_goes(place, lock):
    installed(lock, place, "a")
    installed(lock, place, "b")
    for name in ("a", "b"):
        install.remove(install.read_environment(str(place.environments / name)))
    (one,) = clean(replace(place, dry_run=True), ["packages"])
    blocks = sum(
        path.lstat().st_blocks * 512
        for name in ("one-1.0-0", "two-1.0-0")
        for path in [place.cache / "pkgs" / name, *(place.cache / "pkgs" / name).rglob("*")]
    )
    assert blocks <= one.size <= blocks + 8192


def test_a_cache_in_a_folder_that_others_use_takes_nothing_of_theirs(place: Place, lock: Lock) -> None:
    """ENVKIT_CACHE may be where conda has its packages, or where somebody keeps bundles."""
    theirs = (
        "pkgs/numpy-2.0-0/info/files", "pkgs/numpy-2.0-0.lock", "pkgs/urls.txt", "bundles/team.tar",
        "wheels/work/thesis", "downloads/film.partial", "repodata/notes.txt",
    )  # fmt: skip
    for name in theirs:
        file = place.cache / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    clean(place, every=True)
    assert all((place.cache / name).read_text() == name for name in theirs)
    with pytest.raises(Error, match="another program"):
        installed(lock, place)
