"""The package cache: what rattler finds in it, what must not get into it, and who else may be using it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from faultyserver import Server
from tinychannel import TinyPackage, channel_files, member, write_tree
from watching import Notes, impatient

from envkit.errors import Error, InputError
from envkit.fetch import FetchError, archives, package_cache, routes
from envkit.fetch.store import Store
from envkit.model import Package

FOO = TinyPackage(noarch="generic")
BAR = TinyPackage("bar", ending=".tar.bz2")


def tree_of(tmp_path: Path, *packages: TinyPackage) -> str:
    return f"file://{write_tree(tmp_path / 'tree', channel_files(*packages))}"


def have(tmp_path: Path, *packages: TinyPackage, notes: Notes | None = None) -> Path:
    """The package cache after these packages were had from a directory."""
    archives(
        [package.locked() for package in packages],
        routes=routes(tree_of(tmp_path, *packages), only=True),
        cache=tmp_path / "cache",
        observer=notes or Notes(),
    )
    return package_cache(tmp_path / "cache")


INSTALL = """
import asyncio, sys
from pathlib import Path
from rattler import PackageRecord, RepoDataRecord, install
from rattler.package import BuildString
from rattler.package_cache import PackageCache, ValidationMode
from rattler.platform import Subdir

cache, prefix, url, sha256, file = sys.argv[1:]
name, version, build = file.removesuffix(".conda").removesuffix(".tar.bz2").split("-")
record = PackageRecord(
    name, version, BuildString(build), 0, url.split("/")[-2], depends=[], sha256=bytes.fromhex(sha256)
)
channel = url.rsplit("/", 2)[0]
layer = PackageCache.new_layered([Path(cache)], validation_mode=ValidationMode.fast())
try:
    asyncio.run(
        install(
            [RepoDataRecord(record, file, url, channel)],
            prefix,
            platform=Subdir("linux-64"),
            package_cache=layer,
            show_progress=False,
        )
    )
    print("installed", flush=True)
except Exception as problem:
    print("failed", problem, flush=True)
import os
os._exit(0)
"""


def install_unplugged(cache: Path, prefix: Path, package: Package) -> str:
    """rattler's own word on a package, in a process without any network."""
    done = subprocess.run(
        [
            *("unshare", "-rn", sys.executable, "-c", INSTALL),
            *(str(cache), str(prefix), package.url, package.sha256, package.file_name),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare" in done.stderr:
        pytest.skip("no user namespaces here")
    return done.stdout


@pytest.mark.parametrize("package", [FOO, BAR], ids=["conda", "tar.bz2"])
@pytest.mark.parametrize("channel", ["https://conda.anaconda.org/conda-forge", "file:///a/wheel/channel"])
def test_rattler_installs_from_it_with_the_network_unplugged(
    package: TinyPackage, channel: str, tmp_path: Path
) -> None:
    cache = have(tmp_path, package)
    locked = package.locked(channel)
    assert install_unplugged(cache, tmp_path / "env", locked) == "installed\n"
    linked = tmp_path / "env/share" / f"{package.name}.txt"
    assert linked.read_text() == f"this is {package.name}\n"
    assert linked.stat().st_nlink == 2


def test_rattler_refuses_an_entry_of_another_archive(tmp_path: Path) -> None:
    cache = have(tmp_path, FOO)
    said = install_unplugged(cache, tmp_path / "env", FOO.locked(sha256="ab" * 32))
    assert said.startswith("failed")


def test_what_is_there_is_not_fetched_again(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    server = serve(channel_files(FOO, BAR))
    for _time in range(2):
        archives([FOO.locked(), BAR.locked()], routes=impatient(server.url), cache=tmp_path, observer=notes)
    assert len(server.log) == 2
    assert notes.bytes == len(FOO.content) + len(BAR.content)
    assert notes.lines[-1].startswith(f"packages fetched: 2 from {server.host}")


def test_pip_packages_are_not_its_business(tmp_path: Path) -> None:
    wheel = FOO.locked(url="https://files.example.org/foo-1.0-py3-none-any.whl", manager="pip")
    archives([wheel], routes=routes("official"), cache=tmp_path)
    assert not (package_cache(tmp_path) / FOO.stem).exists()


def test_the_cache_is_the_users_alone(tmp_path: Path) -> None:
    (tmp_path / "cache/pkgs").mkdir(parents=True, mode=0o777)
    assert have(tmp_path, FOO).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "share/foo.txt").write_text("poisoned\n"),
        lambda folder: (folder / "share/foo.txt").unlink(),
        lambda folder: (folder / "share/more.txt").write_text("more"),
        lambda folder: (folder / "share/foo.txt").chmod(0o4755),
        lambda folder: (folder / "info/paths.json").write_text('{"paths": []}'),
    ],
    ids=["edited", "removed", "added", "mode", "list of files"],
)
def test_a_changed_entry_is_noticed_and_had_again(
    change: Callable[[Path], object], tmp_path: Path, notes: Notes
) -> None:
    """An edit in an environment goes through the hard link into the cache (decision 4)."""
    change(have(tmp_path, FOO) / FOO.stem)
    cache = have(tmp_path, FOO, notes=notes)
    assert (cache / FOO.stem / "share/foo.txt").read_text() == "this is foo\n"
    assert (cache / FOO.stem / "share/foo.txt").stat().st_mode & 0o7777 == 0o644
    assert not (cache / FOO.stem / "share/more.txt").exists()
    assert notes.about(FOO.stem, "changed in the package cache")


