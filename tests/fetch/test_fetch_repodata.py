"""Indexes: cached, asked for again, read from directories, never made up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from faultyserver import Fault, Server
from tinychannel import TinyPackage, channel_files, index_of, write_tree
from watching import Notes, impatient

from envkit.errors import Error
from envkit.fetch import FetchError, Unreachable, canonical_url, repodata, routes

FOO = TinyPackage(noarch="generic")
OLD = channel_files(FOO)
NEW = channel_files(FOO, TinyPackage("bar"))
INDEX = "conda-forge/noarch/repodata.json"


def test_the_packed_form_is_preferred_and_what_comes_is_plain(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(OLD)
    path = repodata("conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path)
    assert path.read_bytes() == OLD[INDEX]
    assert [asked for _verb, asked, _headers in server.log] == [f"{INDEX}.zst"]
    assert path.is_relative_to(tmp_path / "repodata")
    assert not list((tmp_path / "repodata").glob(".fetch-*"))


def test_rattler_reads_it_under_the_canonical_channel(serve: Callable[..., Server], tmp_path: Path) -> None:
    from rattler import Channel
    from rattler.repo_data import SparseRepoData

    path = repodata("conda-forge", "noarch", routes=impatient(serve(OLD).url), cache=tmp_path)
    sparse = SparseRepoData(Channel(canonical_url("conda-forge")), "noarch", path)
    (record,) = sparse.load_records("foo")
    assert record.url == f"https://conda.anaconda.org/conda-forge/noarch/{FOO.file}"


def test_it_is_not_asked_for_again_at_once(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(OLD)
    first = repodata("conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path)
    assert repodata("conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path) == first
    assert len(server.log) == 1


def test_later_the_host_is_asked_whether_it_changed(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(OLD)

    def get() -> bytes:
        chosen = impatient(server.url)
        return repodata("conda-forge", "noarch", routes=chosen, cache=tmp_path, max_age=0).read_bytes()

    assert get() == get() == OLD[INDEX]
    assert "If-None-Match" in server.asked()[1]
    server.files = NEW
    assert get() == NEW[INDEX]
    assert len(server.log) == 3


def test_each_mirror_has_its_own_entry(serve: Callable[..., Server], tmp_path: Path) -> None:
    for files in (OLD, NEW):
        path = repodata("conda-forge", "noarch", routes=impatient(serve(files).url), cache=tmp_path)
        assert path.read_bytes() == files[INDEX]


def test_without_any_host_the_last_one_serves_and_its_age_is_told(
    serve: Callable[..., Server], tmp_path: Path, notes: Notes
) -> None:
    server = serve(OLD)
    repodata("conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path)
    server.everywhere = Fault(status=503)
    path = repodata(
        "conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path, observer=notes, max_age=0
    )
    assert path.read_bytes() == OLD[INDEX]
    assert notes.about("conda-forge/noarch", "0.0 hours ago")


def test_a_cached_index_that_was_cut_is_not_used(
    serve: Callable[..., Server], dead_url: str, tmp_path: Path
) -> None:
    server = serve(OLD)
    path = repodata("conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    assert repodata("conda-forge", "noarch", routes=impatient(server.url), cache=tmp_path) == path
    assert path.read_bytes() == OLD[INDEX]
    assert len(server.log) == 2


def test_nothing_cached_and_nothing_reachable(dead_url: str, tmp_path: Path) -> None:
    with pytest.raises(Unreachable):
        repodata("conda-forge", "noarch", routes=impatient(dead_url), cache=tmp_path)
    assert not list((tmp_path / "repodata").glob("*"))


@pytest.mark.parametrize("form", ["plain", "packed", "both", "newer packed"])
def test_a_directory_is_a_mirror(form: str, tmp_path: Path) -> None:
    index = index_of(FOO, subdir="noarch")
    tree = tmp_path / "tree"
    files = {f"pkgs-main/noarch/repodata.json{ending}": b"" for ending in ("", ".zst")}
    files["pkgs-main/noarch/repodata.json"] = b'{"packages": {}}' if form == "newer packed" else index
    files["pkgs-main/noarch/repodata.json.zst"] = zstandard.compress(index)
    if form in ("plain", "packed"):
        del files["pkgs-main/noarch/repodata.json" + (".zst" if form == "plain" else "")]
    write_tree(tree, files)
    if form == "newer packed":
        os.utime(tree / "pkgs-main/noarch/repodata.json", (1, 1))
    chosen = routes(f"file://{tree}", only=True)
    path = repodata("pkgs/main", "noarch", routes=chosen, cache=tmp_path / "cache")
    assert path.read_bytes() == index
    again = repodata("pkgs/main", "noarch", routes=chosen, cache=tmp_path / "cache")
    assert again == path


def test_a_changed_packed_index_in_a_directory_is_unpacked_again(tmp_path: Path) -> None:
    packed = tmp_path / "tree/conda-forge/noarch/repodata.json.zst"
    chosen_tree = f"file://{tmp_path}/tree"
    for files in (OLD, NEW):
        write_tree(tmp_path / "tree", {f"{INDEX}.zst": files[f"{INDEX}.zst"]})
        path = repodata("conda-forge", "noarch", routes=routes(chosen_tree), cache=tmp_path / "cache")
        assert path.read_bytes() == files[INDEX]
    assert packed.exists()


def test_a_sampled_directory_without_noarch_has_an_empty_one(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {"nvidia/linux-64/repodata.json": index_of(subdir="linux-64")})
    path = repodata("nvidia", "noarch", routes=routes(f"file://{tmp_path}/tree"), cache=tmp_path / "cache")
    assert json.loads(path.read_text()) == {
        "info": {"subdir": "noarch"},
        "packages": {},
        "packages.conda": {},
    }


def test_a_directory_without_the_platform_is_an_error(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {"nvidia/linux-64/repodata.json": index_of(subdir="linux-64")})
    with pytest.raises(Error) as missing:
        repodata("nvidia", "osx-arm64", routes=routes(f"file://{tmp_path}/tree"), cache=tmp_path / "cache")
    assert "has no 'osx-arm64'" in missing.value.message
    assert not isinstance(missing.value, FetchError)


def test_a_directory_without_the_channel_leaves_it_to_the_next(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    (tmp_path / "tree").mkdir()
    chosen = impatient(f"file://{tmp_path}/tree", serve(OLD).url)
    path = repodata("conda-forge", "noarch", routes=chosen, cache=tmp_path / "cache")
    assert path.read_bytes() == OLD[INDEX]


def test_a_directory_after_a_mirror_serves_where_the_mirror_does_not(dead_url: str, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", OLD)
    chosen = impatient(dead_url, f"file://{tmp_path}/tree")
    path = repodata("conda-forge", "noarch", routes=chosen, cache=tmp_path / "cache")
    assert path.read_bytes() == OLD[INDEX]


def test_a_channel_that_is_a_directory_itself(tmp_path: Path) -> None:
    write_tree(tmp_path, {"wheels/linux-64/repodata.json": index_of(FOO, subdir="linux-64")})
    path = repodata(f"file://{tmp_path}/wheels", "linux-64", routes=routes("official"), cache=tmp_path / "c")
    assert path == tmp_path / "wheels/linux-64/repodata.json"


@pytest.mark.parametrize("content", [b"", b"<html>", b'{"packages": {', b'{"a": 1}'])
def test_a_damaged_index_in_a_directory_is_named(content: bytes, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {INDEX: content})
    with pytest.raises(Error, match=r"repodata\.json is no channel index"):
        repodata("conda-forge", "noarch", routes=routes(f"file://{tmp_path}/tree"), cache=tmp_path / "c")


def test_the_sampled_channels_beside_the_project(tmp_path: Path) -> None:
    tree = Path(__file__).parents[2].parent / "shared/channels"
    if not tree.exists():
        pytest.skip("the sampled channels are not beside this checkout")
    chosen = routes(f"file://{tree}", only=True)
    for channel, subdir in (("pkgs/main", "linux-64"), ("nvidia/label/cuda-12.4.0", "linux-64")):
        index = json.loads(repodata(channel, subdir, routes=chosen, cache=tmp_path).read_bytes())
        assert index["packages.conda"] or index["packages"]


def test_an_unwritable_cache_is_an_error_in_words(serve: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(Error, match="cannot write") as refused:
        repodata("conda-forge", "noarch", routes=impatient(serve(OLD).url), cache=tmp_path / "cache")
    assert "ENVKIT_CACHE" in refused.value.hint
