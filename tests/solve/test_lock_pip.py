"""Pip sections: solved beside the conda packages by conda-lock's resolver, from a small real index."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from small_specs import canonical, make_spec, repodata_of
from tinychannel import TinyPackage, write_channel

from envkit import fetch
from envkit.channels import index_at, is_pypi_file, pypi_files
from envkit.errors import Error, Findings, InputError
from envkit.lock import check_accelerator, parse_lock
from envkit.lock.formats import PipIndexes
from envkit.lock.pypi_names import conda_lock_map
from envkit.matrix import read_matrix
from envkit.model import Lock, Spec
from envkit.render import render
from envkit.solve import lock_text, write_lock
from envkit.solve.pip_lines import configured_indexes, lift_pip_options
from envkit.solve.pip_resolver import for_one_machine

PYTHON = TinyPackage("python", version="3.11.9")
PIP = TinyPackage("pip", version="24.0", noarch="python", depends=["python"])
NUMPY = TinyPackage("numpy", version="1.26.4", depends=["python"])


def wheel(folder: Path, name: str, version: str, *requires: str, tag: str = "py3-none-any") -> None:
    """A wheel with nothing but metadata, on a page of a simple index (PEP 503)."""
    file_name = f"{name}-{version}-{tag}.whl"
    page = folder / "simple" / name
    page.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"Requires-Dist: {one}\n" for one in requires)
    with zipfile.ZipFile(page / file_name, "w") as bundle:
        info = f"{name}-{version}.dist-info"
        bundle.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}"
        )
        bundle.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        bundle.writestr(f"{info}/RECORD", "")
    links = "".join(
        f'<a href="{path.name}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}">{path.name}</a>\n'
        for path in sorted(page.glob("*.whl"))
    )
    (page / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "index"
    wheel(folder, "demo", "1.0", "numpy>=1.20", "helper")
    wheel(folder, "demo", "2.0", "numpy>=2")
    wheel(folder, "helper", "0.5")
    # conda-lock's resolver looks up even what conda provides.
    wheel(folder, "numpy", "1.26.4")
    wheel(folder, "numpy", "2.1.0")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)


def with_pip(*lines: str) -> Spec:
    spec = make_spec("python=3.11", "pip", "numpy")
    text = spec.text + "  - pip:\n" + "".join(f"    - {line}\n" for line in lines)
    return make_spec("python=3.11", "pip", "numpy", text=text)


def lock_of(spec: Spec, tmp_path: Path) -> Lock:
    write_channel(tmp_path / "conda-forge", PYTHON, PIP, NUMPY)
    text = lock_text(spec, repodata=repodata_of(tmp_path), canonical=canonical)
    return parse_lock(text, tmp_path / "conda-lock.yml")


def pip_packages(lock: Lock) -> Mapping[str, str]:
    return {package.name: package.version for package in lock.packages if package.manager == "pip"}


def test_a_pip_section_is_solved_against_the_conda_packages(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    lock = lock_of(with_pip("demo"), tmp_path)
    # demo 2.0 wants a newer numpy than conda gives; numpy itself must not come by pip as well.
    assert pip_packages(lock) == {"demo": "1.0", "helper": "0.5"}
    demo = next(package for package in lock.packages if package.name == "demo")
    assert demo.url == f"{index}/demo/demo-1.0-py3-none-any.whl"
    assert (
        demo.sha256
        == hashlib.sha256((tmp_path / "index/simple/demo/demo-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    )
    assert not (tmp_path / ".cache").exists()


def test_an_index_named_in_the_file_is_asked(tmp_path: Path, index: str) -> None:
    lock = lock_of(with_pip(f"--index-url {index}", "demo==1.0"), tmp_path)
    assert pip_packages(lock) == {"demo": "1.0", "helper": "0.5"}


def test_the_users_own_copy_of_the_public_index_is_not_in_the_lock(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy keeps the public index's paths; a package of its own is nowhere else."""
    simple, stored = tmp_path / "index" / "simple", f"packages/aa/bb/{'c' * 60}"
    page = simple / "helper"
    (tmp_path / "index" / stored).mkdir(parents=True)
    file = next(page.glob("*.whl")).rename(tmp_path / "index" / stored / "helper-0.5-py3-none-any.whl")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (page / "index.html").write_text(f'<a href="../../{stored}/{file.name}#sha256={digest}">{file.name}</a>')
    monkeypatch.setenv("PIP_INDEX_URL", index)
    urls = {package.name: package.url for package in lock_of(with_pip("demo"), tmp_path).packages}
    assert urls["helper"] == f"{pypi_files()}/aa/bb/{'c' * 60}/{file.name}"
    assert urls["demo"].startswith(index)
    monkeypatch.delenv("PIP_INDEX_URL")
    named = lock_of(with_pip(f"--index-url {index}", "helper"), tmp_path)
    assert next(package.url for package in named.packages if package.name == "helper").startswith(
        index.removesuffix("simple")
    )


