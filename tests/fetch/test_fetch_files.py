"""Files kept whole: those of a pip section, and archives for a bundle; hashed again before each use."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faultyserver import Fault, Server
from tinychannel import TinyPackage, channel_files, write_tree
from watching import Notes, impatient

from envkit.errors import Error, InputError
from envkit.fetch import (
    FetchError,
    Offline,
    archives,
    downloads,
    package_cache,
    repodata,
    routes,
    wheel_cache,
    wheels,
)
from envkit.model import Package

FOO = TinyPackage(noarch="generic", files={"share/foo.bin": os.urandom(1 << 16)})
BAR = TinyPackage("bar", ending=".tar.bz2")
CONTENT = FOO.content  # a wheel is a zip file as a .conda is
FILE = "quux-1.0+cpu-py3-none-any.whl"
FILES = {f"pip/{FILE}": CONTENT, **channel_files(FOO, BAR)}
MIDDLE = len(CONTENT) // 2
WHEEL = Package(
    name="quux",
    version="1.0+cpu",
    manager="pip",
    platform="linux-64",
    url=f"https://download.pytorch.org/whl/cpu/{FILE.replace('+', '%2B')}",
    sha256=FOO.sha256,
)


def kept(cache: Path) -> Path:
    return wheel_cache(cache) / WHEEL.sha256 / FILE


def test_a_wheel_comes_from_a_mirror_once(serve: Callable[..., Server], tmp_path: Path, notes: Notes) -> None:
    server = serve(FILES)
    for _time in range(2):
        found = wheels(
            [WHEEL, FOO.locked(), WHEEL], routes=impatient(server.url), cache=tmp_path, observer=notes
        )
        assert found == {WHEEL.sha256: kept(tmp_path)}
    assert kept(tmp_path).read_bytes() == CONTENT
    assert len(server.log) == 1
    assert notes.lines == [f"packages fetched: 1 from {server.host} (0.1 MB)"]
    assert not list((tmp_path / "downloads").iterdir())


def test_a_wheel_is_resumed_across_mirrors_and_runs(serve: Callable[..., Server], tmp_path: Path) -> None:
    cutting, silent, healthy = serve(FILES), serve(FILES), serve(FILES)
    cutting.faults[f"pip/{FILE}"] = Fault(cut=MIDDLE // 2, times=1)
    cutting.everywhere = Fault(status=403)
    silent.faults[f"pip/{FILE}"] = Fault(hang=MIDDLE // 2)
    with pytest.raises(FetchError):
        wheels([WHEEL], routes=impatient(cutting.url), cache=tmp_path)
    wheels([WHEEL], routes=impatient(silent.url, healthy.url), cache=tmp_path)
    assert kept(tmp_path).read_bytes() == CONTENT
    assert silent.asked(FILE)[0]["Range"] == f"bytes={MIDDLE // 2}-"
    assert healthy.asked(FILE)[0]["Range"] == f"bytes={MIDDLE // 2 * 2}-"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(CONTENT[:-1] + b"!"),
        lambda path: path.write_bytes(b""),
        lambda path: (path.unlink(), os.mkfifo(path)),
        lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    ],
    ids=["edited", "emptied", "pipe", "device"],
)
def test_a_kept_wheel_is_hashed_again_before_it_counts(
    spoil: Callable[[Path], object], serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(FILES)
    wheels([WHEEL], routes=impatient(server.url), cache=tmp_path)
    spoil(kept(tmp_path))
    wheels([WHEEL], routes=impatient(server.url), cache=tmp_path)
    assert kept(tmp_path).read_bytes() == CONTENT
    assert len(server.log) == 2


def test_a_wheel_in_a_directory_is_copied_into_the_cache(tmp_path: Path) -> None:
    """The directory may be a medium that is taken out, or changed by somebody else."""
    tree = write_tree(tmp_path / "tree", FILES)
    chosen = routes(f"file://{tree}", only=True)
    assert wheels([WHEEL], routes=chosen, cache=tmp_path / "cache") == {
        WHEEL.sha256: kept(tmp_path / "cache")
    }
    (tree / "pip" / FILE).write_bytes(b"PK\x03\x04 changed")
    assert kept(tmp_path / "cache").read_bytes() == CONTENT
    with pytest.raises(FetchError, match="wrong sha256"):
        wheels([WHEEL], routes=chosen, cache=tmp_path / "other")


def test_archives_are_kept_whole_for_a_bundle_and_used_by_an_install(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(FILES)
    packages = [FOO.locked(), BAR.locked(), WHEEL]
    for _time in range(2):
        found = downloads(packages, routes=impatient(server.url), cache=tmp_path)
        assert {found[one.sha256].read_bytes() for one in (FOO, BAR)} == {FOO.content, BAR.content}
        assert found[FOO.sha256] == tmp_path / "downloads" / f"{FOO.sha256}.conda"
        assert found[BAR.sha256] == tmp_path / "downloads" / f"{BAR.sha256}.tar.bz2"
    assert len(server.log) == 2
    archives(packages, routes=impatient(server.url, offline=True), cache=tmp_path)
    assert (package_cache(tmp_path) / FOO.stem).is_dir()


def test_archives_of_a_directory_stay_there(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", FILES)
    found = downloads([FOO.locked()], routes=routes(f"file://{tree}", only=True), cache=tmp_path / "cache")
    assert found == {FOO.sha256: tree / "conda-forge/noarch" / FOO.file}


def test_offline_names_every_wheel_that_is_lacking(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(FILES)
    without = impatient(server.url, offline=True)
    with pytest.raises(Offline, match=r"quux-1\.0\+cpu-py3-none-any\.whl"):
        wheels([WHEEL], routes=without, cache=tmp_path)
    wheels([WHEEL], routes=impatient(server.url), cache=tmp_path)
    assert wheels([WHEEL], routes=without, cache=tmp_path) == {WHEEL.sha256: kept(tmp_path)}
    assert server.connections == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"sha256": ""},
        {"sha256": "../" * 20 + "etc/x"},
        {"sha256": FOO.sha256.upper()},
        {"name": "../evil"},
        {"name": ""},
        {"name": "a..b"},
        {"url": f"https://download.pytorch.org/whl/..%2F..%2F{FILE}"},
        {"url": "git+https://github.com/org/quux"},
        {"url": "https://download.pytorch.org/whl/"},
    ],
)
@pytest.mark.parametrize("manager", ["pip", "conda"])
def test_a_lock_that_names_no_checkable_file_is_refused_before_any_request(
    manager: str, changes: dict[str, str], serve: Callable[..., Server], tmp_path: Path
) -> None:
    """sha256 required, names checked: also where a lock came past its reader."""
    server = serve(FILES)
    package = replace(WHEEL if manager == "pip" else FOO.locked(), **changes)
    get = wheels if manager == "pip" else archives
    with pytest.raises(InputError):
        get([package], routes=impatient(server.url), cache=tmp_path / "cache")
    assert server.connections == 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_everything_in_the_cache_is_the_users_alone(serve: Callable[..., Server], tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        chosen, cache = impatient(serve(FILES).url), tmp_path / "a/cache"
        archives([FOO.locked(), BAR.locked()], routes=chosen, cache=cache)
        wheels([WHEEL], routes=chosen, cache=cache)
        repodata("conda-forge", "noarch", routes=chosen, cache=cache)
    finally:
        os.umask(before)
    private = [cache, *(path for path in cache.iterdir() if path.is_dir()), package_cache(cache) / ".envkit"]
    assert len(private) == 6
    assert {oct(path.stat().st_mode & 0o777) for path in private} == {"0o700"}


def test_a_cache_of_somebody_else_is_refused(serve: Callable[..., Server], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    for folder in ("downloads", "pkgs"):
        cache = tmp_path / folder
        (cache / folder).mkdir(parents=True)
        os.chown(cache / folder, 12345, 12345)
        with pytest.raises(Error, match="belongs to another user") as refused:
            archives([FOO.locked()], routes=impatient(serve(FILES).url), cache=cache)
        assert "ENVKIT_CACHE" in refused.value.hint
