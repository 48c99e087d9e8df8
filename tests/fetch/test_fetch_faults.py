"""What is asked of whom after a fault, and what is said when nobody has the file.

test_fetch_matrix.py has every fault before a healthy mirror.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faultyserver import Fault, Server
from tinychannel import TinyPackage, channel_files
from watching import IMPATIENT, Notes, impatient

from envkit.errors import Error
from envkit.fetch import FetchError, NoSubdir, Unreachable, archives, package_cache, repodata

CONTENT = random.Random(10).randbytes(1 << 17)
FOO = TinyPackage(noarch="generic", files={"share/foo.bin": CONTENT})
BZ2 = TinyPackage("bar", ending=".tar.bz2")
HEALTHY = channel_files(FOO, BZ2)
PAGE = b"\n <!DOCTYPE html><html><body>Not found</body></html>" + b" " * 200


def get(servers: list[Server | str], cache: Path, notes: Notes) -> None:
    urls = [server if isinstance(server, str) else server.url for server in servers]
    archives([FOO.locked()], routes=impatient(*urls), cache=cache, observer=notes)


def installed(cache: Path) -> bool:
    folder = package_cache(cache) / FOO.stem
    return (folder / "share/foo.bin").read_bytes() == CONTENT


def test_a_missing_tar_bz2_comes_from_the_next_mirror(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    """TUNA no longer serves .tar.bz2 files that have a .conda twin (tuna/issues#2050)."""
    lacking = serve({path: body for path, body in HEALTHY.items() if not path.endswith(".tar.bz2")})
    archives(
        [BZ2.locked()], routes=impatient(lacking.url, serve(HEALTHY).url), cache=tmp_path, observer=notes
    )
    assert (package_cache(tmp_path) / BZ2.stem / "share/bar.txt").exists()
    assert notes.about(lacking.host, BZ2.file, "404")


@pytest.mark.parametrize(
    "fault", [Fault(status=500), Fault(status=404), Fault(body=PAGE), Fault(body=b"\x28\xb5\x2f\xfdxx")]
)
def test_a_bad_zst_index_is_had_in_another_way(
    fault: Fault, serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    faulty = serve(HEALTHY)
    faulty.faults["conda-forge/noarch/repodata.json.zst"] = fault
    path = repodata(
        "conda-forge",
        "noarch",
        routes=impatient(faulty.url, serve(HEALTHY).url),
        cache=tmp_path,
        observer=notes,
    )
    assert path.read_bytes() == HEALTHY["conda-forge/noarch/repodata.json"]


def test_no_sharded_index_is_ever_asked_for(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(HEALTHY)
    repodata("conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path)
    assert [path for _verb, path, _headers in server.log] == ["conda-forge/noarch/repodata.json.zst"]


def test_a_mirror_that_gave_wrong_bytes_is_asked_last_from_then_on(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    faulty, healthy = serve(HEALTHY), serve(HEALTHY)
    faulty.faults[f"conda-forge/noarch/{FOO.file}"] = Fault(flip=True)
    chosen = impatient(faulty.url, healthy.url)
    for package in (FOO, BZ2):
        archives([package.locked()], routes=chosen, cache=tmp_path)
    assert len(faulty.log) == 1
    assert len(healthy.log) == 2


def test_a_refusing_mirror_is_asked_once_for_the_index(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    """Not for the .json after a 403 of the .zst, and not in a later round."""
    refusing = serve(HEALTHY)
    refusing.everywhere = Fault(status=403)
    with pytest.raises(FetchError):
        repodata("conda-forge", "noarch", routes=impatient(refusing.url), cache=tmp_path, observer=notes)
    assert len(refusing.log) == 1


@pytest.mark.parametrize("subdir", ["linux-64", "noarch"])
def test_a_missing_subdir_is_an_error_and_never_an_empty_channel(
    subdir: str, serve: Callable[..., Server], tmp_path: Path
) -> None:
    first, second = serve(), serve()
    with pytest.raises(NoSubdir) as missing:
        repodata("pytorch", subdir, routes=impatient(first.url, second.url), cache=tmp_path)
    assert f"the channel 'pytorch' has no subdir '{subdir}'" in missing.value.message
    assert first.host in missing.value.message
    assert second.host in missing.value.message


def test_all_mirrors_failing_lists_what_each_one_said(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    gone, refusing, wrong = serve(), serve(HEALTHY), serve(HEALTHY)
    refusing.everywhere = Fault(status=403, body=b"request id: abc-123")
    wrong.everywhere = Fault(flip=True)
    with pytest.raises(FetchError) as failed:
        get([gone, refusing, wrong], tmp_path, notes)
    assert not isinstance(failed.value, Unreachable)
    assert failed.value.code == 3
    assert [(attempt.host, attempt.kind) for attempt in failed.value.attempts] == [
        (gone.host, "missing"),
        (refusing.host, "forbidden"),
        (wrong.host, "sha256"),
    ]
    for line in (f"{gone.host}: HTTP 404", f"{refusing.host}: HTTP 403", f"{wrong.host}: wrong sha256"):
        assert line in failed.value.message
    assert "--mirror" in failed.value.hint
    assert not (package_cache(tmp_path) / FOO.stem).exists()


def test_a_busy_mirror_is_asked_again_after_the_others(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    for status in (429, 500, 503):
        busy = serve(HEALTHY)
        busy.faults[f"conda-forge/noarch/{FOO.file}"] = Fault(
            status=status, headers={"Retry-After": "0"}, times=1
        )
        get([busy], tmp_path / str(status), notes)
        assert installed(tmp_path / str(status))
        assert len(busy.asked(FOO.file)) == 2


def test_nothing_reachable_is_known_soon_and_says_what_to_do(
    dead_url: str, tmp_path: Path, notes: Notes
) -> None:
    other = dead_url.replace("127.0.0.1", "127.0.0.3")
    packages = [TinyPackage(f"p{number}").locked() for number in range(18)]
    with pytest.raises(Unreachable) as failed:
        archives(packages, routes=impatient(dead_url, other), cache=tmp_path, observer=notes)
    assert {attempt.host for attempt in failed.value.attempts} == {
        dead_url.removeprefix("http://"),
        other.removeprefix("http://"),
    }
    assert dead_url.removeprefix("http://") in failed.value.message
    assert "HTTPS_PROXY" in failed.value.hint
    assert json.dumps(notes.lines).count("connection refused") <= 2


def test_a_host_that_asks_for_a_short_rest_gets_it(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    busy = serve(HEALTHY)
    busy.faults[f"conda-forge/noarch/{FOO.file}"] = Fault(status=503, headers={"Retry-After": "1"}, times=1)
    begun = time.monotonic()
    patience = replace(IMPATIENT, longest_wait=5.0)
    chosen = impatient(busy.url, patience=patience)
    archives([FOO.locked(), BZ2.locked()], routes=chosen, cache=tmp_path, observer=notes)
    assert time.monotonic() - begun >= 1.0
    assert installed(tmp_path)
    assert len(busy.asked(FOO.file)) == 2


def test_a_host_that_asks_for_a_long_rest_is_left_alone_by_every_file(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    busy, healthy = serve(HEALTHY), serve(HEALTHY)
    busy.everywhere = Fault(status=429, headers={"Retry-After": "3600"})
    chosen = impatient(busy.url, healthy.url)
    for package in (FOO, BZ2):
        archives([package.locked()], routes=chosen, cache=tmp_path, observer=notes)
    assert len(busy.log) == 1
    alone = impatient(busy.url)
    for package in (FOO, BZ2):
        with pytest.raises(FetchError, match=r"wait 3600 s|left alone for 3600 s"):
            archives([package.locked()], routes=alone, cache=tmp_path / "other")
    assert len(busy.log) == 2


def test_a_mirror_that_refuses_this_client_is_asked_last(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    """TUNA answers 403 to whole networks at times: not one request for each of 200 packages."""
    packages = [TinyPackage(f"p{number}", noarch="generic") for number in range(30)]
    files = channel_files(*packages)
    refusing, healthy = serve(files), serve(files)
    refusing.everywhere = Fault(status=403)
    chosen = impatient(refusing.url, healthy.url)
    archives([package.locked() for package in packages], routes=chosen, cache=tmp_path, observer=notes)
    assert len(refusing.log) <= 10  # those that were on their way in other threads
    assert len(healthy.log) == 30


def test_a_mirror_that_fails_at_everything_does_not_fill_the_screen(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    packages = [TinyPackage(f"p{number}", noarch="generic") for number in range(40)]
    empty, healthy = serve(), serve(channel_files(*packages))
    chosen = impatient(empty.url, healthy.url)
    archives([package.locked() for package in packages], routes=chosen, cache=tmp_path, observer=notes)
    assert len(notes.about(empty.host, "404")) == 10
    assert len(notes.about(empty.host, "the last line counts them")) == 1
    assert notes.lines[-1].startswith(f"packages fetched: 40 from {healthy.host} (")
    assert f"failed: 40 at {empty.host} (HTTP 404 Not Found)" in notes.lines[-1]
    assert len(notes.lines) == 12


def test_a_liar_about_the_size_is_told_from_a_full_disk(serve: Callable[..., Server], tmp_path: Path) -> None:
    liar = serve(HEALTHY)
    liar.everywhere = Fault(announce="1" + "0" * 15)
    with pytest.raises(Error) as full:
        get([liar], tmp_path, Notes())
    assert "1000000000 MB needed" in full.value.message
    assert " MB free" in full.value.message
    with pytest.raises(FetchError) as failed:
        get([liar, serve()], tmp_path, Notes())
    assert f"{liar.host}: announces 1000000000 MB" in failed.value.message


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "link"])
def test_a_pipe_or_a_device_in_the_cache_does_not_hang(
    make: Callable[[Path], object], serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    server = serve(HEALTHY)
    chosen = impatient(server.url)
    repodata("conda-forge", "noarch", routes=chosen, cache=tmp_path)
    archives([BZ2.locked()], routes=chosen, cache=tmp_path)
    odd = [
        tmp_path / "downloads" / f"{FOO.sha256}.partial",
        tmp_path / "downloads" / f"{FOO.sha256}.conda",
        package_cache(tmp_path) / ".envkit/seals" / f"{BZ2.stem}.json",
        package_cache(tmp_path) / ".envkit/unpacking" / FOO.stem,
        *(tmp_path / "repodata").glob("*"),
    ]
    for path in odd:
        path.unlink(missing_ok=True)
        make(path)
    done = threading.Thread(
        target=lambda: (
            archives([FOO.locked(), BZ2.locked()], routes=chosen, cache=tmp_path, observer=notes),
            repodata("conda-forge", "noarch", routes=chosen, cache=tmp_path, observer=notes),
        ),
        daemon=True,
    )
    done.start()
    done.join(30)
    assert not done.is_alive()
    assert installed(tmp_path)