def test_an_edit_through_an_environment_is_noticed(tmp_path: Path, notes: Notes) -> None:
    cache = have(tmp_path, FOO)
    assert install_unplugged(cache, tmp_path / "env", FOO.locked()) == "installed\n"
    have(tmp_path, FOO, notes=notes)
    assert notes.lines == [], "linking is no change"
    with (tmp_path / "env/share/foo.txt").open("a") as file:
        file.write("edited in place\n")
    have(tmp_path, FOO, notes=notes)
    assert (cache / FOO.stem / "share/foo.txt").read_text() == "this is foo\n"


def test_another_archive_of_the_same_name_replaces_the_entry(tmp_path: Path) -> None:
    have(tmp_path, FOO)
    other = TinyPackage(files={"share/foo.txt": b"another build\n"})
    cache = have(tmp_path, other)
    assert (cache / FOO.stem / "share/foo.txt").read_text() == "another build\n"
    assert install_unplugged(cache, tmp_path / "env", other.locked()) == "installed\n"


def test_an_archive_in_a_directory_is_verified_like_any_other(tmp_path: Path) -> None:
    """rattler itself installs a changed archive from file:// without a word."""
    tree = write_tree(tmp_path / "tree", channel_files(FOO))
    path = tree / "conda-forge/noarch" / FOO.file
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(FetchError, match="wrong sha256"):
        archives([FOO.locked()], routes=routes(f"file://{tree}", only=True), cache=tmp_path / "cache")
    direct = FOO.locked(f"file://{tree}/conda-forge")
    with pytest.raises(FetchError, match="wrong sha256"):
        archives([direct], routes=routes("official"), cache=tmp_path / "cache")
    assert not (package_cache(tmp_path / "cache") / FOO.stem).exists()


