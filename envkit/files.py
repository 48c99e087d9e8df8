"""Files that people and envkit write: read strictly, with the line of every mistake; written in one step."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import yaml

from envkit.errors import Error, InputError
from envkit.messages import _

__all__ = [
    "ScalarErrors",
    "line_of",
    "load_yaml",
    "open_plain",
    "parse_json",
    "read_plain",
    "read_text",
    "read_yaml",
    "refuse_bomb",
    "sha256_of",
    "write_atomically",
    "yaml_words",
]

_READ_SIZE = 1 << 20
_LARGEST = 64 << 20
_LARGEST_YAML = 4 << 20
_MOST_NODES = 1_000_000
"""Bytes of a file that is read whole, bytes of one that people edit, values in one, its aliases resolved."""

_SECOND = "but found another document"
"""The end of a sentence of PyYAML's, which gives the beginning apart."""

# libyaml's parser takes a tenth of the time of the one in Python.
_FastLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file (a byte order mark is allowed); InputError where that cannot be."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise InputError(_("there is no such file"), path=path) from None
    except IsADirectoryError:
        raise InputError(_("this is a directory, not a file"), path=path) from None
    except OSError as problem:
        raise InputError(_("cannot be read: {reason}").format(reason=problem.strerror), path=path) from None
    if len(raw) > _LARGEST:
        raise InputError(_("larger than {size} MB").format(size=_LARGEST >> 20), path=path)
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


class ScalarErrors(yaml.constructor.SafeConstructor):
    """For a YAML loader: a scalar that is not what it looks like (`2024-02-30`) is a mistake with a line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as problem:
            # PyYAML lets through whatever int(), float() and datetime() say.
            raise yaml.constructor.ConstructorError(
                None,
                None,
                _("not a value that YAML can read here: {reason}").format(reason=problem),
                node.start_mark,
            ) from None


def refuse_bomb(node: yaml.Node | None) -> None:
    """Raise YAMLError for a document whose aliases make it huge ("billion laughs"), before it is built."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = _MOST_NODES + 1  # what an alias to a node around it finds
            children = node.value if isinstance(node, yaml.SequenceNode) else ()
            if isinstance(node, yaml.MappingNode):
                children = [child for pair in node.value for child in pair]
            sizes[id(node)] = 1 + sum(map(size, children))
        return sizes[id(node)]

    if node is not None and size(node) > _MOST_NODES:
        raise yaml.constructor.ConstructorError(
            None, None, _("its aliases make it too large"), node.start_mark
        )


def yaml_words(problem: yaml.MarkedYAMLError) -> str:
    """What a YAML parser has against a text, as a sentence that stands alone."""
    words = str(problem.problem or problem)
    return _("a second document begins here; there is to be one only") if words == _SECOND else words


def load_yaml(text: str) -> Any:
    """The document in a text that envkit ships or has made itself; yaml.YAMLError where it is none."""
    return yaml.load(text, _FastLoader)


class _StrictLoader(ScalarErrors, _FastLoader):  # type: ignore[misc, valid-type]
    """Refuses a key that stands twice in one mapping, and remembers the line of every key."""

    def __init__(self, text: str) -> None:
        super().__init__(text)  # type: ignore[call-arg]
        self._seen: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # Before `<<` brings in others' keys: those may be overridden.
        if id(node) not in self._seen:
            self._seen.add(id(node))
            self._refuse_double_keys(node)
        super().flatten_mapping(node)

    def _refuse_double_keys(self, node: yaml.MappingNode) -> None:
        lines: dict[Any, int] = {}
        for key_node, _value in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
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
            lines[key] = key_node.start_mark.line + 1


class _Mapping(dict[Any, Any]):
    """A mapping from a YAML file that knows the line of each of its keys."""

    lines: Mapping[Any, int]


class _Sequence(list[Any]):
    """A list from a YAML file that knows the line of each of its entries."""

    lines: Mapping[Any, int]


def _construct_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> Iterator[_Mapping]:
    result = _Mapping()
    lines: dict[Any, int] = {}
    result.lines = lines
    yield result
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        lines[key] = key_node.start_mark.line + 1
        result[key] = loader.construct_object(value_node, deep=True)


def _construct_sequence(loader: _StrictLoader, node: yaml.SequenceNode) -> Iterator[_Sequence]:
    result = _Sequence()
    result.lines = {index: child.start_mark.line + 1 for index, child in enumerate(node.value)}
    yield result
    result.extend(loader.construct_sequence(node, deep=True))


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)
_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_SEQUENCE_TAG, _construct_sequence)


def read_yaml(path: Path) -> Any:
    """The document in a YAML file that people edit.

    Mappings and lists come as dicts and lists that `line_of` knows the lines of. Raises InputError with the
    line for a syntax error, a duplicate key, an unsafe tag or an empty file.
    """
    text = read_text(path)
    if len(text) > _LARGEST_YAML:
        raise InputError(_("larger than {size} MB").format(size=_LARGEST_YAML >> 20), path=path)
    try:
        loader = _StrictLoader(text)
        try:
            node = loader.get_single_node()
            refuse_bomb(node)
            document = loader.construct_document(node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise InputError(yaml_words(problem), path=path, line=mark.line + 1 if mark else None) from None
    except yaml.YAMLError as problem:
        raise InputError(" ".join(str(problem).split()), path=path) from None
    except RecursionError:
        raise InputError(_("nested too deeply"), path=path) from None
    if document is None:
        raise InputError(_("the file is empty"), path=path)
    return document


def parse_json(raw: str | bytes) -> Any:
    """What a JSON text holds. ValueError for any text that holds nothing, one nested without end too."""
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError(_("nested too deeply")) from None


def line_of(parent: object, key: object) -> int | None:
    """The line on which a key of a mapping, or the entry with an index of a list, stands in a document
    that `read_yaml` returned; None where that is not known."""
    return parent.lines.get(key) if isinstance(parent, _Mapping | _Sequence) else None


def write_atomically(path: Path, text: str | bytes) -> None:
    """Write a whole file or nothing: a temporary file beside it, then a rename. Parents are made.

    What is no file (/dev/stdout, a named pipe) is written to and stays what it is.
    """
    raw = text.encode() if isinstance(text, str) else text
    temporary: str | None = None
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(raw)
            return
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
        ) from problem
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def open_plain(path: Path) -> IO[bytes]:
    """A plain file to read. OSError for anything else: reading a pipe or a device would never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, _("it is no plain file"), str(path))


def read_plain(path: Path) -> bytes:
    """The bytes of a plain file that somebody else may have put there. Raises as `open_plain` does."""
    with open_plain(path) as file:
        return file.read()


def sha256_of(path: Path) -> str:
    """The sha256 of a plain file's bytes, in hex. Raises as `open_plain` does."""
    digest = hashlib.sha256()
    with open_plain(path) as file:
        while block := file.read(_READ_SIZE):
            digest.update(block)
    return digest.hexdigest()
