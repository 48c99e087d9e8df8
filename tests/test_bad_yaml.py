"""Files of people and strangers that YAML itself stumbles over: an InputError, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envkit.errors import InputError
from envkit.files import line_of, read_text, read_yaml
from envkit.lock import read_lock

NINE = ", ".join(["*{0}"] * 9)
LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{level}: &a{level} [{NINE.format(f'a{level - 1}')}]\n" for level in range(1, 15)
)
MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{level}: &a{level} {{<<: [{NINE.format(f'a{level - 1}')}]}}\n" for level in range(1, 15)
)
BAD = {
    "no-such-day": "version: 2024-02-30\n",
    "no-such-month-as-key": "2024-13-01: x\n",
    "digits": f"version: {'9' * 6000}\n",
    "int": "version: !!int abc\n",
    "float": "version: !!float abc\n",
    "bool": "version: !!bool maybe\n",
    "timestamp": "version: !!timestamp noon\n",
    "hex": "version: 0x_\n",
    "nul": "version: 1\0\n",
    "laughs": f"{LAUGHS}version: *a14\n",
    "merges": f"{MERGES}version: *a14\n",
    "self": "&a [*a]\n",
    "deep": "[" * 20_000,
    "code": "version: !!python/object/apply:os.getcwd []\n",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
@pytest.mark.parametrize("read", [read_yaml, read_lock], ids=["read_yaml", "read_lock"])
def test_yaml_that_is_wrong_is_an_input_error(
    tmp_path: Path, read: Callable[[Path], object], text: str
) -> None:
    path = tmp_path / "file.yml"
    path.write_text(text)
    began = time.monotonic()
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.path == path
    assert len(str(caught.value)) < 1000
    assert time.monotonic() - began < 5


def test_the_line_of_a_wrong_value_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file.yml"
    path.write_text("a: 1\nb: 2024-02-30\n")
    with pytest.raises(InputError) as caught:
        read_yaml(path)
    assert caught.value.line == 2


@pytest.mark.parametrize("read", [read_yaml, read_lock], ids=["read_yaml", "read_lock"])
def test_a_second_document_is_told_in_a_sentence(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "file.yml"
    path.write_text("version: 1\n---\nversion: 1\n")
    with pytest.raises(InputError, match="a second document begins here") as caught:
        read(path)
    assert caught.value.line == 2


def test_merged_keys_may_be_overridden_and_own_ones_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "file.yml"
    path.write_text("base: &base {python: '3.9', cuda: cpu}\nown:\n  <<: *base\n  cuda: '12.1'\n")
    own = read_yaml(path)["own"]
    assert dict(own) == {"python": "3.9", "cuda": "12.1"}
    assert line_of(own, "cuda") == 4
    path.write_text("base: &base {a: 1}\nown:\n  <<: *base\n  b: 1\n  b: 2\n")
    with pytest.raises(InputError, match="'b' stands twice") as caught:
        read_yaml(path)
    assert caught.value.line == 5


def test_endless_and_huge_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="larger than"):
        read_text(Path("/dev/zero"))
    path = tmp_path / "file.yml"
    path.write_text("a: 1\n" + "# x\n" * (2 << 20))
    with pytest.raises(InputError, match="larger than"):
        read_yaml(path)