def test_an_archive_missing_in_a_directory_comes_from_the_next(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    tree = write_tree(tmp_path / "tree", {"conda-forge/noarch/repodata.json": b"{}"})
    archives(
        [FOO.locked()], routes=impatient(f"file://{tree}", serve(channel_files(FOO)).url), cache=tmp_path
    )
    assert (package_cache(tmp_path) / FOO.stem).is_dir()


LINKED: Mapping[str, tarfile.TarInfo] = {
    "an absolute link": member("evil", tarfile.SYMTYPE, "/etc/passwd"),
    "a link outside": member("share/evil", tarfile.SYMTYPE, "../../../outside"),
    "a hard link outside": member("evil", tarfile.LNKTYPE, "../../outside"),
    "an absolute hard link": member("evil", tarfile.LNKTYPE, "/etc/passwd"),
}


@pytest.mark.parametrize("ending", [".conda", ".tar.bz2"])
@pytest.mark.parametrize("name", LINKED)
def test_links_that_lead_out_are_refused(name: str, ending: str, tmp_path: Path) -> None:
    refuse(tmp_path, TinyPackage(ending=ending, members=(LINKED[name],)))


def test_a_link_out_by_way_of_another_link_is_refused(tmp_path: Path) -> None:
    crooked = (member("here", tarfile.SYMTYPE, "."), member("out", tarfile.SYMTYPE, "here/.."))
    refuse(tmp_path, TinyPackage(members=crooked))


def test_writing_through_a_link_is_refused(tmp_path: Path) -> None:
    through = (member("d", tarfile.SYMTYPE, str(tmp_path / "outside")), member("d/evil"))
    (tmp_path / "outside").mkdir()
    refuse(tmp_path, TinyPackage(members=through))
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "share/../../evil", "share/not-there"])
def test_a_list_of_files_that_names_what_is_not_in_it_is_refused(path: str, tmp_path: Path) -> None:
    """rattler links what paths.json lists; it is the list that must not lead out."""
    refuse(tmp_path, TinyPackage(listed={"share/foo.txt": b"", path: b""}))


def test_an_entry_point_that_is_no_command_is_refused(tmp_path: Path) -> None:
    link = b'{"noarch": {"type": "python", "entry_points": ["../../evil = foo:main"]}}'
    refuse(tmp_path, TinyPackage(info={"info/link.json": link}))


@pytest.mark.parametrize("info", [{"info/paths.json": b"{"}, {"info/paths.json": b"[]"}])
def test_a_list_of_files_that_cannot_be_read_is_refused(info: dict[str, bytes], tmp_path: Path) -> None:
    refuse(tmp_path, TinyPackage(info=info))


@pytest.mark.parametrize("ending", [".conda", ".tar.bz2"])
@pytest.mark.parametrize(
    "odd",
    [
        member("../evil"),
        member("/tmp/envkit-evil"),
        member("evil", tarfile.CHRTYPE),
        member("evil", tarfile.FIFOTYPE),
        member("evil", mode=0o6755),
    ],
    ids=["..", "absolute", "device", "fifo", "set-id"],
)
def test_other_evil_members_come_to_nothing(odd: tarfile.TarInfo, ending: str, tmp_path: Path) -> None:
    """rattler drops or flattens them; this test notices if a later one does not."""
    cache = have(tmp_path, TinyPackage(ending=ending, members=(odd,)))
    assert not Path("/tmp/envkit-evil").exists()
    for path in tmp_path.rglob("evil*"):
        assert path.is_relative_to(cache / FOO.stem)
        assert path.is_file()
        assert path.stat().st_mode & 0o7000 == 0


def test_an_archive_that_is_what_the_lock_says_but_damaged(tmp_path: Path) -> None:
    broken = FOO.content[:60] + b"\0" + FOO.content[61:]
    refuse(tmp_path, replace(FOO, damaged=broken))


