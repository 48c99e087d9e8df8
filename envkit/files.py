"""Files that people and envkit write: read strictly, with the line of every mistake; written in one step."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from envkit.errors import Error, InputError
from envkit.messages import _

__all__ = ["line_of", "load_yaml", "read_text", "read_yaml", "sha256_of", "write_atomically"]

_READ_SIZE = 1 << 20

# libyaml's parser takes a tenth of the time of the one in Python.
_FastLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file (a byte order mark is allowed); InputError where that cannot be."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError(_("there is no such file"), path=path) from None
    except IsADirectoryError:
        raise InputError(_("this is a directory, not a file"), path=path) from None
    except OSError as problem:
        raise InputError(_("cannot be read: {reason}").format(reason=problem.strerror), path=path) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(
            _("not UTF-8 (byte {byte} at offset {offset})").format(
                byte=f"0x{raw[problem.start]:02x}", offset=problem.start
            ),
            _("save the file as UTF-8"),
            path=path,
            line=raw[: problem.start].count(b"\n") + 1,
        ) from None


def load_yaml(text: str) -> Any:
    """The document in a text that envkit ships or has made itself; yaml.YAMLError where it is none."""
    return yaml.load(text, _FastLoader)


class _StrictLoader(_FastLoader):  # type: ignore[misc, valid-type]
    """Refuses a key that stands twice in one mapping, and remembers the line of every key."""


class _Mapping(dict[Any, Any]):
    """A mapping from a YAML file that knows the line of each of its keys."""

    lines: Mapping[Any, int]


def _construct_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> Iterator[_Mapping]:
    result = _Mapping()
    lines: dict[Any, int] = {}
    result.lines = lines
    yield result
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str | int | float | bool | None):
            raise yaml.constructor.ConstructorError(
                None, None, _("a key must be a plain value"), key_node.start_mark
            )
        if key in lines:
            raise yaml.constructor.ConstructorError(
                None,
                None,
                _("the key '{key}' stands twice (first in line {line})").format(key=key, line=lines[key]),
                key_node.start_mark,
            )
        lines[key] = line
        result[key] = loader.construct_object(value_node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


def read_yaml(path: Path) -> Any:
    """The document in a YAML file that people edit.

    Mappings come as dicts that `line_of` can ask for the line of a key. Raises InputError with the line
    for a syntax error, a duplicate key, an unsafe tag or an empty file.
    """
    text = read_text(path)
    loader = _StrictLoader(text)
    try:
        document = loader.get_single_data()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise InputError(
            str(problem.problem or problem), path=path, line=mark.line + 1 if mark else None
        ) from None
    except yaml.YAMLError as problem:
        raise InputError(str(problem), path=path) from None
    except RecursionError:
        raise InputError(_("nested too deeply"), path=path) from None
    finally:
        loader.dispose()
    if document is None:
        raise InputError(_("the file is empty"), path=path)
    return document


def line_of(mapping: object, key: object) -> int | None:
    """The line on which `key` stands in a mapping that `read_yaml` returned, if that is known."""
    return mapping.lines.get(key) if isinstance(mapping, _Mapping) else None


def write_atomically(path: Path, text: str | bytes) -> None:
    """Write a whole file or nothing: a temporary file beside it, then a rename. Parents are made."""
    raw = text.encode() if isinstance(text, str) else text
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
        temporary = None
    except OSError as problem:
        raise Error(
            _("cannot write {path}: {reason}").format(path=path, reason=problem.strerror or problem),
            _("free some space or choose a folder you may write to"),
        ) from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_SIZE):
            digest.update(block)
    return digest.hexdigest()
