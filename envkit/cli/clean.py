"""envkit clean: what can be deleted, what that frees, and what losing it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from envkit.cli.frame import Outcome, Session, verb
from envkit.cli.view import terminal_columns
from envkit.errors import ExitCode, InputError
from envkit.messages import _
from envkit.report import table
from envkit.report.size import spoken
from envkit.up.clean import KINDS, Cleaned, clean, here

_NAMES = tuple(kind.name for kind in KINDS)
_SHOWN = 20


@verb("clean")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@click.option("--all", "every", is_flag=True, help="Every kind, also what must be fetched or made again.")
@click.option("--dry-run", is_flag=True, help="Say what would be freed and touch nothing.")
def command(session: Session, kinds: tuple[str, ...], every: bool, dry_run: bool) -> Outcome:
    """Without a KIND only what nobody can miss goes: what killed runs left behind.

    \b
      staging, temporary,
      shared-memory  left by processes that are dead
      unfinished     in the cache: half-made, or changed and no more trusted

    The others are counted, and go when they are named or with --all:

    \b
      partial     downloads that would be resumed
      downloads   whole archives, kept for bundles
      packages    unpacked packages that no environment uses
      pip-files   files of pip sections
      channels    wheel channels that no lock names
      pip         what pip keeps
      repodata    indexes of channels

    Environments are never touched, nor what a running envkit uses.
    """
    unknown = [name for name in kinds if name not in _NAMES]
    if unknown:
        raise InputError(
            _("there is no kind '{name}'").format(name=unknown[0]),
            _("the kinds are: {names}").format(names=", ".join(_NAMES)),
        )
    if kinds and every:
        raise InputError(_("--all was given beside kinds"), _("leave out one of the two"))
    done = clean(here(dry_run=dry_run), kinds, every=every)
    freed = sum(one.size for one in done if one.chosen)
    failed = any(one.failed for one in done)
    return Outcome(
        data={"dry_run": dry_run, "bytes": freed, "kinds": [_json(one) for one in done]},
        text="\n".join(_lines(done, freed, dry_run=dry_run, verbose=session.verbose)),
        code=ExitCode.ENVIRONMENT if failed else ExitCode.OK,
    )


def _json(one: Cleaned) -> dict[str, Any]:
    return {
        "kind": one.kind.name,
        "chosen": one.chosen,
        "bytes": one.size,
        "bytes_in_use": one.kept,
        "paths": [str(path) for path in one.paths],
        "skipped": one.skipped or None,
        "failed": [{"path": str(path), "reason": reason} for path, reason in one.failed],
    }


def _lines(done: Sequence[Cleaned], freed: int, *, dry_run: bool, verbose: int) -> list[str]:
    chosen = [one for one in done if one.chosen and (one.paths or one.skipped)]
    rows = [(one.kind.name, _count(one), spoken(one.size), one.skipped) for one in chosen]
    lines = []
    if rows:
        header = (_("kind"), _("entries"), _("size"), "")
        lines += [table(header, rows, columns=terminal_columns()), ""]
    for one in chosen if verbose > 0 or dry_run else ():
        lines += [f"  {path}" for path in (one.paths if verbose > 0 else one.paths[:_SHOWN])]
        if verbose <= 0 and len(one.paths) > _SHOWN:
            lines.append(_("  and {count} more (-v shows them)").format(count=len(one.paths) - _SHOWN))
    for one in done:
        lines += [
            _("{path} could not be deleted: {reason}").format(path=path, reason=reason)
            for path, reason in one.failed
        ]
    lines += [
        _("{size} of unpacked packages stay: they are the same files as those of environments").format(
            size=spoken(one.kept)
        )
        for one in done
        if one.chosen and one.kept
    ]
    text = _("{size} would be freed") if dry_run else _("{size} freed")
    lines.append(text.format(size=spoken(freed)))
    more = [one for one in done if not one.chosen and one.size]
    if more:
        lines.append(
            _("`envkit clean --all` would free {size} more, to be fetched or made again: {kinds}").format(
                size=spoken(sum(one.size for one in more)),
                kinds=", ".join(f"{one.kind.name} {spoken(one.size)}" for one in more),
            )
        )
    return lines


def _count(one: Cleaned) -> str:
    return str(len(one.paths) - len(one.failed))
