"""From a variant to its environment.yml: the shipped files, templates of a team, digests, solves."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.errors import InputError
from envkit.matrix import Axes, Matrix, read_matrix, select
from envkit.model import Spec, VirtualPackage
from envkit.render import TEMPLATE, digest, environment_file, render

PROJECT = Path(__file__).parents[1]
SHARED = PROJECT.parent / "shared" / "channels"
SHIPPED = read_matrix(PROJECT / "environments" / "matrix.yaml")
NAMES = [variant.name for variant in SHIPPED.variants]


def rendered(name: str, matrix: Matrix = SHIPPED) -> Spec:
    return render(matrix, select(matrix, Axes(name=name)))


def document(spec: Spec) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(spec.text)
    return loaded


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_file_is_what_render_gives(name: str) -> None:
    spec = rendered(name)
    committed = environment_file(PROJECT, spec.variant).read_text(encoding="utf-8")
    assert committed == spec.text, f"run `envkit render {name}`"


@pytest.mark.parametrize(
    ("name", "channels", "dependencies"),
    [
        ("py311-cpu", ("conda-forge",), ["python=3.11", "pytorch=2.12.0=cpu_*", "numpy", "pip"]),
        (
            "py311-cu129",
            ("conda-forge",),
            ["python=3.11", "pytorch=2.12.*=cuda129*", "pytorch-gpu", "cuda-version=12.9", "numpy", "pip"],
        ),
        (
            "py39-pt113-cu117",
            ("pytorch", "nvidia", "conda-forge"),
            [
                *("python=3.9", "pytorch=1.13.*=*cuda11.7*", "pytorch-cuda=11.7", "pip", "torchvision"),
                *("mkl<2024.1", "numpy<2", "libcusparse<12", "libcurand<10.3.9"),
            ],
        ),
        (
            "py311-torch",
            ("pytorch", "nvidia", "conda-forge"),
            [
                *("python=3.11", "pytorch >=2.0 *cuda11.8*", "pytorch-cuda=11.8", "pip", "torchvision"),
                *("torchaudio", "jupyterlab", "ipykernel", "mkl<2024.1", "numpy<2", "libcurand<10.3.9"),
            ],
        ),
    ],
)
def test_what_a_variant_asks_for(name: str, channels: tuple[str, ...], dependencies: list[str]) -> None:
    spec = rendered(name)
    assert spec.channels == channels
    assert document(spec) == {
        "name": name,
        "channels": [*channels, "nodefaults"],
        "dependencies": dependencies,
    }


def test_a_pin_says_why_and_where_it_was_reported() -> None:
    lines = {line.split("#")[0].strip(" -"): line for line in rendered("py311-cu118").text.splitlines()}
    assert "built for NumPy 1: https://github.com/pytorch/pytorch/issues/132179" in lines["numpy<2"]
    assert "https://github.com/pytorch/pytorch/issues/123097" in lines["mkl<2024.1"]


def test_opencv_comes_by_pip_beside_the_pytorch_channel_only() -> None:
    beside = document(rendered("py311-cu118+vision"))["dependencies"]
    assert beside[-1] == {"pip": ["opencv-python-headless<4.12"]}
    assert "imageio" in beside and "opencv" not in beside
    alone = document(rendered("py311-cu129+vision"))["dependencies"]
    assert "opencv" in alone and all(isinstance(spec, str) for spec in alone)


def test_the_wheel_channel_is_not_rendered() -> None:
    with pytest.raises(InputError, match="made on this machine") as caught:
        rendered("wheels-py311-cpu")
    assert "--mirror wheels" in caught.value.hint


def test_virtual_packages_are_those_of_the_platform_never_the_hosts() -> None:
    def on(name: str, platform: str) -> list[str]:
        return [str(package) for package in rendered(name).virtual_packages[platform]]

    linux = ["__archspec=1=x86_64", "__glibc=2.17=0", "__linux=3.10=0", "__unix=0=0"]
    assert on("py311-cpu", "linux-64") == linux
    assert on("py311-cu118", "linux-64") == [linux[0], "__cuda=11.8=0", *linux[1:]]
    assert on("py311-cu129", "linux-64")[1:3] == ["__cuda=12.9=0", "__glibc=2.28=0"]
    assert on("py311-cpu", "linux-aarch64")[0] == "__archspec=1=aarch64"
    assert on("py311-cpu", "osx-arm64") == ["__archspec=1=arm64", "__osx=11.0=0", "__unix=0=0"]
    assert on("py311-cpu", "win-64") == ["__archspec=1=x86_64", "__win=10.0=0"]


def test_the_digest_is_stable_and_changes_with_all_a_solve_depends_on() -> None:
    packages = {"linux-64": (VirtualPackage(name="__glibc", version="2.17"),)}
    own = digest("text\n", ("a", "b"), packages)
    # The lines that the docstring of `digest` describes. A change here makes every user's lock stale.
    assert own == "992a2cecd5f5236d27894e097c803b3fc7b59d6125f910b13e98d2d797d226f3"
    others = [
        digest("text2\n", ("a", "b"), packages),
        digest("text\n", ("b", "a"), packages),
        digest("text\n", ("a", "b"), {"linux-aarch64": packages["linux-64"]}),
        digest("text\n", ("a", "b"), {"linux-64": (VirtualPackage(name="__glibc", version="2.28"),)}),
    ]
    assert len({own, *others}) == 5
    assert rendered("py311-cu118") == rendered("py311-cu118")


# --- templates of a team ---------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project's matrix and templates, to be spoiled."""
    (tmp_path / "environments").mkdir()
    shutil.copy(PROJECT / "environments" / "matrix.yaml", tmp_path / "environments")
    shutil.copytree(PROJECT / "templates", tmp_path / "templates")
    return tmp_path


