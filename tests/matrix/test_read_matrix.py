"""matrix.yaml read strictly: each mistake with its line, all at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envkit.errors import InputError
from envkit.matrix import Axes, Matrix, find_root, read_matrix, select

Write = Callable[[str], Path]


def test_the_shipped_matrix_holds_what_was_promised(shipped: Matrix) -> None:
    assert [variant.name for variant in shipped.variants] == [
        "py311-cpu",
        "py311-cu118",
        "py311-cu121",
        "py311-cu124",
        "py311-cu126",
        "py311-cu129",
        "py39-pt113-cu117",
        "py311-pt23-cu118",
        "py311-torch",
        "py312-cu130",
    ]
    assert [variant.name for variant in shipped.variants if not shipped.commits(variant)] == ["py312-cu130"]
    assert shipped.variants[0].platforms == ("linux-64", "linux-aarch64", "osx-arm64", "win-64")
    assert {variant.platforms for variant in shipped.variants[1:]} == {("linux-64",)}
    assert set(shipped.extras) == {"notebook", "torchvision", "torchaudio", "vision", "train"}


def test_what_is_not_said_comes_from_the_defaults(write: Write, small: str) -> None:
    cpu, cuda = read_matrix(write(small)).variants
    assert (cpu.python, cpu.torch, cpu.platforms) == ("3.11", ">=2.4", ("linux-64", "linux-aarch64"))
    assert (cuda.accelerator, cuda.torch, cuda.platforms) == ("11.8", "<=2.5.1", ("linux-64",))


CHANGES = [
    # (what is replaced, by what, the text that names the mistake, a part of the hint)
    ("schema: 1", "schema: 2", "schema 2 is not known", "update envkit"),
    ("schema: 1", 'schema: "1"', "schema must be the number 1", "schema: 1"),
    ("defaults:", "default:", "unknown key 'default'", "'defaults'"),
    ('python: "3.11"', "python: 3.11", "read as the number 3.11", "3.10 becomes 3.1"),
    ('python: "3.11"', "python: 3.10", "read as the number 3.1", "3.10 becomes 3.1"),
    ('python: "3.11"', 'python: "3.11.4"', "not a Python minor version", "3.11"),
    ('python: "3.11"', "python: yes", "must be text, not yes or no", "quotes"),
    ('python: "3.11"', "python: [a]", "must be text, not a list", ""),
    ('python: "3.11"', 'glibc: "2.x"\n  python: "3.11"', "not a glibc version", "2.17"),
    ("cpu: [linux-64, linux-aarch64]", "cpu: [linux-32]", "no platform 'linux-32'", "linux-64"),
    ("cpu: [linux-64, linux-aarch64]", "cpu: linux-64", "must be a list", "[linux-64]"),
    ("cpu: [linux-64, linux-aarch64]", "cpu: []", "defaults.platforms.cpu is empty", ""),
    ("cpu: [linux-64, linux-aarch64]", "cpu: [linux-64, linux-64]", "names 'linux-64' twice", ""),
    ("cpu: [conda-forge], cuda", "cpu: [condaforge], cuda", "no source 'condaforge'", "conda-forge"),
    ("[pytorch, nvidia, conda-forge]\n", "[https://a.b/c]\n", "not the name of a channel", "--mirror"),
    ('torch: "<=2.5.1"', 'torch: "newest"', "'newest' is not a version constraint", ">=2.0"),
    ('torch: "<=2.5.1"', "torch: 2.5", "read as the number 2.5", "quotes"),
    ('"11.8": ">=2.0', '11.8: ">=2.0', "'11.8' in sources.pytorch.builds is not a CUDA version", "quotes"),
    ('"11.8": ">=2.0', '"eleven": ">=2.0', "'eleven' in sources.pytorch.builds", "12.4"),
    ("needs: {cpu: [cpuonly]", 'needs: {cpu: ["a #b"]', "'a #b' is not a package name", "numpy<2"),
    ("needs: {cpu: [cpuonly]", "needs: {gpu: [cpuonly]", "unknown key 'gpu'", "'cpu'"),
    ("notebook: {conda", "notebook: {condo", "unknown key 'condo'", "'conda'"),
    ("[jupyterlab], pip", '["https://x/y"], pip', "not a package name", ""),
    ("[jupyterlab], pip", '["{cuda}"], pip', "not a package name", ""),
    ("  notebook: {", "  note+book: {", "'note+book' cannot be a name", "'+' is kept"),
    ("py311-cpu:", "../py311:", "'../py311' cannot be a name", "letters"),
    ("py311-cpu:", "a/b:", "'a/b' cannot be a name", "letters"),
    ("py311-cpu:", '"a b":', "'a b' cannot be a name", "letters"),
    ("py311-cpu:", "a..b:", "'a..b' cannot be a name", "letters"),
    ("py311-cpu:", "311:", "'311' in variants is read as a number", '"311"'),
    ("py311-cpu:", "wheels-x:", "kept for the wheel channel", ""),
    ("py311-cu118:", "py311-cpu:", "the key 'py311-cpu' stands twice", ""),
    ("{cuda: cpu, source: conda-forge}", "cpu", "must be a mapping, not text", ""),
    ("{cuda: cpu, source: conda-forge}", "", "variants.py311-cpu is empty", ""),
    ("{cuda: cpu, source: conda-forge}", "{source: conda-forge}", "variants.py311-cpu.cuda is missing", ""),
    ("{cuda: cpu, source: conda-forge}", "{cuda: cpu}", "variants.py311-cpu.source is missing", ""),
    ("{cuda: cpu, source: conda-forge}", "{cuda: cpu, source: pypi}", "no source 'pypi'", "pytorch"),
    ("{cuda: cpu, source: conda-forge}", "{cuda: 12.6, source: conda-forge}", "the number 12.6", "quotes"),
    ("{cuda: cpu, source: conda-forge}", "{cuda: gpu, source: conda-forge}", "'gpu' is not a CUDA", "12.4"),
    ('cuda: "11.8", source', 'cuda: "12.1", source', "sources.pytorch.builds has no '12.1'", "11.8"),
    ("extras: [torchvision]", "extras: [torchvison]", "no extra 'torchvison'", "'torchvision'"),
    ("extras: [torchvision]", "platforms: [osx-arm64]", "pytorch serves linux-64 only", "py311-cu118"),
    ("extras: [torchvision]", "platforms: [amiga]", "no platform 'amiga'", ""),
    ("extras: [torchvision]", "extra: [torchvision]", "unknown key 'extra'", "'extras'"),
]


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"), CHANGES, ids=[change[1][:40] for change in CHANGES]
)
def test_a_mistake_is_named_with_its_line_and_a_hint(
    write: Write, small: str, old: str, new: str, message: str, hint: str
) -> None:
    text = small.replace(old, new, 1)
    assert text != small
    path = write(text)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_matrix(path)
    assert hint in caught.value.hint
    changed = next(
        number
        for number, lines in enumerate(zip(text.splitlines(), small.splitlines(), strict=False), 1)
        if lines[0] != lines[1]
    )
    assert changed in {caught.value.line, *lines_named(str(caught.value), path)}


def lines_named(message: str, path: Path) -> list[int]:
    return [int(line) for line in re.findall(rf"^{re.escape(str(path))}:(\d+): ", message, re.MULTILINE)]


def test_all_mistakes_are_told_at_once(write: Write, small: str) -> None:
    text = small.replace('python: "3.11"', "python: 3.10").replace("[torchvision]}\n", "[torchvison]}\n", 2)
    path = write(text.replace("needs:", "neds:"))
    with pytest.raises(InputError) as caught:
        read_matrix(path)
    shown = str(caught.value)
    assert lines_named(shown, path) == [3, 12, 23]
    assert "3.10 becomes 3.1" in caught.value.hint
    assert "'needs'" in caught.value.hint
    assert "'torchvision'" in caught.value.hint


def test_a_variant_cannot_come_from_a_source_without_channels(write: Write, small: str) -> None:
    path = write(small.replace("channels: [conda-forge]", "channels: []"))
    with pytest.raises(InputError, match="conda-forge has no channels") as caught:
        read_matrix(path)
    assert caught.value.line == 22


def test_two_variants_of_the_same_axes_are_a_mistake(write: Write, small: str) -> None:
    with pytest.raises(InputError, match="same axes as 'py311-cpu'") as caught:
        read_matrix(write(small + "  twin: {cuda: cpu, source: conda-forge}\n"))
    assert caught.value.line == len(small.splitlines()) + 1


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "[]\n", "text\n", "schema: 1\n", "schema: 1\nvariants: {}\n"]
)
def test_a_file_that_is_no_matrix_is_an_input_error(write: Write, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_matrix(write(text))
    assert "matrix.yaml" in str(caught.value)


def test_the_project_is_found_from_below_and_by_variable(
    write: Write, small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(small).parents[1]
    below = root / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.delenv("ENVKIT_PROJECT", raising=False)
    assert find_root(below) == root
    elsewhere = Path(tmp_path.anchor)
    with pytest.raises(InputError, match=r"matrix\.yaml") as caught:
        find_root(elsewhere)
    assert "ENVKIT_PROJECT" in caught.value.hint
    monkeypatch.setenv("ENVKIT_PROJECT", str(root))
    assert find_root(elsewhere) == root
    assert find_root(below) == root
    monkeypatch.setenv("ENVKIT_PROJECT", str(below))
    with pytest.raises(InputError, match="ENVKIT_PROJECT"):
        find_root(elsewhere)


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 400), st.floats(), st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=6), st.integers(0, 20)), inner, max_size=3),
    ),
    max_leaves=5,
)


def spoiled(document: Any, choose: st.DataObject) -> Any:
    """The document with one value somewhere inside replaced by anything."""
    if isinstance(document, dict) and document and choose.draw(st.integers(0, 4)):
        key = choose.draw(st.sampled_from(sorted(document, key=str)))
        return {**document, key: spoiled(document[key], choose)}
    if isinstance(document, list) and document and choose.draw(st.integers(0, 2)):
        return [spoiled(document[0], choose), *document[1:]]
    return choose.draw(anything)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choose=st.data())
def test_any_value_anywhere_is_read_or_refused(write: Write, small: str, choose: st.DataObject) -> None:
    text = yaml.safe_dump(spoiled(yaml.safe_load(small), choose), allow_unicode=True)
    try:
        matrix = read_matrix(write(text))
        for variant in matrix.variants:
            assert variant.platforms
            assert select(matrix, Axes(name=variant.name)) == variant
    except InputError as problem:
        assert problem.message
