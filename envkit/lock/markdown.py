"""A diff as Markdown, for a pull request: numbers first, then a table for each group of platforms."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from envkit.lock.diff import Diff
from envkit.lock.rows import Group, groups, headline, platform_lines, word
from envkit.messages import _

__all__ = ["diff_markdown", "escaped"]

# What GitHub's and GitLab's Markdown would take for markup or an issue's number.
_MARKUP = re.compile(r"([\\`*_{}\[\]#+|~$^])")
# Names, versions, builds and paths that are safe between backticks, where nothing in them is markup.
_CODE = re.compile(
    r"(?i)(?<![^\s(])(?!\S*(?:://|www\.))(?=[\w./=:-]*[_*+~^])[A-Za-z0-9_.*+~^!=/:-]+(?![^\s),;:])"
)
# What makes mentions and links even where a backslash stands before it.
_LINKS = re.compile(r"@|:(?=//)|(?<=www)\.", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ROWS_SHOWN = 15


def diff_markdown(made: Diff, title: str) -> str:
    """A section under `title`. Long tables are folded; every value is escaped, so that none can be markup."""
    lines = [f"### {escaped(title)}", "", f"**{escaped(headline(made))}**"]
    for group in groups(made):
        lines += ["", *_table(group)]
    extra = [f"- {escaped(line)}" for line in platform_lines(made)]
    return "\n".join([*lines, *([""] if extra else []), *extra])


def escaped(text: str) -> str:
    """A text as Markdown that shows just this text, in a table's cell too.

    Words of letters and digits with an underscore or a star in them are set as code, which is read more
    easily than backslashes; whatever else could be markup is escaped.
    """
    flat = _CONTROL.sub("\ufffd", " ".join(text.split()))
    parts, end = [], 0
    for found in _CODE.finditer(flat):
        parts += [_plain(flat[end : found.start()]), f"`{found[0]}`"]
        end = found.end()
    return "".join([*parts, _plain(flat[end:])])


def _plain(flat: str) -> str:
    marked = _MARKUP.sub(r"\\\1", html.escape(flat, quote=False))
    return _LINKS.sub(lambda found: f"&#{ord(found[0])};", marked)


def _table(group: Group) -> Iterator[str]:
    folded = len(group.rows) > _ROWS_SHOWN
    if folded:
        count = _("{count} changes").format(count=len(group.rows))
        yield f"<details><summary>{html.escape(group.title)}: {html.escape(count)}</summary>"
    else:
        yield f"**{escaped(group.title)}**"
    yield ""
    yield "| " + " | ".join((_("change"), _("package"), _("version"), _("note"))) + " |"
    yield "| --- | --- | --- | --- |"
    for row in group.rows:
        cells = (word(row.kind), row.name, row.version.replace("->", "→"), row.note.replace("->", "→"))
        yield "| " + " | ".join(escaped(cell) for cell in cells) + " |"
    if folded:
        yield ""
        yield "</details>"
