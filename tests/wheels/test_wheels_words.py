"""From PEP 440 to conda: every translation is held against the solver's own reading."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envkit.wheels.constraints import (
    build_label,
    conda_name,
    conda_version,
    glibc_floor,
    match_spec,
    parse_requirement,
)


@pytest.mark.parametrize(
    ("pip", "conda"),
    [
        ("numpy", "numpy"),
        ("Typing_Extensions>=4.10", "typing-extensions >=4.10"),
        ("torch==2.13.*", "pytorch 2.13.*"),
        ("torch==2.13.0", "pytorch ==2.13.0"),
        ("torch==2.13.0+cpu", "pytorch ==2.13.0 cpu_*"),
        ("torch==2.13.0+cu130", "pytorch ==2.13.0 cuda130_*"),
        ("a~=1.4.2", "a >=1.4.2,1.4.*"),
        ("a~=2.2", "a >=2.2,2.*"),
        ("a~=1!2.2", "a >=1!2.2,1!2.*"),
        ("a!=1.5", "a !=1.5"),
        ("a!=1.5.*", "a !=1.5.*"),
        ("a<2", "a <2a0"),
        ("a<2.0rc1", "a <2.0rc1"),
        ("a<=2", "a <=2"),
        ("a>1.7", "a >1.7"),
        ("a===1.0", "a ==1.0"),
        ("a (<2,>=1)", "a <2a0,>=1"),
        ("a>=1.0.0-beta.2", "a >=1.0.0b2"),
        ("a @ https://example.org/a.whl", "a"),
    ],
)
def test_constraints(pip: str, conda: str) -> None:
    requirement = parse_requirement(pip)
    assert match_spec(requirement.name, requirement.specifier) == conda


def test_what_pep_508_no_longer_allows_is_left_out() -> None:
    assert parse_requirement("a>=1.*; broken") is None


# With endings, conda compares 1.0a1 and 1.0.0a1 as different; so these have one length.
RELEASES = st.one_of(
    st.builds(
        lambda parts: Version(".".join(map(str, parts))),
        st.lists(st.integers(0, 3), min_size=1, max_size=3),
    ),
    st.builds(
        lambda parts, ending: Version(".".join(map(str, parts)) + ending),
        st.lists(st.integers(0, 3), min_size=3, max_size=3),
        st.sampled_from(["a1", "b2", "rc1", ".post1"]),
    ),
)
CLAUSES = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["==", "!=", "<=", ">=", "<"]), RELEASES),
    st.builds(
        lambda operator, parts: f"{operator}{'.'.join(map(str, parts))}.*",
        st.sampled_from(["==", "!="]),
        st.lists(st.integers(0, 3), min_size=1, max_size=2),
    ),
    st.builds(
        lambda parts: f"~={'.'.join(map(str, parts))}",
        st.lists(st.integers(0, 3), min_size=2, max_size=3),
    ),
)


@given(version=RELEASES, clauses=st.lists(CLAUSES, min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_what_pip_accepts_the_solver_accepts(version: Version, clauses: list[str]) -> None:
    """The one direction that must hold: the channel carries one version of each, the one pip chose."""
    import rattler

    specifiers = SpecifierSet(",".join(clauses))
    if not specifiers.contains(version, prereleases=True):
        return
    record = rattler.PackageRecord(
        name="a", version=conda_version(str(version)), build=rattler.BuildString("0"), build_number=0,
        subdir="noarch", arch=None, platform=None,
    )  # fmt: skip
    assert rattler.MatchSpec(match_spec("a", specifiers), strict=False).matches(record)


@pytest.mark.parametrize(
    ("tags", "floor"),
    [
        (["manylinux_2_28_x86_64"], "2.28"),
        (["manylinux2014_x86_64", "manylinux_2_17_x86_64"], "2.17"),
        (["manylinux1_x86_64"], "2.5"),
        (["manylinux2010_x86_64"], "2.12"),
        (["manylinux_2_27_x86_64", "manylinux_2_28_x86_64"], "2.27"),
        (["linux_x86_64"], None),
        (["any"], None),
    ],
)
def test_glibc_floors(tags: list[str], floor: str | None) -> None:
    assert glibc_floor(tags) == floor


def test_names_and_labels() -> None:
    assert conda_name("Torch") == "pytorch"
    assert conda_name("Ruamel.YAML") == "ruamel-yaml"
    assert build_label("2.13.0+cpu") == "cpu"
    assert build_label("2.13.0+cu126") == "cuda126"
    assert build_label("2.13.0+cpu.cxx11.abi") == "cpu_cxx11_abi"
    assert build_label("2.13.0") == ""
    assert conda_version("1!2.0.post1+cpu") == "1!2.0.post1"
