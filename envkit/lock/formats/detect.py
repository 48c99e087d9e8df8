"""Which kind of file it is that people call their environment, by content first and name second."""

from __future__ import annotations

import re

import yaml

from envkit.lock.formats.foreign import Kind
from envkit.lock.formats.source import Source
from envkit.messages import _

__all__ = ["kind_of"]

_CONDA_LIST = re.compile(r"[A-Za-z0-9_][\w.-]*=[^=\s]+=[^=\s]+")
_TABLE = re.compile(r"#\s*(packages in environment at|Name\s+Version\s+Build)")
_YAML_KEY = re.compile(r"(dependencies|channels|prefix|name)\s*:")
_ARCHIVE = re.compile(r"\S+://\S+\.(conda|tar\.bz2)(#\S*)?")


def kind_of(source: Source) -> Kind:
    """The kind of a file. Raises InputError, saying what to use instead, for one that cannot be read."""
    said = [line.strip() for line in source.lines if line.strip()]
    code = [line for line in said if not line.startswith("#")]
    name = source.path.name.lower()
    if "@EXPLICIT" in code or (code and all(_ARCHIVE.fullmatch(line) for line in code)):
        return "explicit"
    if any(_TABLE.match(line) for line in said):
        raise source.refusal(
            _("this is what `conda list` shows on a screen"),
            _("write it with `conda env export` or `conda list --explicit --sha256` instead"),
        )
    for ending, hint in _other_tools().items():
        if name.endswith(ending):
            raise source.refusal(_("files of this kind are not read"), hint)
    if code and all(_CONDA_LIST.fullmatch(line) for line in code):
        return "conda-list"
    if name.endswith((".yml", ".yaml", ".lock")) or any(_YAML_KEY.match(line) for line in code):
        return _kind_of_yaml(source)
    return "requirements"


def _kind_of_yaml(source: Source) -> Kind:
    node = source.nodes()
    if not isinstance(node, yaml.MappingNode):
        raise source.refusal(
            _("not an environment: the document must be a mapping"),
            _("begin with `channels:` and `dependencies:`, or name a file of requirements *.txt"),
            node.start_mark.line + 1,
        )
    values = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    if "metadata" in values and "package" in values:
        return "conda-lock"
    if "version" in values and ("environments" in values or source.path.name == "pixi.lock"):
        return "pixi"
    return "environment"


def _other_tools() -> dict[str, str]:
    export = _("write its packages as requirements: {command}")
    return {
        "pyproject.toml": export.format(command="`uv pip compile pyproject.toml -o requirements.txt`"),
        "pixi.toml": _("give the pixi.lock beside it"),
        "setup.py": export.format(command="`pip freeze > requirements.txt`"),
        "setup.cfg": export.format(command="`pip freeze > requirements.txt`"),
        "pipfile": export.format(command="`pipenv requirements --hash > requirements.txt`"),
        "pipfile.lock": export.format(command="`pipenv requirements --hash > requirements.txt`"),
        "poetry.lock": export.format(command="`poetry export -o requirements.txt`"),
        "uv.lock": export.format(command="`uv export -o requirements.txt`"),
        "pylock.toml": export.format(command="`uv export -o requirements.txt`"),
        "meta.yaml": _("this is a recipe of conda-build; write an environment.yml"),
        ".condarc": _("this is conda's configuration; give an environment.yml"),
        ".ipynb": _("a notebook names no packages that can be relied on; write an environment.yml"),
    }
