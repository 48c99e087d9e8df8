"""envkit export: what envkit knows, in the words of other tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from envkit.cli.axes import chosen_variants
from envkit.cli.frame import Outcome, Session, verb
from envkit.errors import InputError
from envkit.files import write_atomically
from envkit.host import read_host
from envkit.lock import LOCK_NAME, read_lock
from envkit.lock.formats import WRITERS, HashKind, write
from envkit.matrix import Axes
from envkit.messages import _
from envkit.model import Lock
from envkit.up import kept_lock, project


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What was asked for on the command line."""

    kind: str
    source: str | None
    platform: str | None
    hashes: HashKind


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """One thing that can be exported: the text of it, and a line for `--help`."""

    help: str
    make: Callable[[Session, _Asked], str]


def _from_lock(session: Session, asked: _Asked) -> str:
    lock = _lock(session, asked.source)
    platform = asked.platform
    if platform is None and WRITERS[asked.kind].one_platform and len(lock.platforms) > 1:
        here = read_host().platform
        platform = here if here in lock.platforms else None
    return write(lock, asked.kind, platform, hashes=asked.hashes)


KINDS: Mapping[str, _Kind] = {
    "explicit": _Kind(help="archives with hashes, for `conda create --file`", make=_from_lock),
    "pixi": _Kind(help="a pixi.lock of all platforms", make=_from_lock),
    "environment": _Kind(help="an environment.yml with every build pinned", make=_from_lock),
    "requirements": _Kind(help="what pip installs, with hashes", make=_from_lock),
}


@verb("export", epilog="KIND: " + "; ".join(f"{name}: {kind.help}" for name, kind in KINDS.items()) + ".")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.argument("source", metavar="[VARIANT|LOCK|FOLDER]", required=False)
@click.option("--platform", metavar="SUBDIR", help="linux-64 and the like; this machine's by default.")
@click.option(
    "--hash", "hashes", type=click.Choice(["sha256", "md5"]), default="sha256",
    help="The hashes of an explicit file; old versions of conda know md5 alone.",
)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write this file instead of printing.")
def command(
    session: Session,
    kind: str,
    source: str | None,
    platform: str | None,
    hashes: HashKind,
    output: Path | None,
) -> Outcome:
    text = KINDS[kind].make(session, _Asked(kind=kind, source=source, platform=platform, hashes=hashes))
    if output is None:
        return Outcome(data={"kind": kind, "text": text}, text=text.rstrip("\n"))
    write_atomically(output, text)
    return Outcome(data={"kind": kind, "path": str(output)}, text=_("{path}: written").format(path=output))


def _lock(session: Session, source: str | None) -> Lock:
    """The lock that a path, a variant's name or nothing (this machine's variant) means."""
    if source is not None and (path := _file_meant(source)):
        return read_lock(path)
    root, known = project()
    (variant,) = chosen_variants(known, source, Axes(), every=False)
    found, fresh = kept_lock(root, known, variant)
    if found is None:
        raise InputError(
            _("{name} is not locked").format(name=variant.name),
            _("run `envkit lock {name}` first").format(name=variant.name),
        )
    if not fresh:
        session.observer.note(
            _("the lock of {name} is stale: the matrix renders another environment.yml now").format(
                name=variant.name
            )
        )
    return found


def _file_meant(word: str) -> Path | None:
    """The lock file that a word means, or the one in the folder that it means; None for a variant's name."""
    path = Path(word)
    if path.is_dir() and ((path / LOCK_NAME).exists() or "/" in word):
        return path / LOCK_NAME
    return path if path.is_file() or "/" in word or path.suffix in (".yml", ".yaml") else None
