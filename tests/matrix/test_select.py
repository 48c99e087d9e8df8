"""From axes to one variant, and refusals before anything is solved."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.errors import InputError
from envkit.matrix import Axes, Matrix, choose, read_matrix, select
from envkit.matrix.constraint import parse_constraint
from envkit.matrix.naming import MadeName, make_name, read_name
from envkit.model import Host

MATRIX = Path(__file__).parents[2] / "environments" / "matrix.yaml"


@pytest.mark.parametrize(
    ("axes", "name"),
    [
        (Axes(), "py311-cpu"),
        (Axes(cuda="auto"), "py311-cpu"),
        (Axes(cuda="cpu"), "py311-cpu"),
        (Axes(cuda="11.8"), "py311-cu118"),
        (Axes(cuda="cu118"), "py311-cu118"),
        (Axes(cuda="118"), "py311-cu118"),
        (Axes(cuda="CUDA=12.9"), "py311-cu129"),
        (Axes(cuda="12.6", python="py311"), "py311-cu126"),
        (Axes(torch="2.3"), "py311-pt23-cu118"),
        (Axes(torch="2.3.*", cuda="11.8"), "py311-pt23-cu118"),
        (Axes(torch="1.13"), "py39-pt113-cu117"),
        (Axes(python="3.9"), "py39-pt113-cu117"),
        (Axes(source="pytorch"), "py311-cu118"),
        (Axes(cuda="11.8", extras=("torchvision",)), "py311-cu118"),
        (Axes(cuda="11.8", extras=("notebook",)), "py311-cu118+notebook"),
        (Axes(cuda="11.8", extras=("vision", "notebook", "vision")), "py311-cu118+notebook+vision"),
        (Axes(cuda="11.8", extras=("notebook", "torchaudio", "torchvision")), "py311-torch"),
        (Axes(name="py311-torch"), "py311-torch"),
        (Axes(name="py311-cu118", cuda="11.8"), "py311-cu118"),
        (Axes(name="py311-cu118", extras=("notebook",)), "py311-cu118+notebook"),
        (Axes(name="py311-cu118+vision", extras=("notebook",)), "py311-cu118+notebook+vision"),
        (Axes(python="3.12", cuda="12.6"), "py312-cu126"),
        (Axes(cuda="12.1", torch="2.4"), "py311-pt24-cu121"),
        (Axes(cuda="12.1", torch="2.4.1"), "py311-pt2.4.1-cu121"),
        (Axes(python="3.12"), "py312-cpu"),
        (Axes(python="3.12", extras=("notebook",)), "py312-cpu+notebook"),
        (Axes(source="pytorch", cuda="cpu"), "py311-cpu-pytorch"),
        (Axes(source="conda-forge", cuda="11.8"), "py311-cu118-conda-forge"),
        (Axes(source="wheels"), "wheels-py311-cpu"),
        (Axes(source="wheels", python="3.12", extras=("vision",)), "wheels-py312-cpu+vision"),
        (Axes(cuda="11.8", torch=">=2.0,<2.4"), "py311-ptge2.0_lt2.4-cu118"),
    ],
)
def test_axes_name_a_variant_which_its_name_finds_again(shipped: Matrix, axes: Axes, name: str) -> None:
    variant = select(shipped, axes)
    assert variant.name == name
    assert select(shipped, Axes(name=name)) == variant


def test_an_extra_is_added_to_those_the_variant_has(shipped: Matrix) -> None:
    variant = select(shipped, Axes(cuda="11.8", extras=("notebook",)))
    assert variant.extras == ("torchvision", "notebook")
    assert not shipped.lists(variant)
    assert shipped.lists(select(shipped, Axes(cuda="11.8")))


def test_the_source_is_the_first_that_has_the_build(shipped: Matrix) -> None:
    assert select(shipped, Axes(python="3.12", cuda="12.4")).source == "pytorch"
    assert select(shipped, Axes(python="3.12", cuda="12.9")).source == "conda-forge"
    assert select(shipped, Axes(python="3.13", cuda="11.8")).source == "conda-forge"
    assert select(shipped, Axes(python="3.9", cuda="cpu")).source == "pytorch"


@pytest.mark.parametrize(
    ("axes", "message", "hint"),
    [
        # values that do not exist, with the nearest that do
        (Axes(cuda="11.9"), "nearest are 11.8, 12.0, 11.7", "--cuda 11.8"),
        (Axes(cuda="12.5"), "nearest are 12.4, 12.6", "--cuda "),
        (Axes(cuda="nvidia"), "nearest are cpu, auto", "--cuda cpu"),
        (Axes(cuda="12"), "nearest are 12.0", "--cuda 12.0"),
        (Axes(python="3.99"), "nearest are 3.15", "--python 3.15"),
        (Axes(python="2.7"), "nearest are 3.7", "--python 3.7"),
        (Axes(python="3.11.4"), "--python 3.11.4` is not known", "--python 3.1"),
        (Axes(source="forge"), "nearest are conda-forge", "--source conda-forge"),
        (Axes(extras=("visoin",)), "nearest are vision", "--with vision"),
        (Axes(torch="two"), "torch two is not a version", "2.3"),
        (Axes(torch="1.5"), "no known release", "1.13, 2.0"),
        (Axes(name="py311-cu11"), "no variant 'py311-cu11'", "envkit variants"),
        (Axes(name="py311-cu181"), "no variant 'py311-cu181'; .*py311-cu118", "envkit variants"),
        (Axes(name="../etc"), "no variant '../etc'", "envkit variants"),
        (Axes(name="py311-cu118+"), "--with ` is not known", ""),
        (Axes(name=""), "no variant ''", ""),
        # combinations that do not exist, with the reason
        (Axes(source="pytorch", torch="2.6"), "pytorch has no PyTorch 2.6", "<=2.5.1"),
        (Axes(source="conda-forge", cuda="12.1"), "conda-forge has no CUDA 12.1 builds", "CUDA 12.0"),
        (Axes(cuda="12.1", torch="2.6"), "pytorch has no PyTorch 2.6.*conda-forge has no CUDA 12.1", ""),
        (Axes(cuda="12.4", torch="2.3", source="pytorch"), "CUDA 12.4 builds of PyTorch >=2.4", "CUDA 11.8"),
        (Axes(cuda="12.9", python="3.9"), "no PyTorch builds for Python 3.9", ">=3.10"),
        (Axes(python="3.9", source="conda-forge"), "no PyTorch builds for Python 3.9", ">=3.10"),
        (Axes(python="3.11", torch="1.13"), "supports Python 3.11", "--python` from 3.7 to 3.10"),
        (Axes(python="3.8", cuda="12.4", torch="2.5"), "supports Python 3.8", "--python` from 3.9 to"),
        (Axes(source="wheels", cuda="11.8"), "wheels has no CUDA 11.8", ""),
        (Axes(name="py311-cpu", cuda="11.8"), "not what was asked", "either the name"),
        (Axes(name="py313-cu124"), "Python 3.13", ""),
    ],
)
def test_what_does_not_exist_is_refused_with_the_reason(
    shipped: Matrix, axes: Axes, message: str, hint: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        select(shipped, axes)
    assert hint in caught.value.hint


def test_a_torch_newer_than_the_tables_is_left_to_the_solver(shipped: Matrix) -> None:
    assert select(shipped, Axes(torch="2.17", cuda="12.9")).torch == "2.17.*"


def test_a_listed_variant_that_cannot_exist_is_refused_when_it_is_chosen(
    write: Callable[[str], Path], small: str
) -> None:
    matrix = read_matrix(write(small + '  py38-cu126: {python: "3.8", cuda: "12.6", source: conda-forge}\n'))
    with pytest.raises(InputError, match=r"supports Python 3\.8"):
        select(matrix, Axes(name="py38-cu126"))


def test_a_platform_narrows_made_variants_only(shipped: Matrix) -> None:
    assert select(shipped, Axes(python="3.12"), "linux-64").platforms == ("linux-64",)
    assert select(shipped, Axes(name="py311-cpu+notebook"), "linux-aarch64").platforms == ("linux-aarch64",)
    assert len(select(shipped, Axes(cuda="cpu"), "linux-64").platforms) == 4
    assert select(shipped, Axes(python="3.12", cuda="12.4"), "osx-arm64").platforms == ("linux-64",)


@cache
def shipped_once() -> Matrix:
    return read_matrix(MATRIX)


PLAUSIBLE = (
    *("3.11", "3.9", "3.12", "py310", "11.8", "cu126", "12.1", "cpu", "auto", "2.3", "1.13", "2.12.0"),
    *("<=2.5.1", ">=2,<2.4", "pytorch", "conda-forge", "wheels", "pip", "py311-cu118+vision", "py312-cu126"),
)
words = st.one_of(st.none(), st.sampled_from(PLAUSIBLE), st.text(max_size=12))
extras = st.one_of(
    st.none(),
    st.lists(st.one_of(st.sampled_from(["vision", "notebook", "train"]), st.text(max_size=5))).map(tuple),
)
any_axes = st.builds(Axes, python=words, cuda=words, torch=words, source=words, extras=extras, name=words)


@settings(deadline=None, max_examples=300)
@given(axes=any_axes)
def test_select_gives_a_variant_or_an_input_error(axes: Axes) -> None:
    matrix = shipped_once()
    try:
        variant = select(matrix, axes)
    except InputError as problem:
        assert problem.message
        return
    assert select(matrix, Axes(name=variant.name)) == variant


@settings(deadline=None, max_examples=100)
@given(axes=any_axes)
def test_choose_gives_a_reason_or_an_input_error(axes: Axes) -> None:
    matrix = shipped_once()
    try:
        choice = choose(matrix, Host(platform="linux-64", glibc="2.31"), axes)
    except InputError as problem:
        assert problem.message
        return
    assert choice.reason


clauses = st.builds(
    "{}{}".format,
    st.sampled_from(["", "==", "!=", ">=", "<=", "<", ">", "="]),
    st.sampled_from(["2", "2.3", "1.13", "2.12", "2.3.*", "2.5.1", "2.12.0", "2.*"]),
)


@given(texts=st.lists(clauses, min_size=1, max_size=3))
def test_a_made_name_is_read_back_and_safe(texts: list[str]) -> None:
    torch = parse_constraint(",".join(texts))
    if torch is None:
        return
    name = MadeName(python="3.11", accelerator="12.6", torch=torch, source="conda-forge")
    text = make_name(name)
    assert read_name(text) == name
    assert parse_constraint(torch.text) == torch
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
