"""Resuming, credentials, redirects, proxies, and being kind to hosts."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faultyserver import Fault, Server
from tinychannel import TinyPackage, channel_files
from watching import IMPATIENT, Notes, impatient

from envkit import __version__
from envkit.channels import shown
from envkit.errors import Error, InputError
from envkit.fetch import FetchError, Patience, archives, package_cache, repodata

CONTENT = random.Random(4).randbytes(1 << 17)
FOO = TinyPackage(noarch="generic", files={"share/foo.bin": CONTENT})
HEALTHY = channel_files(FOO)
PATH = f"conda-forge/noarch/{FOO.file}"
MIDDLE = len(FOO.content) // 2


def ranges(server: Server) -> list[str]:
    return [headers.get("Range", "") for headers in server.asked(FOO.file)]


def partial(cache: Path) -> Path:
    return cache / "downloads" / f"{FOO.sha256}.partial"


def leave_partial(cache: Path, content: bytes) -> None:
    partial(cache).parent.mkdir(parents=True, exist_ok=True)
    partial(cache).write_bytes(content)


def installed(cache: Path) -> bool:
    return (package_cache(cache) / FOO.stem / "share/foo.bin").read_bytes() == CONTENT


def test_a_download_is_resumed_on_the_next_mirror(serve: Callable[..., Server], tmp_path: Path) -> None:
    cutting, healthy = serve(HEALTHY), serve(HEALTHY)
    cutting.faults[PATH] = Fault(cut=MIDDLE)
    archives([FOO.locked()], routes=impatient(cutting.url, healthy.url), cache=tmp_path)
    assert installed(tmp_path)
    assert ranges(healthy) == [f"bytes={MIDDLE}-"]
    assert list((tmp_path / "downloads").iterdir()) == []


def test_a_download_is_resumed_in_the_next_run(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    cutting, healthy = serve(HEALTHY), serve(HEALTHY)
    cutting.faults[PATH] = Fault(cut=MIDDLE, times=1)
    cutting.everywhere = Fault(status=403)
    with pytest.raises(FetchError):
        archives([FOO.locked()], routes=impatient(cutting.url), cache=tmp_path, observer=notes)
    assert partial(tmp_path).stat().st_size == MIDDLE
    archives([FOO.locked()], routes=impatient(healthy.url), cache=tmp_path)
    assert installed(tmp_path)
    assert ranges(healthy) == [f"bytes={MIDDLE}-"]


def test_one_host_that_breaks_off_is_asked_for_the_rest_as_long_as_it_gives_more(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(HEALTHY)
    server.faults[PATH] = Fault(cut=len(FOO.content) // 6)
    archives([FOO.locked()], routes=impatient(server.url), cache=tmp_path)
    assert installed(tmp_path)
    assert len(ranges(server)) == 7
    assert ranges(server)[-1] != ""


def test_a_whole_partial_file_needs_no_request(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(HEALTHY)
    leave_partial(tmp_path, FOO.content)
    archives([FOO.locked()], routes=impatient(server.url), cache=tmp_path)
    assert installed(tmp_path)
    assert server.log == []


@pytest.mark.parametrize("left", [b"PK\x03\x04" + b"wrong" * 1000, FOO.content + b"too much"])
def test_wrong_bytes_of_an_earlier_run_are_no_mirrors_fault(
    left: bytes, serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(HEALTHY)
    leave_partial(tmp_path, left)
    archives([FOO.locked()], routes=impatient(server.url), cache=tmp_path)
    assert installed(tmp_path)
    assert ranges(server) == [f"bytes={len(left)}-", ""]


def test_a_download_of_a_run_killed_while_unpacking_is_used(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(HEALTHY)
    leave_partial(tmp_path, FOO.content)
    partial(tmp_path).rename(tmp_path / "downloads" / f"{FOO.sha256}.conda")
    archives([FOO.locked()], routes=impatient(server.url), cache=tmp_path)
    assert installed(tmp_path)
    assert server.log == []
    assert list((tmp_path / "downloads").iterdir()) == []


def test_a_server_without_range_gives_the_whole_again(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(HEALTHY)
    server.faults[PATH] = Fault(no_range=True)
    leave_partial(tmp_path, FOO.content[:MIDDLE])
    archives([FOO.locked()], routes=impatient(server.url), cache=tmp_path)
    assert installed(tmp_path)


def test_a_web_page_does_not_cost_what_was_there(serve: Callable[..., Server], tmp_path: Path) -> None:
    soft, healthy = serve(HEALTHY), serve(HEALTHY)
    soft.faults[PATH] = Fault(body=b"<html>" + b"sorry " * 200)
    leave_partial(tmp_path, FOO.content[:MIDDLE])
    archives([FOO.locked()], routes=impatient(soft.url, healthy.url), cache=tmp_path)
    assert installed(tmp_path)
    assert ranges(healthy) == [f"bytes={MIDDLE}-"]


def test_a_known_size_is_checked_before_the_body(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    short, healthy = serve({PATH: FOO.content[:-10]}), serve(HEALTHY)
    archives(
        [FOO.locked()],
        routes=impatient(short.url, healthy.url),
        cache=tmp_path,
        observer=notes,
        sizes={FOO.sha256: len(FOO.content)},
    )
    assert installed(tmp_path)
    assert notes.about(short.host, f"instead of {len(FOO.content)}")


def test_envkit_says_its_name(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(HEALTHY)
    archives([FOO.locked()], routes=impatient(server.url), cache=tmp_path)
    assert [headers["User-Agent"] for headers in server.asked()] == [f"envkit/{__version__}"]


def test_at_most_three_connections_to_a_host(serve: Callable[..., Server], tmp_path: Path) -> None:
    packages = [TinyPackage(f"p{number}") for number in range(9)]
    server = serve(channel_files(*packages))
    server.delay = 0.05
    archives([package.locked() for package in packages], routes=impatient(server.url), cache=tmp_path)
    assert server.most_busy == 3


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://user:secret@h/c/noarch/x.conda", "https://h/c/noarch/x.conda"),
        ("https://h/t/tk-123/c/x.conda", "https://h/c/x.conda"),
        ("https://h/x.conda?X-Amz-Signature=secret#frag", "https://h/x.conda"),
        ("https://h:8443/x", "https://h:8443/x"),
    ],
)
def test_secrets_are_not_shown(url: str, safe: str) -> None:
    assert shown(url) == safe


def test_credentials_reach_their_host_and_no_message(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    server = serve()
    with pytest.raises(FetchError) as failed:
        archives(
            [FOO.locked()],
            routes=impatient(f"http://me:s3cret@{server.host}/t/tk-99"),
            cache=tmp_path,
            observer=notes,
        )
    said = repr([failed.value.message, failed.value.hint, failed.value.attempts, notes.lines])
    assert "s3cret" not in said
    assert "tk-99" not in said
    assert server.asked()[0]["Authorization"].startswith("Basic ")


def test_netrc_credentials_go_to_their_own_host_alone(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, other = serve(), serve(HEALTHY)
    elsewhere = other.url.replace("127.0.0.1", "localhost")
    theirs.faults[PATH] = Fault(status=302, headers={"Location": f"{elsewhere}/{PATH}"})
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    archives([FOO.locked()], routes=impatient(theirs.url, trusted=[elsewhere]), cache=tmp_path)
    assert "Authorization" in theirs.asked()[0]
    assert "Authorization" not in other.asked()[0]


def test_a_broken_netrc_is_named(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(InputError, match="netrc"):
        archives([FOO.locked()], routes=impatient(serve(HEALTHY).url), cache=tmp_path)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_certificates_that_are_not_there_are_named(
    variable: str, serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "none.pem"))
    with pytest.raises(InputError, match=variable):
        archives([FOO.locked()], routes=impatient(serve(HEALTHY).url), cache=tmp_path)


def test_the_proxy_of_the_environment_is_used(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = serve({f"http://conda.example.org/{PATH}": FOO.content})
    monkeypatch.setenv("http_proxy", proxy.url)
    archives([FOO.locked()], routes=impatient("http://conda.example.org"), cache=tmp_path)
    assert installed(tmp_path)
    assert [path for _verb, path, _headers in proxy.log] == [f"http://conda.example.org/{PATH}"]


def test_a_proxy_setting_that_is_none_is_named(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://proxy:70")
    with pytest.raises(InputError, match="proxy"):
        archives([FOO.locked()], routes=impatient(serve(HEALTHY).url), cache=tmp_path)


def test_a_redirect_to_another_host_is_followed_and_told(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    """TUNA to BFSU, USTC to TUNA: an allow-list firewall must be able to know (tuna/issues#1633)."""
    here, there = serve(), serve(HEALTHY)
    for path in HEALTHY:
        here.faults[path] = Fault(status=302, headers={"Location": f"{there.url}/{path}"})
    chosen = impatient(here.url, trusted=[there.url])
    archives([FOO.locked()], routes=chosen, cache=tmp_path, observer=notes)
    repodata("conda-forge", "noarch", routes=chosen, cache=tmp_path, observer=notes)
    assert installed(tmp_path)
    assert len(notes.about(here.host, FOO.file, f"redirects to {there.host}")) == 1
    assert len(notes.about(here.host)) == 1


def test_a_full_disk_ends_with_the_numbers(serve: Callable[..., Server], tmp_path: Path) -> None:
    with pytest.raises(Error) as full:
        archives(
            [FOO.locked()],
            routes=impatient(serve(HEALTHY).url),
            cache=tmp_path,
            sizes={FOO.sha256: 1 << 60},
        )
    assert "1152921504607 MB needed" in full.value.message
    assert "ENVKIT_CACHE" in full.value.hint


SMALL_DISK = """
import sys
from pathlib import Path
from envkit.errors import Error
from envkit.fetch import archives
from envkit.model import Package
sys.path.insert(0, {tests!r})
from watching import impatient
package = Package(
    name="foo", version="1.0", manager="conda", platform="linux-64", url={url!r}, sha256={sha256!r}
)
try:
    archives([package], routes=impatient({server!r}), cache=Path({cache!r}))
except Error as problem:
    print(problem.message)
    print(sorted(path.name for path in Path({cache!r}).rglob("foo*")))
    print(sorted(path.suffix for path in Path({cache!r}).joinpath("downloads").glob("*")))
"""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("size=64k", r"\(0 MB free\)|MB needed"),
        ("size=160k", r"\(0 MB free\)|MB needed"),
        ("size=240k", r"\(0 MB free\)"),
        ("size=256k", r"\(0 MB free\)"),
        ("size=268k", r"\(0 MB free\)"),
        ("size=9m,nr_inodes=8", "no inodes left of 8"),
        ("size=9m,nr_inodes=14", "no inodes left of 14"),
        ("size=9m,nr_inodes=15", "no inodes left of 15"),
        ("size=9m,nr_inodes=16", "no inodes left of 16"),
        ("size=9m,nr_inodes=17", "no inodes left of 17"),
    ],
)
def test_a_disk_that_fills_up(options: str, words: str, serve: Callable[..., Server], tmp_path: Path) -> None:
    """A real small file system: nothing half unpacked is left, and the words are plain, with numbers."""
    cache = tmp_path / "cache"
    cache.mkdir()
    script = SMALL_DISK.format(
        tests=str(Path(__file__).parent),
        url=FOO.locked().url,
        sha256=FOO.sha256,
        server=serve(HEALTHY).url,
        cache=str(cache),
    )
    mounted = f'mount -t tmpfs -o {options} tmpfs "{cache}" && exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mounted, sys.executable, script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no user namespaces here")
    assert done.returncode == 0, done.stderr
    message, left, downloads = done.stdout.splitlines()
    assert downloads in ("[]", "['.partial']")
    assert "no space left on the disk" in message
    assert re.search(words, message), message
    assert "foo.bin" not in left or "foo-1.0-0.json" not in left, "an entry with a seal is trusted later"


