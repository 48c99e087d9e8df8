"""Every fault a mirror was seen to have, once and twice before a healthy mirror: always installed.

Rows of ../shared/cases/10 (faults.yaml), with its right answers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from faultyserver import Fault, Server
from tinychannel import TinyPackage, channel_files
from watching import Notes, impatient

from envkit.fetch import FetchError, NoSubdir, Unreachable, archives, package_cache, repodata

CONTENT = random.Random(10).randbytes(1 << 17)
FOO = TinyPackage(noarch="generic", files={"share/foo.bin": CONTENT})
BZ2 = TinyPackage("bar", ending=".tar.bz2")
HEALTHY = channel_files(FOO, BZ2)
PAGE = b"\n <!DOCTYPE html><html><body>Not found</body></html>" + b" " * 200

PACKAGE_FAULTS = {
    "404": (Fault(status=404), "HTTP 404"),
    "410": (Fault(status=410), "HTTP 410"),
    "403": (Fault(status=403, body=b"<p>Page ID: <b>9f3c-77</b></p>"), "page ID 9f3c-77"),
    "401": (Fault(status=401), "HTTP 401"),
    "429": (Fault(status=429, headers={"Retry-After": "3600"}), "HTTP 429"),
    "500": (Fault(status=500), "HTTP 500"),
    "503": (Fault(status=503), "HTTP 503"),
    "418": (Fault(status=418), "HTTP 418"),
    "page with status 200": (Fault(body=PAGE), "a web page"),
    "another file": (Fault(body=b"\0" * 500), "something else"),
    "an empty file": (Fault(body=b"x"), "something else"),
    "flipped byte": (Fault(flip=True), "wrong sha256"),
    "cut": (Fault(cut=1000), "the connection broke"),
    "cut before the first byte": (Fault(cut=0), "the connection broke"),
    "stall": (Fault(hang=1000), "no byte came"),
    "redirect in a circle": (
        Fault(status=302, headers={"Location": "/conda-forge/noarch/foo-1.0-0.conda"}),
        "redirected too often",
    ),
    "redirect to nowhere": (Fault(status=302, headers={"Location": "gopher://x/y"}), "no web address"),
}


def get(servers: list[Server | str], cache: Path, notes: Notes) -> None:
    urls = [server if isinstance(server, str) else server.url for server in servers]
    archives([FOO.locked()], routes=impatient(*urls), cache=cache, observer=notes)


def installed(cache: Path) -> bool:
    folder = package_cache(cache) / FOO.stem
    return (folder / "share/foo.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("name", PACKAGE_FAULTS)
@pytest.mark.parametrize("count", [1, 2])
def test_a_package_comes_from_the_next_mirror(
    name: str, count: int, serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    fault, reason = PACKAGE_FAULTS[name]
    faulty = [serve(HEALTHY) for _server in range(count)]
    for server in faulty:
        server.faults[f"conda-forge/noarch/{FOO.file}"] = fault
    healthy = serve(HEALTHY)
    get([*faulty, healthy], tmp_path, notes)
    assert installed(tmp_path)
    for server in faulty:
        assert len(notes.about(server.host, FOO.file, reason)) == 1, notes.lines
        # one request to a faulty mirror, but for the hops of the redirect
        assert name == "redirect in a circle" or len(server.asked(FOO.file)) == 1


@pytest.mark.parametrize("count", [1, 2])
def test_a_mirror_that_is_down_is_told_once_and_left_out(
    count: int, dead_url: str, serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    healthy = serve(HEALTHY)
    dead = [dead_url, dead_url.replace("127.0.0.1", "127.0.0.2")][:count]
    archives(
        [FOO.locked(), BZ2.locked()], routes=impatient(*dead, healthy.url), cache=tmp_path, observer=notes
    )
    assert installed(tmp_path)
    for url in dead:
        assert len(notes.about(url.removeprefix("http://"), "connection refused")) == 1


def test_a_host_name_that_cannot_be_resolved(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    get(["http://no-such-host.invalid", serve(HEALTHY)], tmp_path, notes)
    assert installed(tmp_path)
    assert notes.about("no-such-host.invalid", FOO.file)


def test_a_server_that_speaks_no_tls(serve: Callable[..., Server], tmp_path: Path, notes: Notes) -> None:
    plain = serve(HEALTHY)
    get([plain.url.replace("http:", "https:"), serve(HEALTHY)], tmp_path, notes)
    assert installed(tmp_path)
    assert notes.about(plain.host, "TLS failed")


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


INDEX_FAULTS = {
    "404": Fault(status=404),
    "403": Fault(status=403),
    "429": Fault(status=429),
    "500": Fault(status=500),
    "page with status 200": Fault(body=PAGE),
    "JSON that is no index": Fault(body=b'{"error": "not found", "padding": "' + b"x" * 99 + b'"}'),
    "cut": Fault(cut=40),
    "stall": Fault(hang=40),
}


@pytest.mark.parametrize(("count", "subdir"), [(1, "linux-64"), (1, "noarch"), (2, "linux-64")])
@pytest.mark.parametrize("name", INDEX_FAULTS)
def test_an_index_comes_from_the_next_mirror(
    name: str, count: int, subdir: str, serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    faulty = [serve(HEALTHY) for _server in range(count)]
    for server in faulty:
        for ending in ("", ".zst"):
            server.faults[f"conda-forge/{subdir}/repodata.json{ending}"] = INDEX_FAULTS[name]
    healthy = serve(HEALTHY)
    urls = [server.url for server in (*faulty, healthy)]
    path = repodata("conda-forge", subdir, routes=impatient(*urls), cache=tmp_path, observer=notes)
    assert path.read_bytes() == HEALTHY[f"conda-forge/{subdir}/repodata.json"]
    for server in faulty:
        told = notes.about(server.host, f"conda-forge/{subdir}/repodata.json")
        assert len(told) == 1, notes.lines
        if name == "404":
            assert f"the channel has no subdir '{subdir}' there" in told[0]


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