def test_torch_by_pip_must_be_one_version_too(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    folder = tmp_path / "index"
    wheel(folder, "torch", "2.3.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    wheel(folder, "torch", "2.2.0", tag="cp311-cp311-manylinux_2_17_aarch64")
    write_channel(
        tmp_path / "conda-forge",
        *(
            TinyPackage(name, version=version, platform=subdir)
            for subdir in ("linux-64", "linux-aarch64")
            for name, version in (("python", "3.11.9"), ("pip", "24.0"))
        ),
    )
    both = ("linux-64", "linux-aarch64")
    text = make_spec("python", "pip", platforms=both).text + "  - pip:\n"
    selected = "    - torch==2.3.0  # [linux64]\n    - torch==2.2.0  # [aarch64]\n"
    for lines, message in [
        (selected, r"different versions of PyTorch on its platforms: 2\.3\.0, 2\.2\.0"),
        ("    - torch\n", r"for linux-aarch64.*torch \(2\.3\.0\)"),
    ]:
        with pytest.raises(Findings, match=message):
            lock_text(
                make_spec("python", platforms=both, text=text + lines),
                repodata=repodata_of(tmp_path),
                canonical=canonical,
            )


def test_an_unsolvable_pip_section_is_a_finding(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    with pytest.raises(Findings, match="pip section of py311-test cannot be solved for linux-64") as caught:
        lock_of(with_pip("demo==2.0"), tmp_path)
    assert "numpy" in caught.value.message


@pytest.mark.slow
def test_an_index_that_does_not_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    with pytest.raises(Error, match="could not be solved") as caught:
        lock_of(with_pip("demo"), tmp_path)
    assert caught.value.code == 3
    assert "PIP_INDEX_URL" in caught.value.hint


def test_a_pip_section_needs_python(tmp_path: Path) -> None:
    write_channel(tmp_path / "conda-forge", TinyPackage("pip", version="1.0"))
    spec = make_spec("pip", text="channels: [conda-forge]\ndependencies:\n  - pip\n  - pip: [demo]\n")
    with pytest.raises(InputError, match="needs python"):
        lock_text(spec, repodata=repodata_of(tmp_path), canonical=canonical)


@pytest.mark.parametrize(
    "option", ["-r requirements.txt", "-f https://host/whl/", "--find-links=/x", "--pre", "-e ./mine"]
)
def test_options_that_cannot_be_locked_are_refused_with_their_line(tmp_path: Path, option: str) -> None:
    with pytest.raises(InputError) as caught:
        lock_of(with_pip("demo", option), tmp_path)
    assert option.split("=")[0].split(" ")[0] in str(caught.value)
    assert "environment.yml:13" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "indexes", "default"),
    [
        ("--index-url https://h/simple", ("https://h/simple",), False),
        ("-i https://h/simple", ("https://h/simple",), False),
        ("--index-url=https://h/simple  # ours", ("https://h/simple",), False),
        ('"--extra-index-url https://h/cu121"', ("https://h/cu121",), True),
        ("-i https://mirrors.aliyun.com/pypi/simple/", (), True),
        (
            "--index-url https://mirror.nju.edu.cn/pytorch/whl/cu121/",
            ("https://download.pytorch.org/whl/cu121",),
            False,
        ),
        ("torch==2.3.0", (), True),
    ],
)
def test_index_options_are_lifted(line: str, indexes: tuple[str, ...], default: bool) -> None:
    text = f"dependencies:\n  - pip:\n    - {line}\n    - torch\n"
    lifted, found = lift_pip_options(text)
    assert found == PipIndexes(indexes=indexes, default_index=default)
    assert len(lifted.splitlines()) == 4
    assert ("http" in lifted) is False


def test_pips_own_configuration_is_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://one/simple\nextra-index-url = https://two/s\n  file:///three\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert configured_indexes() == PipIndexes(
        indexes=("https://one/simple", "https://two/s"), default_index=False
    )
    monkeypatch.setenv("PIP_INDEX_URL", "https://four/simple")
    assert configured_indexes().indexes == ("https://four/simple", "https://two/s")
    named = PipIndexes(indexes=("https://five/s",), default_index=False)
    assert named.before(configured_indexes()) == named
    extra = PipIndexes(indexes=("https://five/s",))
    assert extra.before(configured_indexes()).indexes == (
        "https://five/s",
        "https://four/simple",
        "https://two/s",
    )


