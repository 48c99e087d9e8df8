"""The values in matrix.yaml: each taken from its section in its one spelling, each mistake noted."""

from __future__ import annotations

import re
from typing import Any

from envkit.matrix.axes import python_version
from envkit.matrix.constraint import Constraint, parse_constraint
from envkit.matrix.fields import Section
from envkit.matrix.layout import Packages
from envkit.messages import _
from envkit.model import CPU

__all__ = [
    "KINDS",
    "PLATFORMS",
    "channels",
    "check_name",
    "constraint",
    "glibc",
    "index",
    "packages",
    "python",
    "specs",
]

KINDS = (CPU, "cuda")
PLATFORMS = (
    "linux-64",
    "linux-aarch64",
    "linux-ppc64le",
    "osx-64",
    "osx-arm64",
    "win-64",
    "win-arm64",
)

_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_INDEX = re.compile(r"https://[^\s@?#'\"]+")
_GLIBC = re.compile(r"\d+\.\d+")
_NEVER_A_SPEC = re.compile(r"[\n\r\t#\"'\\{}]|^-|://|::")


def channels(section: Section) -> tuple[str, ...]:
    """The channel names under "channels": never an address, for a mirror is a transport."""
    right = []
    for channel in section.texts("channels"):
        if channel == "nodefaults":
            continue  # rendered always
        if _CHANNEL.fullmatch(channel) is None:
            section.wrong(
                "channels",
                _("'{channel}' is not the name of a channel").format(channel=channel),
                _("name channels, not addresses: mirrors are chosen with `--mirror`"),
            )
            continue
        right.append(channel)
    return tuple(right)


def index(section: Section, key: str) -> str:
    """The address of a Python index under `key`; what is no https address is noted."""
    written = section.text(key, required=True).rstrip("/")
    if written and _INDEX.fullmatch(written) is None:
        section.wrong(
            key,
            _("'{value}' is not the https address of a Python index").format(value=written),
            _('write it like "https://download.pytorch.org/whl/cu126"'),
        )
    return written


def packages(section: Section, keys: tuple[str, ...]) -> Packages:
    """A mapping with the lists `conda` and `pip`; `keys` are all it may hold."""
    section.only(keys)
    return Packages(conda=specs(section, "conda"), pip=specs(section, "pip"))


def specs(section: Section, key: str, *, fillable: bool = False) -> tuple[str, ...]:
    """The specs under `key`. `fillable` ones may hold the placeholders {cuda} and {tag}."""
    right = []
    for spec in section.texts(key):
        bare = spec.replace("{cuda}", "").replace("{tag}", "") if fillable else spec
        if _NEVER_A_SPEC.search(bare):
            section.wrong(
                key,
                _("'{spec}' is not a package name with a version").format(spec=spec),
                _('write the name and, where needed, a version: "numpy<2"'),
            )
            continue
        right.append(spec)
    return tuple(right)


def check_name(section: Section, name: str) -> None:
    """Note a name that could not be the name of a folder and of an environment."""
    if name.startswith("wheels-"):
        section.wrong(
            name,
            _("'{name}': names that begin with wheels- are kept for the wheel channel").format(name=name),
            _("choose another name"),
        )
    if _NAME.fullmatch(name) is None or ".." in name or len(name) > 80:
        section.wrong(
            name,
            _("'{name}' cannot be a name in {section}").format(name=name, section=section.name),
            _("use letters, digits, '.', '_' and '-'; '+' is kept for names made from `--with`"),
        )


def python(section: Section, key: str, default: str = "3.11", *, required: bool = False) -> str:
    """The Python minor version under `key`."""
    written = section.text(key, default, required=required)
    version = python_version(written)
    if version is None:
        section.wrong(
            key,
            _("'{value}' is not a Python minor version").format(value=written),
            _('write it like "3.11"'),
        )
    return version or default


def glibc(section: Section, key: str, value: str) -> str:
    """A glibc version as it was written, noted where it is none."""
    if value and _GLIBC.fullmatch(value) is None:
        section.wrong(
            key, _("'{value}' is not a glibc version").format(value=value), _('write it like "2.17"')
        )
    return value


def constraint(section: Section, key: Any) -> Constraint | None:
    """The version constraint under `key`; None where it is none, which is noted."""
    written = section.text(key, required=True)
    parsed = parse_constraint(written) if written else None
    if written and parsed is None:
        section.wrong(
            key,
            _("'{value}' is not a version constraint").format(value=written),
            _('write it like "2.3.*", "<=2.5.1" or ">=2.0,<2.4"'),
        )
    return parsed