def render_in(project: Path, name: str = "py311-cu118") -> Spec:
    return rendered(name, read_matrix(project / "environments" / "matrix.yaml"))


def test_a_teams_own_part_is_honoured(project: Path) -> None:
    part = project / "templates" / "environment" / "header.yml.j2"
    part.write_text("# ours: {{ variant.name }}\n", encoding="utf-8")
    assert render_in(project).text.startswith("# ours: py311-cu118\nname: py311-cu118\n")


def test_without_templates_envkits_own_are_used(project: Path) -> None:
    shutil.rmtree(project / "templates")
    assert render_in(project).text == rendered("py311-cu118").text


@pytest.mark.parametrize(
    ("file", "text", "message", "line"),
    [
        (TEMPLATE, "name: x\n{% if %}\n", "does not parse", 2),
        (TEMPLATE, "name: x\n\n{{ nonsense }}\n", "'nonsense' is undefined", 3),
        (TEMPLATE, "{{ variant.colour }}\n", "has no attribute 'colour'", 1),
        (TEMPLATE, "{{ variant.name | shout }}\n", "No filter named 'shout'", 1),
        (TEMPLATE, "a: 1\n{{ 1 / 0 }}\n", "division by zero", 2),
        (TEMPLATE, "{% for i in range(10 ** 9) %}x{% endfor %}\n", "Range too big", 1),
        (TEMPLATE, "{{ variant.__class__.__mro__ }}\n", "unsafe", 1),
        (TEMPLATE, "{% include 'environment/gone.j2' %}\n", "no template 'environment/gone.j2'", None),
        (TEMPLATE, "{% include '../../etc/passwd' %}\n", "no template", None),
        (TEMPLATE, "name: [\n", "not YAML", None),
        (TEMPLATE, "- a\n", "without a list of channels", None),
        (TEMPLATE, "", "without a list of channels", None),
        (TEMPLATE, "channels:\ndependencies: [a]\n", "without a list of channels", None),
        (TEMPLATE, "channels: [a, nodefaults]\ndependencies: []\n", "without a list of dependencies", None),
        (TEMPLATE, "channels: [a]\ndependencies: [a]\n", "do not end with nodefaults", None),
        (TEMPLATE, "channels: [1, nodefaults]\ndependencies: [a]\n", "do not end with nodefaults", None),
        (TEMPLATE, "channels: [a, nodefaults]\ndependencies: [1.0]\n", "a dependency that is not text", None),
        ("environment/pip.yml.j2", "{% endif %}\n", "does not parse", 1),
        ("environment/pip.yml.j2", "\n{{ nonsense }}\n", "'nonsense' is undefined", 2),
    ],
)
def test_a_template_mistake_has_file_and_line(
    project: Path, file: str, text: str, message: str, line: int | None
) -> None:
    path = project / "templates" / file
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        render_in(project)
    if line is not None:
        assert (caught.value.path, caught.value.line) == (path, line)


def test_a_template_that_is_not_utf8_is_an_input_error(project: Path) -> None:
    (project / "templates" / TEMPLATE).write_bytes(b"name: \xff\n")
    with pytest.raises(InputError, match="cannot be read"):
        render_in(project)


