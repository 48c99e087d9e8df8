"""envkit export: what envkit knows, in the words of other tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from envkit.channels import MAINLAND, condarc_text, pip_conf_text
from envkit.cli.axes import chosen_variants, matrix_channels
from envkit.cli.frame import Outcome, Session, verb
from envkit.errors import Error, InputError
from envkit.files import write_atomically
from envkit.host import read_host
from envkit.lock import LOCK_NAME, read_lock
from envkit.lock.formats import WRITERS, HashKind, write
from envkit.matrix import Axes
from envkit.messages import _
from envkit.model import Lock
from envkit.up import kept_lock, project

_BEGINNING = 10
"""Bytes at the beginning of an export that are the same for every lock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What was asked for on the command line."""

    kind: str
    source: str | None
    platform: str | None
    hashes: HashKind
    mirrors: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """One thing that can be exported: the text of it, and a line for `--help`.

    `of_mirrors` says that it is made from a choice of mirrors, not from a lock.
    """

    help: str
    make: Callable[[Session, _Asked], str]
    of_mirrors: bool = False


def _from_lock(session: Session, asked: _Asked) -> str:
    lock = _lock(session, asked.source)
    platform = asked.platform
    if platform is None and WRITERS[asked.kind].one_platform and len(lock.platforms) > 1:
        here = read_host().platform
        platform = here if here in lock.platforms else None
    return write(lock, asked.kind, platform, hashes=asked.hashes)


def _condarc(session: Session, asked: _Asked) -> str:
    return condarc_text(asked.mirrors, matrix_channels())


def _pip_conf(session: Session, asked: _Asked) -> str:
    return pip_conf_text(asked.mirrors)


KINDS: Mapping[str, _Kind] = {
    "explicit": _Kind(help="archives with hashes, for `conda create --file`", make=_from_lock),
    "pixi": _Kind(help="a pixi.lock of all platforms", make=_from_lock),
    "environment": _Kind(help="an environment.yml with every build pinned", make=_from_lock),
    "requirements": _Kind(help="what pip installs, with hashes", make=_from_lock),
    "condarc": _Kind(help="a .condarc for conda and mamba by hand", make=_condarc, of_mirrors=True),
    "pip-conf": _Kind(help="a pip.conf for pip by hand", make=_pip_conf, of_mirrors=True),
}


@verb("export", epilog="KIND: " + "; ".join(f"{name}: {kind.help}" for name, kind in KINDS.items()) + ".")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.argument("source", metavar="[VARIANT|LOCK|FOLDER]", required=False)
@click.option("--platform", metavar="SUBDIR", help="linux-64 and the like; this machine's by default.")
@click.option(
    "--hash", "hashes", type=click.Choice(["sha256", "md5"]), default="sha256",
    help="The hashes of an explicit file; old versions of conda know md5 alone.",
)  # fmt: skip
@click.option(
    "--mirror", metavar="MIRROR", help=f"For condarc and pip-conf; {','.join(MAINLAND)} without it."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write this file instead of printing.")
def command(
    session: Session,
    kind: str,
    source: str | None,
    platform: str | None,
    hashes: HashKind,
    mirror: str | None,
    output: Path | None,
) -> Outcome:
    """Without VARIANT or LOCK: the lock of the variant for this machine."""
    mirrors = tuple(word.strip() for word in (mirror or ",".join(MAINLAND)).split(",") if word.strip())
    useless = [source, platform] if KINDS[kind].of_mirrors else [mirror]
    if any(useless):
        raise InputError(
            _("{word} has no meaning for {kind}").format(
                word=next(word for word in useless if word), kind=kind
            ),
            _("condarc and pip-conf are made from --mirror, all others from a lock"),
        )
    asked = _Asked(kind=kind, source=source, platform=platform, hashes=hashes, mirrors=mirrors or MAINLAND)
    text = KINDS[kind].make(session, asked)
    if output is None:
        return Outcome(data={"kind": kind, "text": text}, text=text.rstrip("\n"))
    _refuse_to_replace(output, text, of_people=KINDS[kind].of_mirrors)
    write_atomically(output, text)
    return Outcome(data={"kind": kind, "path": str(output)}, text=_("{path}: written").format(path=output))


def _refuse_to_replace(path: Path, text: str, *, of_people: bool) -> None:
    """Raise InputError where a file would be lost that the same command did not make.

    A .condarc is written on by hand (`of_people`): whatever else stands there is kept. Any other export may
    take the place of one that begins like it.
    """
    raw = text.encode()
    try:
        if not path.is_file() or path.stat().st_size == 0:
            return
        known = len(raw) + 1 if of_people else _BEGINNING
        with path.open("rb") as file:
            if file.read(known) == raw[:known]:
                return
    except OSError as problem:
        raise Error(
            _("cannot read {path}: {reason}").format(path=path, reason=problem.strerror or problem),
            _("choose another name with `-o`, or move it away"),
        ) from None
    raise InputError(
        _("{path} is there already with another content; it is not replaced").format(path=path),
        _("choose another name with `-o`, or move it away"),
    )


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
