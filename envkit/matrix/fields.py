"""Reading a YAML file that people write: take each field with its type, and collect every mistake.

A `Section` is one mapping of the file. Its methods return a usable value in every case and note what was
wrong, so that one run tells all there is to mend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envkit.errors import InputError
from envkit.files import line_of
from envkit.matrix.nearest import nearest_words
from envkit.messages import _

__all__ = ["Problems", "Section"]


@dataclass(kw_only=True, slots=True)
class Problems:
    """The mistakes found in one file."""

    path: Path
    found: list[tuple[int | None, str, str]] = field(default_factory=list)

    def add(self, line: int | None, message: str, hint: str = "") -> None:
        self.found.append((line, message, hint))

    def refuse(self) -> None:
        """Raise one InputError that names them all in the order of the file, if there is any."""
        if not self.found:
            return
        found = sorted(self.found, key=lambda problem: problem[0] or 0)
        first = found[0][0]
        lines = [found[0][1]] + [
            f"{self.path}:{line}: {message}" if line else f"{self.path}: {message}"
            for line, message, _hint in found[1:]
        ]
        hints = dict.fromkeys(hint for _line, _message, hint in found if hint)
        raise InputError("\n".join(lines), "\n".join(hints), path=self.path, line=first)


@dataclass(kw_only=True, slots=True)
class Section:
    """One mapping of the file, by the name it has there ("variants.py311-cpu")."""

    name: str
    problems: Problems
    content: dict[Any, Any]
    line: int | None

    def only(self, keys: Iterable[str]) -> None:
        """Note every key that is not one of `keys`."""
        known = list(keys)
        for key in self.content:
            if key not in known:
                near = nearest_words(str(key), known)
                self.wrong(
                    key,
                    _("unknown key '{key}' in {section}").format(key=key, section=self.name),
                    _("did you mean {words}?").format(words=_(" or ").join(f"'{word}'" for word in near)),
                )

    def wrong(self, key: object, message: str, hint: str = "") -> None:
        """Note a mistake at the line of `key`."""
        self.problems.add(line_of(self.content, key) or self.line, message, hint)

    def child(self, key: str, *, required: bool = False) -> Section:
        """The mapping under `key`; an empty one where it is absent or no mapping."""
        value = self.content.get(key)
        if value is None and key in self.content:
            self.wrong(key, _("{field} is empty").format(field=self._field(key)))
        elif value is None and required:
            self.problems.add(self.line, _("{field} is missing").format(field=self._field(key)))
        elif value is not None and not isinstance(value, dict):
            self.wrong(
                key,
                _("{field} must be a mapping, not {kind}").format(field=self._field(key), kind=_kind(value)),
            )
        return Section(
            name=self._field(key),
            problems=self.problems,
            content=value if isinstance(value, dict) else {},
            line=line_of(self.content, key) or self.line,
        )

    def children(self) -> Iterator[tuple[str, Section]]:
        """The mapping under each key that is a name."""
        for key in self.content:
            if isinstance(key, str):
                yield key, self.child(key)
            else:
                self.wrong(
                    key,
                    _("'{key}' in {section} is read as {kind}, not as a name").format(
                        key=key, section=self.name, kind=_kind(key)
                    ),
                    _('write it in quotes: "{key}"').format(key=key),
                )

    def text(self, key: str, default: str = "", *, required: bool = False) -> str:
        """The text under `key`; a number is a mistake, with the reason."""
        value = self.content.get(key)
        if isinstance(value, str):
            if value.strip():
                return value.strip()
            self.wrong(key, _("{field} is empty").format(field=self._field(key)))
        elif value is None:
            if required or key in self.content:
                self.wrong(key, _("{field} is missing").format(field=self._field(key)))
        else:
            self._not_text(key, value)
        return default

    def flag(self, key: str, *, default: bool) -> bool:
        """The yes or no under `key`."""
        value = self.content.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, _("{field} must be true or false").format(field=self._field(key)))
            return default
        return value

    def texts(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        """The list of texts under `key`, without those that stand twice (which is noted)."""
        value = self.content.get(key)
        if value is None:
            if required or key in self.content:
                self.wrong(key, _("{field} is missing").format(field=self._field(key)))
            return ()
        if not isinstance(value, list):
            self.wrong(
                key,
                _("{field} must be a list, not {kind}").format(field=self._field(key), kind=_kind(value)),
                _("write it in brackets: [{value}]").format(value=value),
            )
            return ()
        if required and not value:
            self.wrong(key, _("{field} is empty").format(field=self._field(key)))
        found: list[str] = []
        for item in value:
            if not isinstance(item, str) or not item.strip():
                self._not_text(key, item)
            elif item in found:
                self.wrong(key, _("{field} names '{item}' twice").format(field=self._field(key), item=item))
            else:
                found.append(item)
        return tuple(found)

    def each(
        self, key: str, valid: Iterable[str], values: Iterable[str], what: Callable[[], str]
    ) -> tuple[str, ...]:
        """Those of `values` that are valid; the others are noted, with what comes nearest."""
        known = list(valid)
        right = []
        for value in values:
            if value in known:
                right.append(value)
                continue
            self.wrong(
                key,
                _("{field}: there is no {what} '{value}'").format(
                    field=self._field(key), what=what(), value=value
                ),
                _("did you mean {words}?").format(
                    words=_(" or ").join(f"'{word}'" for word in nearest_words(value, known))
                )
                if known
                else "",
            )
        return tuple(right)

    def _field(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def _not_text(self, key: str, value: object) -> None:
        message = _("{field} must be text, not {kind}").format(field=self._field(key), kind=_kind(value))
        hint = _('write it in quotes: "{value}"').format(value=value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            message = _("{field} is read as the number {value}").format(field=self._field(key), value=value)
            hint = _(
                'write versions in quotes: unquoted, 3.10 becomes 3.1; here "{value}" or "{value}0"'
            ).format(value=value)
        self.wrong(key, message, hint)


def _kind(value: object) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, _("yes or no")),
        (int, _("a number")),
        (float, _("a number")),
        (str, _("text")),
        (list, _("a list")),
        (dict, _("a mapping")),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), type(value).__name__)
