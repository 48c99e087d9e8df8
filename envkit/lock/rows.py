"""A diff as people read it: changes that are the same on several platforms in one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from envkit.lock.diff import KINDS, Change, Diff, Kind, channel_of
from envkit.messages import _
from envkit.report import table

__all__ = ["Group", "Row", "diff_text", "groups", "headline", "platform_lines", "word"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One change. `version` is "1.26.4 -> 2.0.1" or the one version there is; `note` says what else."""

    kind: Kind
    name: str
    version: str
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The rows that hold on just these platforms; `everywhere` where the two sides share no other."""

    platforms: tuple[str, ...]
    everywhere: bool
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        names = ", ".join(self.platforms)
        if not self.everywhere or len(self.platforms) == 1:
            return names
        return _("all platforms ({names})").format(names=names)


def groups(made: Diff) -> tuple[Group, ...]:
    """The changes on the platforms that both sides have, in groups of platforms, the largest group first."""
    shared = made.before.keys() & made.after.keys()
    platforms: dict[Row, list[str]] = {}
    for change in made.changes:
        if change.package.platform in shared:
            platforms.setdefault(_row(change), []).append(change.package.platform)
    grouped: dict[tuple[str, ...], list[Row]] = {}
    for row, names in platforms.items():
        grouped.setdefault(tuple(sorted(set(names))), []).append(row)
    order = {kind: position for position, kind in enumerate(KINDS)}
    return tuple(
        Group(
            platforms=names,
            everywhere=len(names) == len(shared),
            rows=tuple(sorted(rows, key=lambda row: (order[row.kind], row.name, row.version))),
        )
        for names, rows in sorted(grouped.items(), key=lambda item: (-len(item[0]), item[0]))
    )


def headline(made: Diff) -> str:
    """The numbers in one line. A package counts once, on however many platforms it changed alike."""
    counts = Counter(row.kind for group in groups(made) for row in group.rows)
    said = [_counted(kind).format(count=counts[kind]) for kind in KINDS if counts[kind]]
    said += _platforms_said(made)
    return _(", ").join(said) or _("no difference")


def _counted(kind: Kind) -> str:
    return {
        "up": _("{count} up"),
        "down": _("{count} down"),
        "added": _("{count} added"),
        "removed": _("{count} removed"),
        "moved": _("{count} moved"),
        "rebuilt": _("{count} rebuilt"),
        "amended": _("{count} amended"),
    }[kind]


def _platforms_said(made: Diff) -> Iterator[str]:
    more, less = len(made.new_platforms), len(made.gone_platforms)
    if more:
        yield _("1 platform more") if more == 1 else _("{count} platforms more").format(count=more)
    if less:
        yield _("1 platform less") if less == 1 else _("{count} platforms less").format(count=less)


def platform_lines(made: Diff) -> Iterator[str]:
    """A line for each platform that only one side has; its packages are all new, or all gone."""
    for platform in made.new_platforms:
        count = made.after[platform]
        text = _("{platform}: new, 1 package") if count == 1 else _("{platform}: new, {count} packages")
        yield text.format(platform=platform, count=count)
    for platform in made.gone_platforms:
        count = made.before[platform]
        text = _("{platform}: gone, 1 package") if count == 1 else _("{platform}: gone, {count} packages")
        yield text.format(platform=platform, count=count)


def diff_text(made: Diff) -> str:
    """A diff for a terminal: the numbers, then a table for each group of platforms."""
    lines = [headline(made)]
    for group in groups(made):
        cells = [(f"  {word(row.kind)}", row.name, row.version, row.note) for row in group.rows]
        lines += ["", group.title, table(cells[0], cells[1:])]
    extra = list(platform_lines(made))
    return "\n".join([*lines, *([""] if extra else []), *extra])


def word(kind: Kind) -> str:
    """What became of a package, in the user's language."""
    return {
        "up": _("up"),
        "down": _("down"),
        "added": _("added"),
        "removed": _("removed"),
        "moved": _("moved"),
        "rebuilt": _("rebuilt"),
        "amended": _("amended"),
    }[kind]


def _row(change: Change) -> Row:
    old, new, package = change.old, change.new, change.package
    name = package.name if package.manager == "conda" else _("{name} (pip)").format(name=package.name)
    if old is None or new is None:
        return Row(kind=change.kind, name=name, version=package.version, note=channel_of(package))
    version = old.version if old.version == new.version else f"{old.version} -> {new.version}"
    return Row(kind=change.kind, name=name, version=version, note="; ".join(_notes(change.kind, change)))


def _notes(kind: Kind, change: Change) -> Iterator[str]:
    old, new = change.old, change.new
    assert old is not None
    assert new is not None
    if change.moved:
        yield f"{channel_of(old)} -> {channel_of(new)}"
    if kind in ("rebuilt", "moved"):
        if old.build != new.build and old.url and new.url:
            yield f"{old.build} -> {new.build}"
        elif kind == "rebuilt" and old.version == new.version:
            yield _("another archive")
    if kind == "amended":
        parts = (
            (_("dependencies"), old.depends != new.depends),
            (_("category"), old.category != new.category),
            (_("URL"), old.url != new.url),
            (_("hashes"), (old.sha256, old.md5) != (new.sha256, new.md5)),
            (_("name"), old.name != new.name),
        )
        yield ", ".join(text for text, differs in parts if differs)