def refuse(tmp_path: Path, package: TinyPackage) -> None:
    with pytest.raises(Error, match="cannot be unpacked") as refused:
        have(tmp_path, package)
    assert refused.value.hint
    cache = package_cache(tmp_path / "cache")
    assert [path.name for path in cache.iterdir()] == [".envkit"]
    assert list((cache / ".envkit/unpacking").iterdir()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"version": "2.0"},
        {"url": "https://conda.anaconda.org/conda-forge/noarch/foo-1.0-0.zip"},
        {"url": "https://conda.anaconda.org/conda-forge/noarch/..%2Ffoo-1.0-0.conda"},
    ],
)
def test_a_lock_that_contradicts_its_urls_is_refused_before_any_request(
    changes: dict[str, str], serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(channel_files(FOO, BAR))
    with pytest.raises(InputError):
        archives([BAR.locked(), FOO.locked(**changes)], routes=impatient(server.url), cache=tmp_path)
    assert server.log == []


def test_an_epoch_in_a_file_name_is_written_out(tmp_path: Path) -> None:
    package = TinyPackage("epoch", "1!2.0", noarch="generic")
    tree = tree_of(tmp_path, package)
    url = f"https://conda.anaconda.org/conda-forge/noarch/{package.file.replace('!', '%21')}"
    archives([package.locked(url=url)], routes=routes(tree, only=True), cache=tmp_path / "cache")
    cache = package_cache(tmp_path / "cache")
    assert (cache / "epoch-1!2.0-0").is_dir()


FETCH = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from watching import Notes, impatient
from envkit.fetch import archives
from envkit.model import Package
packages = [
    Package(name=n, version="1.0", manager="conda", platform="linux-64", sha256=s,
            url=f"https://conda.anaconda.org/conda-forge/noarch/{{n}}-1.0-0.conda")
    for n, s in {packages!r}
]
notes = Notes()
archives(packages, routes=impatient({server!r}), cache=Path({cache!r}), observer=notes)
print("\\n".join(notes.lines))
"""


def process(server: Server, cache: Path, *packages: TinyPackage) -> subprocess.Popen[str]:
    script = FETCH.format(
        tests=str(Path(__file__).parent),
        packages=[(package.name, package.sha256) for package in packages],
        server=server.url,
        cache=str(cache),
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def test_a_second_process_waits_and_says_so(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(channel_files(FOO))
    store = Store(tmp_path)
    store.prepare()
    with store.lock(FOO.stem, Notes(), threading.Event()):
        waiting = process(server, tmp_path, FOO)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.communicate(timeout=1.8)
        assert server.log == []
    said, _err = waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    assert "waiting for another envkit process that fetches foo-1.0-0" in said
    assert (package_cache(tmp_path) / FOO.stem / "share/foo.txt").read_text() == "this is foo\n"


def test_two_processes_at_once_fetch_once(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(channel_files(FOO, BAR))
    server.delay = 0.2
    both = [process(server, tmp_path, FOO) for _process in range(2)]
    for one in both:
        one.communicate(timeout=30)
    assert [one.returncode for one in both] == [0, 0]
    assert len(server.asked(FOO.file)) == 1


def test_killed_at_any_moment_a_rerun_finishes(serve: Callable[..., Server], tmp_path: Path) -> None:
    packages = [
        TinyPackage(f"p{number}", files={f"share/{index}": os.urandom(3000) for index in range(40)})
        for number in range(6)
    ]
    server = serve(channel_files(*packages))
    server.delay = 0.02
    for moment in range(4):
        cache = tmp_path / str(moment)
        killed = process(server, cache, *packages)
        end = time.monotonic() + 20
        while not (cache / "downloads").exists() and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(0.03 * moment)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=20)
        archives([package.locked() for package in packages], routes=impatient(server.url), cache=cache)
        for package in packages:
            assert len(list((package_cache(cache) / package.stem / "share").iterdir())) == 40
        assert list((package_cache(cache) / ".envkit/unpacking").iterdir()) == []
        assert list((cache / "downloads").iterdir()) == []


def test_a_cache_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(Error, match="belongs to another user"):
        have(tmp_path, FOO)


def test_case_10_is_installed_as_its_lock_says(serve: Callable[..., Server], tmp_path: Path) -> None:
    case = Path(__file__).parents[2].parent / "shared/cases/10"
    if not case.exists():
        pytest.skip("the cases are not beside this checkout")
    name = "foo-1.0-0.tar.bz2"
    server = serve({f"conda-forge/noarch/{name}": (case / "pkg" / name).read_bytes()})
    package = Package(
        name="foo",
        version="1.0",
        manager="conda",
        platform="linux-64",
        url=f"https://conda.anaconda.org/conda-forge/noarch/{name}",
        sha256="0531da6e36e34327c7dfb2372db7dca2c3cb16a89ecd3e2df70969cec7a75406",
    )
    archives([package], routes=impatient(server.url), cache=tmp_path)
    assert install_unplugged(package_cache(tmp_path), tmp_path / "env", package) == "installed\n"
