"""The text of a file as editors and shells leave it: UTF-16 from PowerShell, byte order marks, CRLF."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from envkit.channels import has_token, has_user, hostname, shown, shown_text
from envkit.errors import InputError
from envkit.lock.formats.foreign import Note
from envkit.messages import _

__all__ = ["Source", "read_source"]

_LARGEST = 64 << 20
_LONGEST = 4096
"""Bytes of a file, characters of one entry without its hashes."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LINE_ENDS = re.compile("\r\n?|\n|\x85|\u2028|\u2029")
"""What YAML takes for the end of a line, so that its line numbers are ours."""


@dataclass(slots=True)
class Source:
    """A text with its place, and what is worth saying about it so far. Line ends are all `\\n`."""

    path: Path
    text: str
    notes: list[Note] = field(default_factory=list)
    _split: Sequence[str] = field(default=(), init=False, repr=False)

    @property
    def lines(self) -> Sequence[str]:
        if not self._split:
            self._split = self.text.split("\n")
        return self._split

    def note(self, text: str, line: int | None = None) -> None:
        self.notes.append(Note(text=shown_text(text), line=line))

    def warn(self, text: str, line: int | None = None) -> None:
        self.notes.append(Note(text=shown_text(text), line=line, warning=True))

    @property
    def said(self) -> tuple[Note, ...]:
        """The notes in the order of the lines they speak of, those of the whole file first."""
        return tuple(sorted(self.notes, key=lambda note: note.line or 0))

    def refusal(self, message: str, hint: str, line: int | None = None) -> InputError:
        """The error that says which line cannot be taken, and what to do. Nothing secret of it is shown."""
        return InputError(shown_text(message), shown_text(hint), path=self.path, line=line)

    def refuse_endless(self, entry: str, line: int | None = None) -> None:
        """Raise InputError for an entry that no tool would write: patterns take for ever over megabytes."""
        if len(entry) > _LONGEST:
            raise self.refusal(
                _("an entry of {count} characters").format(count=len(entry)),
                _("write one entry a line"),
                line,
            )

    def look_for_credentials(self, url: str, line: int | None = None) -> None:
        """Raise InputError for a URL with a password, warn of one with a token: a lock is there to be shared.

        A server that asks for a password gets the one of ~/.netrc; a token has no other place.
        """
        if has_user(url):
            raise self.refusal(
                _(
                    "a user name or a password stands in {url}, and a lock would hold it for all to read"
                ).format(url=shown(url)),
                _("write the URL without it, and into ~/.netrc: machine {host} login … password …").format(
                    host=hostname(url) or "?"
                ),
                line,
            )
        if has_token(url):
            self.warn(
                _("the token in {url} stands in the lock: whoever has the lock has the token").format(
                    url=shown(url)
                ),
                line,
            )

    def nodes(self) -> yaml.Node:
        """The text as YAML nodes, each with its place. Raises InputError with the line of a mistake."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(self.text)
        try:
            node = loader.get_single_node()
        except yaml.MarkedYAMLError as problem:
            mark = problem.problem_mark or problem.context_mark
            line = mark.line + 1 if mark else None
            tabbed = line is not None and "\t" in self.lines[min(line, len(self.lines)) - 1]
            hint = _("indent with spaces: YAML allows no tabs there") if tabbed else _("mend the YAML")
            raise self.refusal(str(problem.problem or problem), hint, line) from None
        except (yaml.YAMLError, ValueError) as problem:
            position = getattr(problem, "position", None)
            line = self.text.count("\n", 0, position) + 1 if isinstance(position, int) else None
            raise self.refusal(" ".join(str(problem).split()), _("mend the YAML"), line) from None
        except RecursionError:
            raise self.refusal(_("nested too deeply"), _("mend the YAML")) from None
        finally:
            loader.dispose()
        if node is None:
            raise self.refusal(_("the file is empty"), _("choose another file"))
        return node


def read_source(path: Path) -> Source:
    """The text of a file in UTF-8, or in UTF-16 or UTF-32 where it begins with a byte order mark.

    Raises InputError where it cannot be read, is too large, or is in an encoding that does not say so.
    """
    try:
        with path.open("rb") as file:  # which may be a pipe or a device, without a size
            raw = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise InputError(_("there is no such file"), path=path) from None
    except IsADirectoryError:
        raise InputError(_("this is a directory, not a file"), path=path) from None
    except OSError as problem:
        raise InputError(_("cannot be read: {reason}").format(reason=problem.strerror), path=path) from None
    if len(raw) > _LARGEST:
        raise InputError(_("too large to be a list of packages"), path=path)
    mark, encoding = next(((mark, name) for mark, name in _MARKS if raw.startswith(mark)), (b"", "utf-8"))
    try:
        text = raw[len(mark) :].decode(encoding)
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        raise InputError(
            _("not {encoding} (byte {byte} at offset {offset})").format(
                encoding=encoding.upper(), byte=f"0x{raw[problem.start]:02x}", offset=problem.start
            ),
            _("save the file as UTF-8, with `iconv -f GB18030 -t UTF-8` for one from a Chinese Windows"),
            path=path,
            line=line,
        ) from None
    source = Source(path=path, text=_LINE_ENDS.sub("\n", text))
    if "\0" in source.text:
        line = source.text.count("\n", 0, source.text.index("\0")) + 1
        raise source.refusal(
            _("a binary file, or UTF-16 without its mark"), _("save the file as UTF-8"), line
        )
    if encoding != "utf-8":
        source.note(_("read as {encoding}").format(encoding=encoding.upper()))
    return source
