"""Variants whose torch comes by pip: what exists, what they render to, which machines run them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from envkit.errors import InputError
from envkit.matrix import Axes, Matrix, Verdict, choose, judge, read_matrix, select
from envkit.model import Gpu, Host
from envkit.render import render

Write = Callable[[str], Path]


def host(capability: str = "9.0", driver: str = "580.65.06", cuda: str = "13.0", glibc: str = "2.35") -> Host:
    gpu = Gpu(index=0, name="a GPU", capability=capability)
    return Host(platform="linux-64", glibc=glibc, driver=driver, driver_cuda=cuda, gpus=(gpu,))


def pip_section(text: str) -> list[str]:
    section: list[str] = yaml.safe_load(text)["dependencies"][-1]["pip"]
    return section


def test_the_index_of_a_build_is_named_where_it_is_not_the_public_one(shipped: Matrix) -> None:
    own = render(shipped, select(shipped, Axes(name="py312-cu130")))
    assert pip_section(own.text) == ["torch==2.13.*", "numpy"]
    other = render(shipped, select(shipped, Axes(cuda="12.6", source="pip")))
    assert pip_section(other.text) == [
        "--extra-index-url https://download.pytorch.org/whl/cu126",
        "torch==2.13.*",
        "numpy",
    ]
    assert yaml.safe_load(own.text)["dependencies"][:2] == ["python=3.12", "pip"]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (Axes(cuda="11.8", source="pip"), "pip has no CUDA 11.8 builds"),
        (Axes(cuda="13.0", source="pip", torch="2.4"), "not of 2.4|no PyTorch 2.4|only"),
        (Axes(cuda="12.6", source="pip", python="3.9"), "no PyTorch builds for Python 3.9"),
        (Axes(cuda="12.6", source="pip", torch="2.5"), "has no PyTorch 2.5"),
    ],
)
def test_what_does_not_exist_is_refused_as_for_other_sources(
    shipped: Matrix, axes: Axes, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        select(shipped, axes)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("machine", "verdict", "because"),
    [
        (host(), Verdict.YES, ""),
        (host("12.1", "590.10.01", "13.1"), Verdict.YES, ""),  # by PTX for 12.0
        (host("7.0"), Verdict.NO, "not among the GPUs that CUDA 13.0 builds of pip run on"),
        (host("8.6", "535.104.05", "12.2"), Verdict.NO, "older than the 580"),
        (host(glibc="2.17"), Verdict.NO, "older than the 2.28"),
    ],
)
def test_machines_are_judged_by_the_wheels_own_targets(
    shipped: Matrix, machine: Host, verdict: Verdict, because: str
) -> None:
    answer = judge(shipped, select(shipped, Axes(name="py312-cu130")), machine)
    assert answer.verdict is verdict
    assert because in answer.reason


def test_what_the_team_does_not_keep_is_taken_only_when_asked_for(shipped: Matrix) -> None:
    assert choose(shipped, host(), Axes()).variant.name == "py311-cu129"
    assert choose(shipped, host(), Axes(python="3.12")).variant.source == "conda-forge"
    assert choose(shipped, host(), Axes(python="3.12", cuda="13.0")).variant.name == "py312-cu130"
    assert select(shipped, Axes(python="3.12", source="pip", cuda="13.0")).name == "py312-cu130"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"12.6": https://download', '"12.6": http://download', "not the https address of a Python index"),
        ('"12.6": https://download', '"12.9": https://download', "there is no build '12.9'"),
        ("committed: false", "committed: no-way", "committed must be true or false"),
    ],
)
def test_mistakes_are_told_with_their_line(
    shipped: Matrix, write: Write, old: str, new: str, message: str
) -> None:
    text = shipped.path.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(InputError, match=message) as caught:
        read_matrix(write(text.replace(old, new)))
    assert caught.value.line
