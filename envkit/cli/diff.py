"""envkit diff: what changed between two locks, variants, revisions or environments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.sides import HEAD, Side, Sides
from envkit.errors import ExitCode, InputError
from envkit.lock import Diff, diff, diff_json, diff_markdown, diff_text
from envkit.lock.rows import headline
from envkit.messages import _


@verb("diff")
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option("--markdown", is_flag=True, help="Write Markdown, for a pull request.")
@click.option("--platform", metavar="P", help="Compare this platform alone: linux-64, osx-arm64...")
@click.option("--exit-code", "tell", is_flag=True, help="Exit 1 where there is a difference.")
def command(
    session: Session, a: str | None, b: str | None, markdown: bool, platform: str | None, tell: bool
) -> Outcome:
    """A and B are, by the first rule that fits:

    \b
      env:NAME, env:PREFIX   an installed environment
      REV:VARIANT, REV:PATH  a lock as committed: HEAD~1:py311-cu118,
                             v1.2:old/conda-lock.yml (PATH from the top of the
                             repository, or from here with ./); with no REV before
                             the colon, as staged for the next commit
      a path                 (with a slash, or ending in .yml, .yaml, .lock) a
                             lock file, a folder with a conda-lock.yml, or the
                             prefix of an environment
      VARIANT                the lock of a variant, as it lies on disk
      a file in this folder, then an environment of that name

    One side alone is compared with its committed state at HEAD; REV:... alone with the same lock on disk.
    Without any, every lock of the matrix is compared with HEAD; with `REV:`, with that revision.

    Against an environment only its own platform counts, and what its records know.

    Exits 0 whether or not there is a difference, unless --exit-code is given.
    """
    sides = Sides()
    blocks, rows, different = [], [], False
    every = a is None or (b is None and a.endswith(":") and "://" not in a)
    for old, new in _all(sides, a or f"{HEAD}:") if every else [_two(sides, a or "", b)]:
        if every and platform is not None and not _has(platform, old, new):
            continue
        old, new = _comparable(old, new, platform)
        made = diff(old.packages, new.packages, archives_only="environment" in (old.kind, new.kind))
        different |= bool(made)
        rows.append({"a": old.to_json(), "b": new.to_json(), **diff_json(made)})
        if made or not every:
            blocks.append(_block(sides, made, old, new, markdown=markdown, quiet=session.verbose < 0))
    data: dict[str, Any] = {"different": different, "diffs": rows}
    text = "\n\n".join(blocks) or _("no lock differs")
    return Outcome(data=data, text=text, code=ExitCode.FINDINGS if tell and different else ExitCode.OK)


def _two(sides: Sides, a: str, b: str | None) -> tuple[Side, Side]:
    first = sides.read(a)
    if b is not None:
        return first, sides.read(b)
    if first.kind == "revision":
        return first, sides.default_new(first)
    return sides.default_old(first), first


def _all(sides: Sides, revision: str) -> Iterator[tuple[Side, Side]]:
    """The locks of the matrix that are not what they were at a revision, with what they were."""
    if sides.project is None:
        raise InputError(
            _("what is to be compared?"), _("name both sides: envkit diff A B, or run it in a project")
        )
    at = revision.removesuffix(":")
    for variant in sides.project[1].variants:
        if not sides.unchanged(variant, at):
            yield sides.revision(at, variant.name, missing_is_empty=True), sides.on_disk(variant)


def _comparable(old: Side, new: Side, platform: str | None) -> tuple[Side, Side]:
    """The sides cut down to what both can speak of."""
    environments = [side for side in (old, new) if side.kind == "environment"]
    own = {side.platform for side in environments if side.platform}
    if platform is not None and not _has(platform, old, new):
        there = sorted({package.platform for side in (old, new) for package in side.packages})
        raise InputError(
            _("neither side has packages for {platform}").format(platform=platform),
            _("there are: {names}").format(names=", ".join(there)),
        )
    wanted = platform or (own.pop() if len(own) == 1 else None)
    if wanted is not None:
        old, new = old.on(wanted), new.on(wanted)
    if environments:
        # Only this category is installed; see `envkit.install.plan`.
        old, new = _main(old), _main(new)
    return old, new


def _has(platform: str, *sides: Side) -> bool:
    return any(package.platform == platform for side in sides for package in side.packages)


def _main(side: Side) -> Side:
    return replace(side, packages=tuple(one for one in side.packages if one.category == "main"))


def _block(sides: Sides, made: Diff, old: Side, new: Side, *, markdown: bool, quiet: bool) -> str:
    if quiet:
        return _("{name}: {text}").format(name=new.label, text=headline(made))
    if markdown:
        return diff_markdown(made, f"{sides.title(old)} → {sides.title(new)}")
    return f"{old.label} -> {new.label}\n{diff_text(made)}"
