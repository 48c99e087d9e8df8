"""From a spec to a file through the real fetch layer: any mirror, all or nothing, no silent CPU build."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from small_specs import HELLO, LIBHELLO, PYTHON, make_spec
from tinychannel import TinyPackage, write_channel

from envkit import fetch
from envkit.errors import Error, Findings
from envkit.lock import check_accelerator, is_fresh, read_lock
from envkit.matrix import read_matrix
from envkit.render import render
from envkit.solve import solve, write_lock

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
TORCH = [
    TinyPackage("pytorch", version="2.1.0", build="cuda118_py311_h0_0", depends=["__cuda"]),
    TinyPackage("pytorch", version="2.4.0", build="cpu_py311_h0_0"),
]


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    write_channel(tmp_path / "mirror" / "conda-forge", PYTHON, HELLO, LIBHELLO, *TORCH)
    return tmp_path / "mirror"


def test_a_lock_is_written_and_fresh(tmp_path: Path, mirror: Path) -> None:
    spec = make_spec("hello")
    path = tmp_path / "environments" / "x" / "conda-lock.yml"
    lock = write_lock(spec, path, routes=fetch.routes(mirror.as_uri()), cache=tmp_path / "cache")
    assert lock == read_lock(path)
    assert is_fresh(lock, spec)


def test_whichever_mirror_served_the_bytes_are_the_same(tmp_path: Path, mirror: Path) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(mirror))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        choices = [mirror.as_uri(), f"http://127.0.0.1:{server.server_port}"]
        texts = {
            solve(
                make_spec("hello"), routes=fetch.routes(choice, only=True), cache=tmp_path / f"cache{number}"
            )
            for number, choice in enumerate(choices)
        }
        server.shutdown()
        thread.join()
    (text,) = texts
    assert "127.0.0.1" not in text
    assert "https://conda.anaconda.org/conda-forge/noarch/hello-2.0-py_0.conda" in text


def test_a_cpu_build_where_cuda_was_asked_for_is_refused_and_the_old_lock_stays(
    tmp_path: Path, mirror: Path
) -> None:
    path = tmp_path / "conda-lock.yml"
    path.write_text("the old lock\n")
    options = {"routes": fetch.routes(mirror.as_uri()), "cache": tmp_path / "cache"}
    with pytest.raises(Findings) as caught:
        write_lock(make_spec("pytorch", cuda="11.8"), path, **options)  # type: ignore[arg-type]
    assert "pytorch 2.4.0 cpu_py311_h0_0 is not a CUDA build, CUDA 11.8 was asked for" in caught.value.message
    assert path.read_text() == "the old lock\n"
    assert [one.name for one in tmp_path.iterdir() if "conda-lock" in one.name] == ["conda-lock.yml"]
    lock = write_lock(make_spec("pytorch=*=cuda118*", cuda="11.8"), path, **options)  # type: ignore[arg-type]
    assert lock.packages[0].build == "cuda118_py311_h0_0"


def test_an_unsolvable_spec_leaves_the_old_lock(tmp_path: Path, mirror: Path) -> None:
    path = tmp_path / "conda-lock.yml"
    path.write_text("the old lock\n")
    with pytest.raises(Findings):
        write_lock(
            make_spec("nosuchthing"), path, routes=fetch.routes(mirror.as_uri()), cache=tmp_path / "cache"
        )
    assert path.read_text() == "the old lock\n"


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path, mirror: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match="cannot write"):
        write_lock(
            make_spec("hello"),
            tmp_path / "file" / "conda-lock.yml",
            routes=fetch.routes(mirror.as_uri()),
            cache=tmp_path / "cache",
        )


COMMITTED = sorted(ROOT.glob("environments/*/conda-lock.yml"))


def test_there_are_committed_locks() -> None:
    assert COMMITTED


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_a_committed_lock_is_complete_fresh_and_clean(path: Path) -> None:
    matrix = read_matrix(ROOT / "environments" / "matrix.yaml")
    (variant,) = [one for one in matrix.variants if one.name == path.parent.name]
    lock = read_lock(path)
    assert is_fresh(lock, render(matrix, variant)), f"run `envkit lock {variant.name}`"
    assert set(lock.platforms) == set(variant.platforms)
    assert check_accelerator(lock.packages, variant.cuda) == []
    assert len({package.version for package in lock.packages if package.name == "pytorch"}) == 1
    for package in lock.packages:
        assert package.manager == "conda"
        assert package.md5
        assert package.url.startswith("https://conda.anaconda.org/")
        assert package.url.split("/")[3] in lock.channels
    for platform in lock.platforms:
        here = {package.name for package in lock.on(platform)}
        wanted = {name for package in lock.on(platform) for name in package.depends}
        assert {name for name in wanted - here if not name.startswith("__")} == set()


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_conda_lock_renders_a_committed_lock(path: Path, tmp_path: Path) -> None:
    subprocess.run(
        [Path(sys.executable).parent / "conda-lock", "render", "--kind", "explicit", path],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    platforms = yaml.safe_load(path.read_text())["metadata"]["platforms"]
    for platform in platforms:
        lines = (tmp_path / f"conda-{platform}.lock").read_text().splitlines()
        urls = [line for line in lines if line.startswith("https://")]
        assert len(urls) == len(read_lock(path).on(platform))
        assert all(len(url.rpartition("#")[2]) == 32 for url in urls)


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "channels").is_dir(), reason="the sampled channels are not here")
def test_every_variant_locks_from_the_sampled_channels_to_the_same_bytes_twice(tmp_path: Path) -> None:
    matrix = read_matrix(ROOT / "environments" / "matrix.yaml")
    for variant in filter(matrix.commits, matrix.variants):
        texts = {
            solve(
                render(matrix, variant),
                routes=fetch.routes((SHARED / "channels").as_uri()),
                cache=tmp_path / f"cache{number}",
            )
            for number in range(2)
        }
        assert len(texts) == 1
