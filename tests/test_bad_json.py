"""JSON on disk that holds anything at all is damage to be told or mended, never a bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from envkit.errors import Error
from envkit.files import parse_json
from envkit.install import is_environment, read_environment, tidy
from envkit.install.variables import settings
from envkit.model import Environment

BAD = {
    "empty": b"",
    "deep-list": b"[" * 100_000,
    "deep-object": b'{"a":' * 100_000,
    "list": b"[]",
    "number": b"5",
    "digits": b"1" * 6000,
    "null": b"null",
    "no-unicode": b"\xff\xfe\0",
    "wrong-types": b'{"schema": 1, "name": 5, "variant": [], "env_vars": [], "pid": "x", "paths": [5]}',
}

anything = pytest.mark.parametrize("raw", BAD.values(), ids=BAD)


@pytest.mark.parametrize("kind", ["empty", "deep-list", "deep-object", "digits", "no-unicode"])
def test_a_text_that_is_no_json_is_a_value_error(kind: str) -> None:
    with pytest.raises(ValueError):
        parse_json(BAD[kind])


@anything
def test_the_record_of_an_environment(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta" / "envkit").write_bytes(raw)
    assert not is_environment(tmp_path)
    with pytest.raises(Error) as caught:
        read_environment(str(tmp_path))
    assert caught.value.hint


@anything
@pytest.mark.parametrize("place", ["conda-meta/state", "etc/conda/env_vars.d/x.json"])
def test_the_variables_of_an_environment(tmp_path: Path, place: str, raw: bytes) -> None:
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_bytes(raw)
    try:
        settings(Environment(name="x", prefix=tmp_path))
    except Error as problem:
        assert place.rpartition("/")[2] in problem.message


@anything
def test_the_owner_of_a_stage(tmp_path: Path, raw: bytes) -> None:
    stage = tmp_path / ".e.envkit-stage-1"
    (stage / "prefix").mkdir(parents=True)
    (stage / "owner.json").write_bytes(raw)
    tidy(tmp_path / "e")
    assert stage.is_dir()
