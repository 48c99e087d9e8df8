"""The tables of facts: every row has its source, and the shipped matrix agrees with them."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
import yaml

from envkit.matrix import Axes, Matrix, select
from envkit.matrix.constraint import parse_constraint
from envkit.matrix.hardware import Verdict, arch_ok
from envkit.matrix.pins import pins
from envkit.matrix.releases import known_releases, python_versions
from envkit.matrix.requirements import pip_requirements
from envkit.model import Gpu, Host


def table(name: str) -> dict[str, Any]:
    text = (resources.files("envkit") / "data" / name).read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def test_every_release_and_build_names_a_source_of_its_table() -> None:
    releases, builds = table("torch_matrix.yaml"), table("torch_arch_lists.yaml")
    assert all(set(row["src"]) <= set(releases["sources"]) and row["src"] for row in releases["releases"])
    for row in builds["builds"]:
        assert row["src"] in builds["sources"] or row["verified"] is False, row
        assert parse_constraint(row["torch"]) is not None
    assert all(row["source"] for row in table("bad_combos.yaml")["rules"])


def test_the_pytorch_channel_has_the_builds_that_were_published(shipped: Matrix) -> None:
    builds = shipped.sources["pytorch"].builds
    for row in table("torch_matrix.yaml")["releases"]:
        for cuda, constraint in builds.items():
            if cuda == "cpu" or not builds["cpu"].admits(row["torch"]):
                continue
            # The channel had no CUDA 11.7 builds after 2.0 and none for 11.6 worth keeping.
            assert constraint.admits(row["torch"]) == (cuda in row["cuda"]), (row["torch"], cuda)


def test_releases_are_sorted_and_python_ranges_known() -> None:
    releases = {release.torch: release for release in known_releases()}
    assert releases["1.13.1"].supports("3.10")
    assert not releases["1.13.1"].supports("3.11")
    assert releases["2.3.0"].supports("3.12")  # experimental, but published
    assert not releases["2.12.1"].supports("3.9")  # a patch release the table lacks is like its series
    assert releases["2.20.0"].supports("3.19")  # nothing is known of it
    assert not releases["2.20.0"].supports("3.9")  # but that floors never go down
    assert releases["2.5.1"].torchvision == "0.20.1"
    assert python_versions()[0] == "3.7"
    assert python_versions()[-1] == "3.15"


@pytest.mark.parametrize(
    ("variant", "capability", "verdict"),
    [
        ("py311-cu118", "3.7", Verdict.YES),
        ("py311-cu118", "3.5", Verdict.NO),
        ("py311-cu118", "8.9", Verdict.YES),
        ("py311-cu118", "10.0", Verdict.NO),
        ("py311-cu121", "3.7", Verdict.NO),
        ("py311-cu124", "9.0", Verdict.YES),
        ("py311-cu124", "12.0", Verdict.NO),
        ("py311-cu126", "7.0", Verdict.UNKNOWN),  # no row for conda-forge's CUDA 12.6
        ("py311-cu126", "3.7", Verdict.NO),  # but the toolkit itself excludes these two
        ("py311-cu126", "12.0", Verdict.NO),
        ("py311-cu129", "5.0", Verdict.YES),
        ("py311-cu129", "12.1", Verdict.YES),
        ("py311-cu129", "3.7", Verdict.NO),
        ("py39-pt113-cu117", "9.0", Verdict.NO),
    ],
)
def test_a_build_runs_where_it_has_code(
    shipped: Matrix, variant: str, capability: str, verdict: Verdict
) -> None:
    chosen = select(shipped, Axes(name=variant))
    gpu, host = Gpu(index=0, name="GPU", capability=capability), Host(platform="linux-64", driver="580.65.06")
    assert arch_ok(shipped, chosen, gpu, host).verdict is verdict


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        (Axes(name="py311-cpu"), []),
        (Axes(name="py311-cu129"), []),
        (Axes(name="py311-pt23-cu118"), ["mkl<2024.1", "libcurand<10.3.9"]),
        (Axes(name="py311-cu124"), ["mkl<2024.1", "libcurand<10.3.9"]),
        (Axes(name="py311-torch"), ["mkl<2024.1", "numpy<2", "libcurand<10.3.9"]),
        (Axes(name="py39-pt113-cu117"), ["mkl<2024.1", "numpy<2", "libcusparse<12", "libcurand<10.3.9"]),
        (Axes(source="pytorch", cuda="cpu"), ["mkl<2024.1", "numpy<2"]),
        (Axes(source="conda-forge", cuda="11.8", torch="2.3"), []),
        (Axes(source="conda-forge", cuda="11.8", torch="2.1"), ["numpy<2"]),
        (Axes(source="conda-forge", cuda="cpu", torch="2.3"), ["numpy<2"]),  # win-64 is among its platforms
    ],
)
def test_known_bad_combinations_are_pinned(shipped: Matrix, axes: Axes, expected: list[str]) -> None:
    assert [pin.spec for pin in pins(shipped, select(shipped, axes))] == expected


def test_the_same_variant_in_words_of_pip(shipped: Matrix) -> None:
    wheels = select(shipped, Axes(source="wheels", extras=("vision",)))
    assert pip_requirements(shipped, wheels) == (
        "torch==2.13.*",
        "numpy",
        "pip",
        "opencv-python-headless",
        "imageio",
        "pillow",
    )
    old = select(shipped, Axes(source="wheels", torch=">=2.0,<2.3"))
    assert pip_requirements(shipped, old) == ("torch>=2.0,<2.3", "numpy<2", "pip")
