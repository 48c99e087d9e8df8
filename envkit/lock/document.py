"""The YAML document of a lock: the C parser, with a limit to what it is given and no key twice.

A lock is mappings, lists and texts, thousands of each. Those are taken from the parser's nodes directly, in a
sixth of the time of PyYAML's constructors; whatever else stands there is left to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from envkit.errors import InputError
from envkit.files import ScalarErrors, refuse_bomb, yaml_words
from envkit.messages import _

__all__ = ["load_document"]

_LARGEST = 64 << 20
_TEXT, _LIST, _MAPPING = (
    yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG,
    yaml.resolver.BaseResolver.DEFAULT_SEQUENCE_TAG,
    yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG,
)


class _Loader(ScalarErrors, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The C parser (twelve times faster), refusing a key that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        return _once_each(super().construct_mapping(node, deep=deep), node)

    def value(self, node: yaml.Node) -> Any:
        """What a node of a document holds; ConstructorError with its mark where it holds nothing sound."""
        tag = node.tag
        if tag == _TEXT and isinstance(node, yaml.ScalarNode):
            return node.value
        if tag == _MAPPING and isinstance(node, yaml.MappingNode) and all(map(_is_text, node.value)):
            return _once_each({key.value: self.value(value) for key, value in node.value}, node)
        if tag == _LIST and isinstance(node, yaml.SequenceNode):
            return [self.value(child) for child in node.value]
        return self.construct_object(node, deep=True)


def _is_text(pair: tuple[yaml.Node, yaml.Node]) -> bool:
    """Whether the key of a pair is one; `<<` is none."""
    return pair[0].tag == _TEXT and isinstance(pair[0], yaml.ScalarNode)


def _once_each(mapping: dict[Any, Any], node: yaml.MappingNode) -> dict[Any, Any]:
    if len(mapping) != len(node.value):
        raise yaml.constructor.ConstructorError(
            None, None, _("a key stands twice in one mapping"), node.start_mark
        )
    return mapping


def load_document(text: str, path: Path) -> Mapping[Any, Any]:
    """The mapping that a lock's text holds, of conda-lock's first format; InputError for any other text."""
    document = _load(text, path)
    if document is None:
        raise InputError(_("the file is empty"), path=path)
    if not isinstance(document, dict):
        raise InputError(_("not a lock: the document must be a mapping"), path=path)
    version = document.get("version")
    if version != 1 or isinstance(version, bool):
        raise InputError(
            _("version: expected 1, found {found}: not a lock of conda-lock's first format").format(
                found=repr(version)
            ),
            _("make the lock again with `envkit lock`, or restore it"),
            path=path,
        )
    return document


def _load(text: str, path: Path) -> Any:
    if len(text) > _LARGEST:
        raise InputError(_("too large to be a lock ({size} MB)").format(size=len(text) >> 20), path=path)
    try:
        loader = _Loader(text)  # type: ignore[call-arg]  # the parser's, which mypy does not see
        try:
            node = loader.get_single_node()
            if "&" in text:
                refuse_bomb(node)
            return loader.value(node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise InputError(yaml_words(problem), path=path, line=mark.line + 1 if mark else None) from None
    except RecursionError:
        raise InputError(_("nested too deeply"), path=path) from None
    except (yaml.YAMLError, ValueError) as problem:
        raise InputError(" ".join(str(problem).split()), path=path) from None
