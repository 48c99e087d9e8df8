"""Typed access to the document of a lock; what is wrong is a Fault at a place.

A reader that installs wants to stop at the first fault, an audit wants all of them: both hand in what is to
become of one. Where that returns, reading goes on with the nearest harmless value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from envkit.messages import _

__all__ = ["Fault", "FaultKind", "Fields", "at", "expected", "shown_value"]

FaultKind = Literal["format", "name", "file", "platform", "url", "hash", "twice"]

_HEX = {"md5": re.compile(r"[0-9a-f]{32}"), "sha256": re.compile(r"[0-9a-f]{64}")}


_LONGEST = 300  # characters of a message: a stranger's text may be any length


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What must not be, or is missing, at a place of the document (`package[3].hash.sha256`)."""

    kind: FaultKind
    place: str
    text: str

    def __str__(self) -> str:
        text = self.text if len(self.text) <= _LONGEST else f"{self.text[:_LONGEST]}..."
        return f"{self.place}: {text}" if self.place else text


class Fields:
    """Reads values of the expected kind; each method says with `report` what is wrong and where."""

    def __init__(self, report: Callable[[Fault], None]) -> None:
        self._report = report

    def fault(self, kind: FaultKind, place: str, text: str) -> None:
        """Report a fault; returns only where faults are collected."""
        self._report(Fault(kind=kind, place=place, text=text))

    def mapping(self, parent: Mapping[Any, Any], key: str, place: str) -> Mapping[Any, Any]:
        """The mapping under `key`; empty after a fault."""
        value = self._get(parent, key, place)
        if isinstance(value, dict):
            return value
        self._unexpected("mapping", parent, key, place)
        return {}

    def list(self, parent: Mapping[Any, Any], key: str, place: str) -> list[Any]:
        """The list under `key`; empty after a fault."""
        value = self._get(parent, key, place)
        if isinstance(value, list):
            return value
        self._unexpected("list", parent, key, place)
        return []

    def string(self, parent: Mapping[Any, Any], key: str, place: str) -> str:
        """The text under `key`; empty after a fault."""
        value = parent.get(key)
        if isinstance(value, str):  # nearly always, and there are thousands
            return value
        self._get(parent, key, place)
        return self.text(value, at(place, key)) if key in parent else ""

    def optional(self, parent: Mapping[Any, Any], key: str, place: str) -> str | None:
        """The text under `key`, or None where there is none."""
        value = parent.get(key)
        return None if value is None else self.text(value, at(place, key))

    def text(self, value: object, place: str) -> str:
        """`value` if it is a text; after a fault, a number as it is written."""
        if isinstance(value, str):
            return value
        self.fault("format", place, expected("string", value))
        return str(value) if isinstance(value, int | float) else ""

    def matching(
        self, pattern: re.Pattern[str], value: str, place: str, kind: FaultKind, words: Callable[[], str]
    ) -> str:
        """`value`, with a fault where it does not match; `words` say what it is not."""
        if not pattern.fullmatch(value):
            self.fault(kind, place, f"{words()}: {shown_value(value)}")
        return value

    def digest(self, hashes: Mapping[Any, Any], kind: str, place: str) -> str | None:
        """A hash in lower-case hex, or None where there is none."""
        value = self.optional(hashes, kind, place)
        if not value:
            return None
        return self.matching(
            _HEX[kind],
            value,
            f"{place}.{kind}",
            "hash",
            lambda: _("not a {kind} in lower-case hex").format(kind=kind),
        )

    def _get(self, parent: Mapping[Any, Any], key: str, place: str) -> Any:
        if key not in parent:
            self.fault("format", at(place, key), _("missing"))
        return parent.get(key)

    def _unexpected(self, kind: str, parent: Mapping[Any, Any], key: str, place: str) -> None:
        if key in parent:
            self.fault("format", at(place, key), expected(kind, parent[key]))


def at(place: str, key: str) -> str:
    """The place of a key in the mapping at `place`."""
    return f"{place}.{key}" if place else key


def expected(kind: str, value: object) -> str:
    """What is said of a value that is not of the kind "mapping", "list" or "string"."""
    names = {"mapping": _("a mapping"), "list": _("a list"), "string": _("a string")}
    return _("expected {kind}, found {found}").format(kind=names[kind], found=shown_value(value))


def shown_value(value: object) -> str:
    """A value from the document, short enough for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
