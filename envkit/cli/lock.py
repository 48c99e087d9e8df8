"""envkit lock: pin a variant, every variant of the matrix, or a stranger's file, for all its platforms."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from envkit.channels import condarc_bases, read_condarc
from envkit.cli.axes import Mirrors, axes_options, chosen_variants, mirror_options
from envkit.cli.frame import Outcome, Session, verb
from envkit.errors import ExitCode, Findings, InputError
from envkit.files import write_atomically
from envkit.lock import TORCH_NAMES, LockState, canonicalise, check, diff_json, diff_text
from envkit.matrix import Axes, Matrix
from envkit.messages import _
from envkit.model import Lock, Variant
from envkit.render import environment_file, render
from envkit.up import project
from envkit.up.request import shown
from envkit.up.team import Relocked, lock_variants, old_lock

_AXES = ("python", "cuda", "torch", "source", "extras")
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """One call, its arguments known to go together."""

    variant: str | None
    axes: Axes
    every: bool
    file: Path | None
    foreign: Path | None
    platforms: tuple[str, ...]
    check: bool
    update: tuple[str, ...]
    fresh: bool
    output: Path | None
    mirrors: Mirrors

    def refuse_contradictions(self) -> None:
        """Raise InputError for arguments of which one makes the other meaningless."""
        axes = [f"--{'with' if word == 'extras' else word}" for word in _AXES if getattr(self.axes, word)]
        subjects = {
            "VARIANT": bool(self.variant),
            "--all": self.every,
            "--file": self.file is not None,
            "--canonicalise": self.foreign is not None,
        }
        given = [word for word, there in subjects.items() if there]
        if len(given) > 1:
            raise InputError(
                _("{words} were given, of which each says what to lock").format(words=_(" and ").join(given)),
                _("leave out all but one"),
            )
        how = {"--check": self.check, "--update": bool(self.update), "--fresh": self.fresh}
        ways = [word for word, there in how.items() if there]
        if len(ways) > 1:
            raise InputError(
                _("{words} exclude each other").format(words=_(" and ").join(ways)),
                _("leave out all but one: --check writes nothing, --update keeps pins, --fresh forgets them"),
            )
        subject = given[0] if given else "VARIANT"
        platform = ["--platform"] if self.platforms else []
        output = ["--output"] if self.output else []
        useless = {
            "VARIANT": [*platform, *output],
            "--all": [*axes, *platform, *output],
            "--file": [word for word in axes if word not in ("--python", "--cuda")],
            "--canonicalise": [*axes, *platform, *ways],
        }[subject]
        if useless:
            raise InputError(
                _("{words} has no meaning with {subject}").format(
                    words=_(" and ").join(useless), subject=subject
                ),
                _("`envkit lock --help` shows what goes together"),
            )


@verb("lock")
@click.argument("variant", required=False)
@axes_options
@mirror_options
@click.option("--all", "every", is_flag=True, help="Every variant whose lock the team keeps.")
@click.option(
    "--file",
    type=_FILE,
    metavar="FILE",
    help="An environment.yml, requirements.txt, explicit file or pixi.lock, into conda-lock.yml beside it; "
    "a lock of the same file there gives the pins.",
)
@click.option(
    "--canonicalise",
    "foreign",
    type=_FILE,
    metavar="FILE",
    help="Rewrite the mirror URLs of an existing lock, in place without -o; its hashes stay.",
)
@click.option(
    "--platform",
    "platforms",
    metavar="SUBDIR",
    multiple=True,
    help="With --file: lock for this platform, not those it names; repeatable.",
)
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Solve nothing; exit 1 where a lock is missing or stale. All locks where none is named.",
)
@click.option(
    "--update",
    metavar="PKG",
    multiple=True,
    help="Move this package, and others only where they must; repeatable.",
)
@click.option("--fresh", is_flag=True, help="Forget the pins and solve anew.")
@click.option(
    "-o", "--output", type=_FILE, metavar="OUT", help="Where to write, with --file and --canonicalise."
)
def command(session: Session, checking: bool, **arguments: Any) -> Outcome:
    """Without --update and --fresh, the pins of a lock stay: all of them while the environment.yml is the
    same, and those that can where it is another.
    """
    asked = _Asked(check=checking, **arguments)
    asked.refuse_contradictions()
    if asked.foreign is not None:
        return _canonicalise(session, asked.foreign, asked.output)
    if asked.file is not None:
        return _lock_file(session, asked.file, asked)
    root, known = project()
    every = asked.every or (asked.check and not asked.variant and asked.axes == Axes())
    chosen = chosen_variants(known, asked.variant, asked.axes, every=every)
    if asked.check:
        return _check(session, root, known, chosen, every=every)
    return _lock_variants(session, root, known, chosen, asked)


def _check(
    session: Session, root: Path, known: Matrix, chosen: tuple[Variant, ...], *, every: bool
) -> Outcome:
    states = [check(root, known, variant) for variant in chosen]
    # Nobody who asks for all asked for what the team does not keep.
    wrong = [state for state in states if not state.fresh and not (every and state.state == "unkept")]
    lines = [line for state in states for line in _state_lines(state, session.verbose < 0)]
    rows = [{**state.to_json(), "committed": known.commits(state.variant)} for state in states]
    return Outcome(
        data={"variants": rows},
        text="\n".join(lines),
        code=ExitCode.FINDINGS if wrong else ExitCode.OK,
    )


def _state_lines(state: LockState, quiet: bool) -> Iterator[str]:
    words = {
        "fresh": _("fresh"),
        "stale": _("stale"),
        "missing": _("not locked"),
        "unkept": _("not locked, and its lock is not committed"),
        "unrendered": _("not as rendered"),
        "unreadable": _("unreadable"),
    }
    said = _("{name}: {text}").format(name=state.variant.name, text=words[state.state])
    if state.reason and not quiet and state.state not in ("missing", "unkept"):
        said = _("{name}: {text}").format(name=said, text=state.reason)
    yield said
    if quiet or state.state == "unkept":
        return
    yield from (f"  {line}" for line in state.diff.splitlines())
    if state.hint:
        yield _("  hint: {hint}").format(hint=state.hint)


def _lock_variants(
    session: Session, root: Path, known: Matrix, chosen: tuple[Variant, ...], asked: _Asked
) -> Outcome:

    rows: list[dict[str, Any]] = []
    blocks: list[str] = []
    failed = False
    if asked.every:
        if asked.update:
            chosen = _that_have(root, known, chosen, asked.update)
        for each in chosen:
            if not known.commits(each):
                blocks.append(
                    _("{name}: its lock is not committed; `envkit lock {name}` makes one").format(
                        name=each.name
                    )
                )
        chosen = tuple(each for each in chosen if known.commits(each))
    for each, made, seconds in lock_variants(
        root,
        known,
        chosen,
        routes=asked.mirrors.routes(),
        observer=session.observer,
        update=asked.update,
        fresh=asked.fresh,
    ):
        if isinstance(made, Findings):
            if not asked.every:
                raise made
            failed = True
            rows.append(
                {"variant": each.name, "error": made.message, "hint": made.hint, "details": made.details}
            )
            blocks.append(_("{name}: {text}").format(name=each.name, text=made.message))
            continue
        if known.lists(each):
            _write_changed(environment_file(root, each), render(known, each).text)
        rows.append({"variant": each.name, **_row(made)})
        blocks.append(_told(session, each.name, made, seconds, asked))
        if not known.lists(each) and session.verbose >= 0:
            blocks.append(_("written to {path}").format(path=shown(made.lock.path)))
    return Outcome(
        data={"variants": rows}, text="\n".join(blocks), code=ExitCode.FINDINGS if failed else ExitCode.OK
    )


def _write_changed(path: Path, text: str) -> None:
    """What stands there already is left alone, so that nothing changed needs no right to write."""
    if not path.is_file() or path.read_bytes() != text.encode():
        write_atomically(path, text)


def _that_have(
    root: Path, known: Matrix, chosen: tuple[Variant, ...], names: tuple[str, ...]
) -> tuple[Variant, ...]:
    """The variants whose locks have all the named packages. Raises InputError where none has."""
    from envkit.lock import lock_path
    from envkit.matrix.nearest import listing, nearest_words

    found, every = [], set()
    for variant in chosen:
        old = old_lock(lock_path(root, variant)) if known.commits(variant) else None
        there = {package.name for package in old.packages} if old else set()
        every |= there
        if there.issuperset(names):
            found.append(variant)
    if not found:
        wrong = [name for name in names if name not in every] or list(names)
        raise InputError(
            _("'{name}' is in none of the locks; the nearest are {valid}").format(
                name=wrong[0], valid=listing(nearest_words(wrong[0], sorted(every))[:3])
            ),
            _("`--update` takes the names of locked packages, without a version"),
        )
    return tuple(found)


def _lock_file(session: Session, file: Path, asked: _Asked) -> Outcome:
    from envkit.host import read_host
    from envkit.matrix.axes import cuda_version, python_version
    from envkit.up.foreign import check_file, lock_file

    cuda = cuda_version(asked.axes.cuda) if asked.axes.cuda else None
    python = python_version(asked.axes.python) if asked.axes.python else None
    for option, written, read in (("--cuda", asked.axes.cuda, cuda), ("--python", asked.axes.python, python)):
        if written and read is None:
            raise InputError(
                _("{option} {value} is not a version").format(option=option, value=written),
                _("write it like {example}").format(example="12.4" if option == "--cuda" else "3.11"),
            )
    here = read_host().platform
    if asked.check:
        state = check_file(
            file, asked.output, python=python, cuda=cuda, platform=here, platforms=asked.platforms
        )
        return Outcome(
            data={"variants": [state.to_json()]},
            text="\n".join(_state_lines(state, session.verbose < 0)),
            code=ExitCode.OK if state.fresh else ExitCode.FINDINGS,
        )
    began = time.monotonic()
    locked = lock_file(
        file,
        asked.output,
        python=python,
        cuda=cuda,
        platform=here,
        platforms=asked.platforms,
        routes=asked.mirrors.routes(),
        observer=session.observer,
        update=asked.update,
        fresh=asked.fresh,
    )
    quiet = session.verbose < 0
    lines = [] if quiet else [_("note: {text}").format(text=note) for note in locked.notes]
    lines.append(_told(session, locked.name, locked.made, time.monotonic() - began, asked))
    if not quiet:
        lines.append(_("written to {path}").format(path=locked.made.lock.path))
    notes = [{"line": note.line, "text": note.text, "warning": note.warning} for note in locked.notes]
    return Outcome(data={"file": str(file), "notes": notes, **_row(locked.made)}, text="\n".join(lines))


def _canonicalise(session: Session, file: Path, output: Path | None) -> Outcome:
    text, notes = canonicalise(file, also=condarc_bases(read_condarc().settings))
    target = output or file
    write_atomically(target, text)
    lines = [] if session.verbose < 0 else [str(note) for note in notes]
    lines.append(_("written to {path}").format(path=target))
    rows = [{"line": note.line, "text": note.text, "warning": note.warning} for note in notes]
    return Outcome(data={"file": str(file), "path": str(target), "notes": rows}, text="\n".join(lines))


def _row(made: Relocked) -> dict[str, Any]:
    return {
        "path": str(made.lock.path),
        "torch": _torch(made.lock),
        "changed": made.before is None or bool(made.diff),
        "held": list(made.held),
        "rewritten": made.before is None or bool(made.diff) or made.rehead,
        "diff": diff_json(made.diff) if made.before is not None else None,
    }


def _told(session: Session, name: str, made: Relocked, seconds: float, asked: _Asked) -> str:
    """One line, and below it what changed against the old lock."""
    torch = _torch(made.lock)
    if made.before is not None and not made.diff:
        if asked.update:
            line = _("{name}: {packages} cannot move: nothing changed").format(
                name=name, packages=", ".join(asked.update)
            )
            return "\n".join([line, *(f"  {reason}" for reason in made.held)])
        line = _("same packages; the lock's head was rewritten") if made.rehead else _("unchanged")
        return _("{name}: {text}").format(name=name, text=line + (f", torch {torch}" if torch else ""))
    line = _("{name}: {count} packages on {platforms}, {seconds:.1f} s").format(
        name=name,
        count=len(made.lock.packages),
        platforms=", ".join(made.lock.platforms) + (f", torch {torch}" if torch else ""),
        seconds=seconds,
    )
    return line if made.before is None or session.verbose < 0 else f"{line}\n{diff_text(made.diff)}"


def _torch(made: Lock) -> str | None:
    return next((package.version for package in made.packages if package.name in TORCH_NAMES), None)