def test_the_shipped_name_map_is_what_conda_lock_reads() -> None:
    from conda_lock.lookup import conda_name_to_pypi_name, pypi_name_to_conda_name

    names = conda_lock_map()
    assert pypi_name_to_conda_name("torch", mapping_url=names) == "pytorch"
    assert conda_name_to_pypi_name("pytorch", mapping_url=names) == "torch"
    assert conda_name_to_pypi_name("py-opencv", mapping_url=names) == "opencv-python"
    assert conda_name_to_pypi_name("typing_extensions", mapping_url=names) == "typing-extensions"
    assert conda_name_to_pypi_name("numpy", mapping_url=names) == "numpy"


def test_wheels_for_a_glibc_that_has_no_build_image_are_found(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVIDIA's wheels are for glibc 2.27; conda-lock knows the tags of 2.17, 2.24 and 2.28 by itself."""
    monkeypatch.setenv("PIP_INDEX_URL", index)
    wheel(tmp_path / "index", "driver", "1.0", tag="py3-none-manylinux_2_27_x86_64")
    wheel(tmp_path / "index", "driver", "2.0", tag="py3-none-manylinux_2_34_x86_64")
    assert pip_packages(lock_of(with_pip("driver<2"), tmp_path)) == {"driver": "1.0"}
    with pytest.raises(Findings, match=r"driver \(2\.0\)"):
        lock_of(with_pip("driver"), tmp_path)


def test_markers_of_many_extras_are_decided_for_one_machine(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shape of cuda-toolkit 13, over which the resolver forgets the time."""
    monkeypatch.setenv("PIP_INDEX_URL", index)
    folder, requires = tmp_path / "index", []
    for name in (parts := [f"part{number}" for number in range(12)]):
        wheel(folder, name, "1.0")
        for extra in (name, "all"):
            requires += [
                f'{name}==1.0; sys_platform == "linux" and extra == "{extra}"',
                f'{name}==1.*; sys_platform == "win32" and extra == "{extra}"',
            ]
    wheel(folder, "toolkit", "13.0", *requires)
    wheel(folder, "user", "1.0", f'toolkit[{",".join(parts)}]==13.0; platform_system == "Linux"')
    began = time.monotonic()
    found = pip_packages(lock_of(with_pip("user"), tmp_path))
    assert found == {"user": "1.0", "toolkit": "13.0", **dict.fromkeys(parts, "1.0")}
    assert time.monotonic() - began < 20


def test_conda_locks_own_names_are_put_back() -> None:
    from conda_lock import pypi_solver
    from conda_lock._vendor.poetry.puzzle.provider import Provider

    before = (pypi_solver.MANYLINUX_TAGS, Provider._get_dependencies_with_overrides)
    with pytest.raises(RuntimeError), for_one_machine():
        assert "_2_27" in pypi_solver.MANYLINUX_TAGS
        raise RuntimeError
    assert before == (pypi_solver.MANYLINUX_TAGS, Provider._get_dependencies_with_overrides)


def test_the_conda_torch_serves_what_pip_asks_for(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    folder = tmp_path / "index"
    wheel(folder, "torch", "2.3.0")
    wheel(folder, "torch", "2.2.0")
    wheel(folder, "trainer", "1.0", "torch>=2")
    torch = TinyPackage("pytorch", "2.2.0", "py3.11_cuda11.8_0", depends=["python"])
    write_channel(tmp_path / "conda-forge", PYTHON, PIP, torch)
    base = make_spec("python=3.11", "pip", "pytorch")
    spec = make_spec("python", text=base.text + "  - pip:\n    - trainer\n")
    lock = parse_lock(
        lock_text(spec, repodata=repodata_of(tmp_path), canonical=canonical), tmp_path / "x.yml"
    )
    assert pip_packages(lock) == {"trainer": "1.0"}


def test_pip_pins_stay_and_move_by_name(tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    before = lock_of(with_pip("helper"), tmp_path)
    wheel(tmp_path / "index", "helper", "0.6")
    for update, version in (((), "0.5"), (("helper",), "0.6")):
        text = lock_text(
            with_pip("helper", "demo"),
            repodata=repodata_of(tmp_path),
            canonical=canonical,
            locked=before,
            update=update,
        )
        assert pip_packages(parse_lock(text, tmp_path / "x.yml"))["helper"] == version


def test_a_build_with_a_label_never_becomes_the_public_indexs_own(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    tag = "cp311-cp311-linux_x86_64"
    wheel(tmp_path / "index", "torch", "2.3.0", tag=tag)
    with pytest.raises(Findings, match="torch"):
        lock_of(with_pip("torch==2.3.0+cu121"), tmp_path)
    wheel(tmp_path / "index", "torch", "2.3.0+cu121", tag=tag)
    lock = lock_of(with_pip("torch==2.3.0+cu121"), tmp_path)
    assert pip_packages(lock) == {"torch": "2.3.0+cu121"}
    assert check_accelerator(lock.packages, "12.1") == []
    # Of two with the same number the labelled one is the higher.
    assert pip_packages(lock_of(with_pip("torch==2.3.*"), tmp_path)) == {"torch": "2.3.0+cu121"}


def test_a_mirror_of_pytorchs_index_is_a_transport() -> None:
    whl = "https://download.pytorch.org/whl/cu126"
    assert index_at(whl, fetch.routes("nju").hosts) == "https://mirror.nju.edu.cn/pytorch/whl/cu126"
    assert index_at("https://mirror.nju.edu.cn/pytorch/whl/cu126", ()) == whl
    assert index_at(whl, fetch.routes("tuna").hosts) == whl
    assert index_at("https://own/simple", fetch.routes("nju").hosts) == "https://own/simple"


ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("ENVKIT_SHARED", ROOT.parent / "shared")) / "channels"


@pytest.mark.network
@pytest.mark.skipif(not SHARED.is_dir(), reason="the sampled channels are not here")
def test_the_variant_whose_torch_comes_by_pip_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata alone: wheels are looked into by ranges of bytes, none is downloaded."""
    monkeypatch.delenv("PIP_CONFIG_FILE")
    asked: list[tuple[str, bool]] = []
    send = requests.Session.send

    def watched(self: requests.Session, request: requests.PreparedRequest, **options: object) -> object:
        path, whole = urlsplit(request.url or "").path, "Range" not in request.headers
        asked.append((path, whole))
        if request.method == "GET" and whole and path.endswith((".whl", ".tar.gz", ".zip")):
            raise AssertionError(f"a download: {path}")
        return send(self, request, **options)

    monkeypatch.setattr(requests.Session, "send", watched)
    matrix = read_matrix(ROOT / "environments" / "matrix.yaml")
    variant = matrix.named("py312-cu130")
    assert variant is not None
    lock = write_lock(
        render(matrix, variant),
        tmp_path / "conda-lock.yml",
        routes=fetch.routes(SHARED.as_uri()),
        cache=tmp_path / "cache",
    )
    found = {package.name: package for package in lock.packages}
    assert found["python"].manager == "conda" and found["python"].version.startswith("3.12.")
    assert found["torch"].manager == "pip" and found["torch"].version.startswith("2.13.")
    assert "cp312-cp312-manylinux_2_28_x86_64" in found["torch"].url
    assert found["nvidia-cuda-runtime"].version.startswith("13.0.")
    assert check_accelerator(lock.packages, "13.0") == []
    assert check_accelerator(lock.packages, "12.6") != []
    pip = [package for package in lock.packages if package.manager == "pip"]
    assert len(pip) > 20
    assert all(len(package.sha256) == 64 and is_pypi_file(package.url) for package in pip)
    assert asked
