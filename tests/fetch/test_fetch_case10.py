"""../shared/cases/10: what mirrors were seen to answer, row by row, with the case's own files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
import zstandard
from faultyserver import Fault, Server
from watching import Notes, impatient

from envkit.fetch import FetchError, NoSubdir, archives, package_cache, repodata
from envkit.lock import read_lock

CASE = Path(__file__).parents[2].parent / "shared/cases/10"
PACKAGE = "conda-forge/noarch/foo-1.0-0.tar.bz2"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="the cases are not beside this checkout")
ROWS = yaml.safe_load((CASE / "faults.yaml").read_text()) if CASE.exists() else []

ANSWERS = {
    "404": (Fault(status=404), "HTTP 404"),
    "403": (Fault(status=403), "HTTP 403"),
    "429": (Fault(status=429), "HTTP 429"),
    "500": (Fault(status=500), "HTTP 500"),
    "500 (HEAD)": (Fault(status=500), "HTTP 500"),
    "200 + HTML": (Fault(body=b"<html><body>404</body></html>" + b" " * 99), "a web page"),
    "200 + flipped byte": (Fault(flip=True), "wrong sha256"),
    "connection refused": (None, "connection refused"),
    "302 to another host": (
        Fault(status=302, headers={"Location": "http://bfsu.example/x"}),
        "redirected to",
    ),
}
FORMS = ("", ".zst")


def files() -> dict[str, bytes]:
    found = {PACKAGE: (CASE / "pkg/foo-1.0-0.tar.bz2").read_bytes()}
    for subdir in ("linux-64", "noarch"):
        index = (CASE / "repodata" / subdir / "repodata.json").read_bytes()
        found[f"conda-forge/{subdir}/repodata.json"] = index
        found[f"conda-forge/{subdir}/repodata.json.zst"] = zstandard.compress(index)
    return found


def faulty_paths(row: dict[str, str]) -> list[str]:
    """The paths on the first mirror that a row is about."""
    if row["file"] == "package":
        return [PACKAGE]
    subdirs = [row["subdir"]] if "subdir" in row else ["linux-64", "noarch"]
    forms = FORMS if row["file"] == "repodata.json" else (row["file"].removeprefix("repodata.json"),)
    return [f"conda-forge/{subdir}/repodata.json{form}" for subdir in subdirs for form in forms]


def install(*urls: str, cache: Path, notes: Notes) -> None:
    routes = impatient(*urls)
    for subdir in ("linux-64", "noarch"):
        repodata("conda-forge", subdir, routes=routes, cache=cache, observer=notes)
    lock = read_lock(CASE / "conda-lock.yml")
    archives(lock.packages, routes=routes, cache=cache, observer=notes)
    assert (package_cache(cache) / "foo-1.0-0/info/index.json").exists()


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['file']} {row['answer']}" for row in ROWS])
def test_the_second_mirror_serves_and_a_line_says_why(
    row: dict[str, str], serve: Callable[..., Server], dead_url: str, tmp_path: Path, notes: Notes
) -> None:
    healthy = serve(files())
    if row["file"].startswith("repodata_shards"):
        install(healthy.url, cache=tmp_path, notes=notes)
        assert not [path for _verb, path, _headers in healthy.log if "shards" in path]
        assert len(notes.lines) == 1, "no warning of what nobody needs"
        return
    fault, reason = ANSWERS[row["answer"]]
    if fault is None:
        install(dead_url, healthy.url, cache=tmp_path, notes=notes)
        (line,) = notes.about(dead_url.removeprefix("http://"))
        assert reason in line
        return
    faulty = serve(files())
    paths = faulty_paths(row)
    for path in paths:
        faulty.faults[path] = fault
    install(faulty.url, healthy.url, cache=tmp_path, notes=notes)
    asked = [path for path in paths if faulty.asked(path)]
    assert asked, "after wrong bytes a mirror is asked last, but once it was asked"
    for name in {path.removeprefix("conda-forge/noarch/foo").removesuffix(".zst") for path in asked}:
        (line,) = notes.about(faulty.host, name)
        assert reason in line
    served, failures = notes.lines[-1].split("; failed: ")
    assert served.startswith("packages fetched: ")
    assert f"at {faulty.host}" in failures
    assert reason in failures


@pytest.mark.parametrize("subdir", ["linux-64", "noarch"])
def test_all_exhausted_is_the_mirrors_failure_and_no_empty_channel(
    subdir: str, serve: Callable[..., Server], tmp_path: Path
) -> None:
    lacking, busy = serve(), serve()
    busy.everywhere = Fault(status=500)
    with pytest.raises(FetchError) as failed:
        repodata("conda-forge", subdir, routes=impatient(lacking.url, busy.url), cache=tmp_path)
    assert failed.value.code == 3
    assert f"{lacking.host}: the channel has no subdir '{subdir}' there (HTTP 404" in failed.value.message
    assert f"{busy.host}: HTTP 500" in failed.value.message
    with pytest.raises(NoSubdir, match="CHANNEL_SUBDIR_MISSING"):
        repodata("conda-forge", subdir, routes=impatient(lacking.url, serve().url), cache=tmp_path)