INTERRUPTED = """
import sys, time, os
from pathlib import Path
from envkit.fetch import archives, repodata
from envkit.model import Package
sys.path.insert(0, {tests!r})
from watching import impatient
from envkit.fetch import Patience
package = Package(
    name="foo", version="1.0", manager="conda", platform="linux-64", url={url!r}, sha256={sha256!r}
)
chosen = impatient({server!r}, patience=Patience(stall=30.0, connect=30.0))
try:
    if {what!r} == "archive":
        archives([package], routes=chosen, cache=Path({cache!r}))
    else:
        repodata("conda-forge", "noarch", routes=chosen, cache=Path({cache!r}))
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
    os._exit(130)  # as the command line does
"""


@pytest.mark.parametrize("what", ["archive", "index"])
@pytest.mark.parametrize("silent", ["in the middle", "from the start"])
def test_ctrl_c_is_answered_within_a_second_at_a_silent_host(
    silent: str, what: str, serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(HEALTHY)
    server.everywhere = Fault(hang=MIDDLE if silent == "in the middle" and what == "archive" else 0)
    server.delay = 20.0 if silent == "from the start" else 0.0
    script = INTERRUPTED.format(
        tests=str(Path(__file__).parent),
        url=FOO.locked().url,
        sha256=FOO.sha256,
        server=server.url,
        cache=str(tmp_path),
        what=what,
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: server.busy > 0)
    if silent == "in the middle" and what == "archive":
        wait_until(lambda: partial(tmp_path).exists() and partial(tmp_path).stat().st_size == MIDDLE)
    time.sleep(0.2)
    sent = time.time()
    process.send_signal(2)
    out, _err = process.communicate(timeout=30)
    word, answered = out.split()
    assert word == "interrupted"
    assert float(answered) - sent < 3, "a loaded machine is slow, but a silent host is silent for 30 s"
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".lock", "")]
    assert left == ([partial(tmp_path)] if partial(tmp_path).exists() else [])
    server.everywhere, server.delay = None, 0.0
    archives([FOO.locked()], routes=impatient(server.url), cache=tmp_path)
    assert installed(tmp_path)
    if silent == "in the middle" and what == "archive":
        assert ranges(server)[-1] == f"bytes={MIDDLE}-"


def test_a_black_hole_is_given_up_within_ten_seconds(tmp_path: Path) -> None:
    """Hosts that take the connection and never answer, as some filters do."""
    import socket

    holes = [socket.create_server(("127.0.0.1", 0), backlog=50) for _hole in range(3)]
    urls = [f"http://127.0.0.1:{hole.getsockname()[1]}" for hole in holes]
    packages = [TinyPackage(f"p{number}").locked() for number in range(6)]
    patience = Patience(connect=0.5, stall=0.5, rounds=IMPATIENT.rounds, pause=0.0)
    begun = time.monotonic()
    with pytest.raises(FetchError) as failed:
        archives(packages, routes=impatient(*urls, patience=patience), cache=tmp_path)
    assert time.monotonic() - begun < 5
    assert type(failed.value).__name__ == "Unreachable"
    for hole in holes:
        hole.close()


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not true():
        assert time.monotonic() < end, "waited in vain"
        pause.wait(0.02)
