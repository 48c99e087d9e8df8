"""Every fault a mirror was seen to have, before a healthy mirror, once and twice, for every kind of file.

Always: the file is had, and one line names the mirror, the file and the reason. Rows of
../shared/cases/10 (faults.yaml) and of item "Fetch" of the plan.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from faultyserver import Fault, Server
from tinychannel import TinyPackage, channel_files
from watching import IMPATIENT, Notes, impatient

from envkit.fetch import Routes, archives, package_cache, repodata, wheels
from envkit.model import Package

CONTENT = random.Random(10).randbytes(1 << 16)
FOO = TinyPackage(noarch="generic", files={"share/foo.bin": CONTENT})
BAR = TinyPackage("bar", ending=".tar.bz2", files={"share/bar.bin": CONTENT})
WHEEL = FOO.content  # a wheel is a zip file as a .conda is
WHEEL_FILE = "quux-1.0-py3-none-any.whl"
PAGE = b"\n <!DOCTYPE html><html><body>Not found</body></html>" + b" " * 200
HEALTHY = {**channel_files(FOO, BAR), f"pip/{WHEEL_FILE}": WHEEL}
INDEX = "conda-forge/noarch/repodata.json"


@dataclass(frozen=True)
class File:
    """A kind of file: its paths on a server (each is made faulty) and how it is named in a line."""

    paths: tuple[str, ...]
    name: str
    sized: bool = True
    lacking: tuple[str, ...] = ()

    def get(self, routes: Routes, cache: Path, notes: Notes, sizes: Mapping[str, int]) -> bytes:
        """What was had, after asking for it."""
        if self.name == WHEEL_FILE:
            package = Package(
                name="quux", version="1.0", manager="pip", platform="linux-64",
                url=f"https://download.pytorch.org/whl/cpu/{WHEEL_FILE}", sha256=FOO.sha256,
            )  # fmt: skip
            found = wheels([package], routes=routes, cache=cache, observer=notes, sizes=sizes)
            assert found == {FOO.sha256: cache / "pip-files" / FOO.sha256 / WHEEL_FILE}
            return found[FOO.sha256].read_bytes()
        if not self.sized:
            return repodata("conda-forge", "noarch", routes=routes, cache=cache, observer=notes).read_bytes()
        package = FOO if self.name == FOO.file else BAR
        archives([package.locked()], routes=routes, cache=cache, observer=notes, sizes=sizes)
        return (package_cache(cache) / package.stem / f"share/{package.name}.bin").read_bytes()

    @property
    def right(self) -> bytes:
        if not self.sized:
            return HEALTHY[INDEX]
        return WHEEL if self.name == WHEEL_FILE else CONTENT


FILES = {
    "conda": File((f"conda-forge/noarch/{FOO.file}",), FOO.file),
    "tar.bz2": File((f"conda-forge/linux-64/{BAR.file}",), BAR.file),
    "wheel": File((f"pip/{WHEEL_FILE}",), WHEEL_FILE),
    "index": File((INDEX,), INDEX, sized=False, lacking=(f"{INDEX}.zst",)),
    "packed index": File((f"{INDEX}.zst",), INDEX, sized=False, lacking=(INDEX,)),
    "both indexes": File((INDEX, f"{INDEX}.zst"), INDEX, sized=False),
}
SIZED = tuple(name for name, file in FILES.items() if file.sized)
INDEXES = tuple(name for name in FILES if name not in SIZED)


@dataclass(frozen=True)
class Row:
    """A fault, what its line says, and how often such a mirror may be asked for one file."""

    fault: Fault
    says: str
    files: tuple[str, ...] = tuple(FILES)
    sizes: Mapping[str, int] = field(default_factory=dict)
    asked: int = 1


def redirect(target: str) -> Fault:
    return Fault(status=302, headers={"Location": target})


SIZES = {package.sha256: len(package.content) for package in (FOO, BAR)}
FAULTS = {
    "404": Row(Fault(status=404), "HTTP 404"),
    "410": Row(Fault(status=410), "HTTP 4"),
    "401": Row(Fault(status=401), "HTTP 401"),
    "403 with the ID of a page": Row(
        Fault(status=403, body=b"<p>Page ID: <b>9f3c-77</b></p>"), "HTTP 403 Forbidden (page ID 9f3c-77"
    ),
    "429": Row(Fault(status=429), "HTTP 429"),
    "429, come back in an hour": Row(
        Fault(status=429, headers={"Retry-After": "3600"}), "HTTP 429 Too Many Requests (asks to wait 3600 s)"
    ),
    "429, come back at once": Row(Fault(status=429, headers={"Retry-After": "0"}), "HTTP 429"),
    "500": Row(Fault(status=500), "HTTP 500"),
    "502": Row(Fault(status=502), "HTTP 502"),
    "503, come back in a minute": Row(
        Fault(status=503, headers={"Retry-After": "60"}), "HTTP 503 Service Unavailable (asks to wait 60 s)"
    ),
    "504": Row(Fault(status=504), "HTTP 504"),
    "418": Row(Fault(status=418), "HTTP 418"),
    "a page with 200": Row(Fault(body=PAGE), "a web page instead of the file"),
    "something else with 200": Row(Fault(body=b"\0" * 500), "something else instead of the file"),
    "an empty body with 200": Row(Fault(body=b""), ""),
    "an error in JSON with 200": Row(
        Fault(body=b'{"error": "not found", "padding": "' + b"x" * 99 + b'"}'), "instead of the file", SIZED
    ),
    "an error in JSON for an index": Row(
        Fault(body=b'{"error": "not found", "padding": "' + b"x" * 99 + b'"}'),
        "it lists no packages",
        ("index",),
    ),
    "cut": Row(Fault(cut=40), "the connection broke"),
    "cut before the first byte": Row(Fault(cut=0), "the connection broke"),
    "cut, and no length was announced": Row(Fault(cut=40, announce=""), ""),
    "stall": Row(Fault(hang=40), "no byte came for too long"),
    "stall before the first byte": Row(Fault(hang=0), "no byte came for too long"),
    "wrong size": Row(Fault(announce="900"), "900 bytes instead of", SIZED, SIZES),
    "more than the size": Row(Fault(body=FOO.content + b"more", announce=""), "", SIZED, SIZES),
    "10^15 bytes announced": Row(Fault(announce="1" + "0" * 15), "announces 1000000000 MB"),
    "wrong hash": Row(Fault(flip=True), "wrong sha256", SIZED),
    "a damaged index": Row(Fault(flip=True), "", INDEXES),
    "redirect to a host nobody knows": Row(
        redirect("https://unknown.example/x"), "redirected to unknown.example: the name cannot be resolved"
    ),
    "redirect to plain http": Row(
        redirect("http://unknown.example/x"), "redirected to unknown.example: that would be plain http"
    ),
    "redirect to a private address": Row(redirect("https://127.0.0.1:{port}/x"), "in a private network"),
    "redirect to a private name": Row(redirect("https://a.inside.example:{port}/x"), "in a private network"),
    "redirect in a circle": Row(redirect("/{path}"), "redirected too often", asked=6),
    "redirect to no web address": Row(redirect("gopher://x/y"), "no web address"),
    "redirect to nonsense": Row(redirect("https://[x/y"), ""),
    "redirect to no name of a host": Row(redirect("https://xn--/x"), ""),
    "304 that nobody asked for": Row(Fault(status=304), "HTTP 304"),
    "a byte now and then": Row(Fault(drip=0.1), "only "),
}
CASES = [(fault, file, count) for fault, row in FAULTS.items() for file in row.files for count in (1, 2)]


@pytest.mark.parametrize(("fault", "file", "count"), CASES)
def test_a_file_comes_from_the_next_mirror_and_one_line_says_why(
    fault: str, file: str, count: int, serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    row, kind = FAULTS[fault], FILES[file]
    inside, healthy = serve(), serve(HEALTHY)
    faulty = [serve(HEALTHY) for _server in range(count)]
    for server in faulty:
        for path in kind.lacking:
            del server.files[path]
        for path in kind.paths:
            headers = {
                name: text.replace("{port}", inside.host.rpartition(":")[2]).replace("{path}", path)
                for name, text in row.fault.headers.items()
            }
            server.faults[path] = replace(row.fault, headers=headers)
    patience = replace(IMPATIENT, stall=0.35) if "stall" in fault or "byte" in fault else IMPATIENT
    routes = impatient(*(server.url for server in (*faulty, healthy)), patience=patience)
    assert kind.get(routes, tmp_path, notes, row.sizes) == kind.right
    assert inside.connections == 0
    for server in faulty:
        (line,) = notes.about(server.host)
        assert line.startswith(f"{server.host}: ")
        assert kind.name in line
        assert row.says in line
        assert line.endswith(f"; trying {routes_next(server, faulty, healthy)}")
        assert all(len(server.asked(path)) <= row.asked for path in kind.paths)
    assert not notes.about(healthy.host)


def routes_next(server: Server, faulty: list[Server], healthy: Server) -> str:
    return [*faulty, healthy][faulty.index(server) + 1].host


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("down", ["refused", "no TLS there", "no such name", "silent"])
def test_a_mirror_that_is_down_costs_one_line(
    down: str,
    file: str,
    count: int,
    dead_url: str,
    serve: Callable[..., Server],
    tmp_path: Path,
    notes: Notes,
) -> None:
    hosts = {
        "refused": (dead_url, dead_url.replace("127.0.0.1", "127.0.0.2")),
        "no TLS there": tuple(serve(HEALTHY).url.replace("http:", "https:") for _time in range(2)),
        "no such name": ("https://one.example", "https://two.example"),
        "silent": tuple(serve(HEALTHY).url for _time in range(2)),
    }[down][:count]
    words = {"refused": "refused", "no TLS there": "TLS failed", "no such name": "resolved"}
    healthy = serve(HEALTHY)
    patience = IMPATIENT
    if down == "silent":
        patience = replace(IMPATIENT, stall=0.35, connect=0.35)
        for server in serve.started:  # type: ignore[attr-defined]
            server.delay = 3.0 if server is not healthy else 0.0
    routes = impatient(*hosts, healthy.url, patience=patience)
    assert FILES[file].get(routes, tmp_path, notes, {}) == FILES[file].right
    for host in hosts:
        (line,) = notes.about(urlsplit(host).netloc)
        assert FILES[file].name in line
        assert words.get(down, "no byte came") in line


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("subdir", ["linux-64", "noarch"])
def test_a_missing_subdir_is_said_to_be_one(
    subdir: str, count: int, serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    lacking = [serve() for _server in range(count)]
    healthy = serve(HEALTHY)
    urls = [server.url for server in (*lacking, healthy)]
    path = repodata("conda-forge", subdir, routes=impatient(*urls), cache=tmp_path, observer=notes)
    assert path.read_bytes() == HEALTHY[f"conda-forge/{subdir}/repodata.json"]
    for server in lacking:
        (line,) = notes.about(server.host, f"conda-forge/{subdir}/repodata.json")
        assert f"the channel has no subdir '{subdir}' there" in line


def test_a_bad_packed_index_beside_a_good_plain_one_costs_a_line_and_no_mirror(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    server, other = serve(HEALTHY), serve(HEALTHY)
    server.faults[f"{INDEX}.zst"] = Fault(body=PAGE)
    repodata("conda-forge", "noarch", routes=impatient(server.url, other.url), cache=tmp_path, observer=notes)
    (line,) = notes.lines
    assert line == f"{server.host}: {INDEX}: a web page instead of the file; trying repodata.json"
    assert other.log == []
