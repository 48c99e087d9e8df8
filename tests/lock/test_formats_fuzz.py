"""Whatever is in a file, it is read or refused, and what was read reads the same again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envkit.errors import InputError
from envkit.lock import canonicalise
from envkit.lock.formats import read_spec, to_lock

SHA = "ab" * 32
FORGE = "https://conda.anaconda.org/conda-forge"
SEEDS = {
    "environment.yml": """\
name: t
channels: [conda-forge, 'https://mirrors.aliyun.com/anaconda/cloud/pytorch']
platforms: [linux-64]
variables: {a: b}
prefix: /x
dependencies:
- python=3.11=h0_0
- numpy >=1,<2  # [win]
- pip:
  - -i https://h.example/simple
  - torch==2.3.0+cu121 ; sys_platform == 'linux'
""",
    "requirements.txt": f"""\
--extra-index-url https://h.example
numpy==1 \\
    --hash=sha256:{SHA}
x @ https://h.example/x-1.zip
""",
    "list.txt": "# platform: linux-64\nnumpy=1.2=py_0\nx=1=pypi_0\n",
    "explicit.txt": f"""\
@EXPLICIT
{FORGE}/linux-64/a-1-0.conda#{SHA}
# pip x @ https://h.example/x-1.zip --hash=sha256:{SHA}
""",
    "pixi.lock": f"""\
version: 6
environments:
  default:
    channels:
    - url: {FORGE}/
    packages:
      linux-64:
      - conda: {FORGE}/noarch/a-1-0.conda
packages:
- conda: {FORGE}/noarch/a-1-0.conda
  sha256: {SHA}
  depends: [b >=1]
""",
    "conda-lock.yml": f"""\
version: 1
metadata:
  channels: [{{url: '{FORGE}'}}]
  platforms: [linux-64]
package:
- {{name: a, url: '{FORGE}/noarch/a-1-0.conda', hash: {{sha256: {SHA}}}}}
""",
}
MARKS = r"""
- : # [ ] { } &a *a !!python/object:x ? \ ' " -i --hash= :// https://[::1 :: == @ ~ null pip: % .. / 環 1.0
"""
WORDS = MARKS.split()
LINES = ["\n", "  ", "\t", "\x00", "\x85", "\u2028", "---\n", "@EXPLICIT\n", "- -r x", "<<: *a", "- [a]\n"]
PIECES = st.one_of(st.sampled_from([*WORDS, *(f"{word} " for word in WORDS), *LINES]), st.text(max_size=6))


def read_all(path: Path) -> None:
    for attempt in (
        lambda: to_lock(found) if (found := read_spec(path)).is_lock else found.text,
        lambda: canonicalise(path),
    ):
        try:
            attempt()
        except InputError as problem:
            assert problem.message


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(sorted(SEEDS)))
def test_a_file_with_anything_in_it(tmp_path: Path, data: st.DataObject, name: str) -> None:
    text = SEEDS[name]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + data.draw(PIECES) + text[end:]
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    read_all(path)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=40), name=st.sampled_from(sorted(SEEDS)))
def test_a_file_of_any_bytes(tmp_path: Path, raw: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(raw)
    read_all(path)


@pytest.mark.parametrize("name", ["environment.yml", "pixi.lock", "conda-lock.yml"])
@pytest.mark.parametrize(
    "text",
    [
        "? [a]\n: b\ndependencies: [x]\n",
        "dependencies: &a [*a]\n",
        "channels: &a [*a]\ndependencies: [x]\n",
        "dependencies: [{pip: &a [*a]}]\n",
        "dependencies:\n- {[a]: b}\n",
        "version: 6\nenvironments: &a {default: *a}\npackages: []\n",
        "channels: ['https://[::1/x']\ndependencies: [x]\n",
        "dependencies: [{pip: ['-i https://[::1/x', y]}]\n",
        "dependencies: [{pip: ['x @ https://[::1/x']}]\n",
        "dependencies: [numpy\u2028, x]  # [linux]\n",
        "[" * 3000,
        "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\ndependencies: [*c]\n",
    ],
)
def test_yaml_of_ill_will(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    read_all(path)


names = st.from_regex(r"[a-z][a-z0-9_.-]{0,8}[a-z0-9]", fullmatch=True)
pip_constraints = ["", "==1.2", ">=1,<2", "==1.0+cu121", "~=2.0", "; python_version >= '3.9'", "[x]==1"]
nju = "https://mirror.nju.edu.cn/anaconda/cloud/nvidia/"
constraints = st.sampled_from(
    [
        "",
        "=1.2",
        "==1.2.3",
        " 1.2",
        ">=1,<2",
        " >= 1 , < 2",
        "=1.*=py3*",
        "=1.2=h0_0",
        "!=1.3",
        "~=1.4",
        "=1.2|=1.3",
    ]
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    conda=st.dictionaries(names, constraints, min_size=1, max_size=5),
    pip=st.dictionaries(
        st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,6}[a-z0-9]", fullmatch=True),
        st.sampled_from(pip_constraints),
        max_size=4,
    ),
    selector=st.sampled_from(["", "  # [linux]", "  # [win64]", "  # note"]),
    channels=st.lists(
        st.sampled_from(["conda-forge", "defaults", nju, "file:///srv/c", "nodefaults"]),
        min_size=1, max_size=4,
    ).filter(lambda channels: set(channels) != {"nodefaults"}),
)  # fmt: skip
def test_what_was_read_reads_the_same_again(
    tmp_path: Path, conda: dict[str, str], pip: dict[str, str], selector: str, channels: list[str]
) -> None:
    lines = ["channels:", *(f"- {channel}" for channel in channels), "dependencies:"]
    lines += [f'- "{name}{constraint}"{selector}' for name, constraint in conda.items()]
    lines += ["- pip:", *(f'  - "{name}{constraint}"' for name, constraint in pip.items())] if pip else []
    path = tmp_path / "environment.yml"
    path.write_text("\n".join(lines))
    once = read_spec(path)
    path.write_text(once.text)
    again = read_spec(path)
    assert again.text == once.text
    assert (again.channels, again.pip, again.platforms) == (once.channels, once.pip, once.platforms)
    assert yaml.safe_load(once.text)["channels"][-1] == "nodefaults"