# --- quoting ---------------------------------------------------------------------------------------------

MATRIX_TEXT = (PROJECT / "environments" / "matrix.yaml").read_text(encoding="utf-8")
any_spec = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20
).filter(lambda text: bool(text.strip()))


@settings(deadline=None, max_examples=50)
@given(conda=st.lists(any_spec, max_size=4, unique=True), pip=st.lists(any_spec, max_size=3, unique=True))
def test_whatever_is_inserted_is_read_back_from_the_yaml(conda: list[str], pip: list[str]) -> None:
    notebook = SHIPPED.extras["notebook"]
    packages = replace(notebook.packages, conda=tuple(conda))
    extra = replace(notebook, packages=packages, beside={"conda-forge": replace(packages, pip=tuple(pip))})
    matrix = replace(SHIPPED, extras={**SHIPPED.extras, "notebook": extra})
    found = document(render(matrix, select(matrix, Axes(name="py311-cpu+notebook"))))["dependencies"]
    fixed = ["python=3.11", "pytorch=2.12.0=cpu_*", "numpy", "pip"]
    assert found[:4] == fixed
    assert found[4 : 4 + len(conda)] == [spec for spec in conda if spec not in fixed]
    assert found[4 + len(conda) :] == ([{"pip": pip}] if pip else [])


# --- solves on real records ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sampled channels without the records that lost dependencies on their way (conda-lock's)."""
    if not SHARED.is_dir():
        pytest.skip("the sampled channels are not here")
    weak = set(_unpacked(SHARED / "condalock-sourced.tsv.zst").decode().splitlines())
    tree = tmp_path_factory.mktemp("records")
    for channel in ("pytorch", "nvidia", "conda-forge"):
        for source in sorted((SHARED / channel).glob("*/repodata.json.zst")):
            repodata = json.loads(_unpacked(source))
            for kind in ("packages", "packages.conda"):
                repodata[kind] = {
                    file: record
                    for file, record in repodata.get(kind, {}).items()
                    if f"{channel}\t{source.parent.name}\t{file}" not in weak
                }
            target = tree / channel / source.parent.name / "repodata.json"
            target.parent.mkdir(parents=True)
            target.write_text(json.dumps(repodata), encoding="utf-8")
    return tree


def _unpacked(path: Path) -> bytes:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        return io.BufferedReader(stream).read()


def solved(spec: Spec, platform: str, records: Path) -> dict[str, Any]:
    import rattler

    repodata = [
        rattler.SparseRepoData(rattler.Channel(channel), subdir, path)
        for channel in spec.channels
        for subdir in (platform, "noarch")
        if (path := records / channel / subdir / "repodata.json").exists()
    ]
    packages = [
        rattler.GenericVirtualPackage(
            rattler.PackageName(package.name),
            rattler.Version(package.version),
            rattler.BuildString(package.build),
        )
        for package in spec.virtual_packages[platform]
    ]
    specs = [dependency for dependency in document(spec)["dependencies"] if isinstance(dependency, str)]

    async def solve() -> Any:
        return await rattler.solve_with_sparse_repodata(
            [rattler.MatchSpec(text, strict=False) for text in specs],
            repodata,
            virtual_packages=packages,
            channel_priority=rattler.ChannelPriority.Strict,
        )

    return {record.name.normalized: record for record in asyncio.run(solve())}


@pytest.mark.parametrize("name", [name for name in NAMES if rendered(name).variant.source != "pip"])
def test_a_shipped_variant_solves_on_each_platform_with_one_torch(name: str, records: Path) -> None:
    spec = rendered(name)
    found = {platform: solved(spec, platform, records) for platform in spec.variant.platforms}
    assert len({str(packages["pytorch"].version) for packages in found.values()}) == 1
    cuda = spec.variant.cuda
    for packages in found.values():
        build = str(packages["pytorch"].build)
        assert ("cuda" in build) == (cuda is not None), build
        if cuda is not None:
            assert f"cuda{cuda}" in build or f"cuda{cuda.replace('.', '')}" in build


@pytest.mark.parametrize(
    "name",
    ["py311-cu118+notebook", "py311-cu118+vision", "py311-cu118+train", "py311-cu129+notebook+train+vision"],
)
def test_extras_solve_on_linux(name: str, records: Path) -> None:
    assert "pytorch" in solved(rendered(name), "linux-64", records)
