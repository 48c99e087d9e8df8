"""What every verb shares: loading, the common options, rendering once, and the exit code of each failure."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import click

from envkit import __version__, messages, paths
from envkit.channels import shown_text
from envkit.cli import streams
from envkit.cli.invocation import worded
from envkit.cli.usage import usage_words
from envkit.cli.view import PROGRESS, Mode, view
from envkit.errors import Error, ExitCode, Findings, InputError
from envkit.messages import _
from envkit.progress import Observer

__all__ = ["Outcome", "Session", "execute", "verb"]

SCHEMA = 1

_VERBATIM = ("export", "render", "run", "activate")
"""Verbs that print what is meant for a file or a shell."""

VERBS: Mapping[str, str] = {
    "up": "axes or a variant -> a validated environment (what `make env` runs)",
    "variants": "the matrix: what can be asked for, and what is rendered, locked and installed",
    "render": "templates -> environment.yml",
    "lock": "environment.yml -> conda-lock.yml, for every platform of the variant",
    "diff": "what changed between two locks, variants, revisions or environments",
    "audit": "a lock, ours or a stranger's -> what is wrong with it, and whether a machine can run it",
    "export": "a lock -> explicit, pixi.lock, environment.yml …; mirrors -> .condarc, pip.conf",
    "mirrors": "which mirror carries what, whom this machine asks, and how fast they answer",
    "install": "a lock -> an environment",
    "bundle": "all that an environment needs in one file, for machines without a network",
    "run": "run a command inside an environment",
    "activate": "print what a shell must evaluate to enter an environment",
    "validate": "prove that an environment works here",
    "drift": "what an environment has become since it was made from its lock, and the way back",
    "remove": "remove an environment",
    "clean": "what can be deleted: caches, what killed runs left behind",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a verb found: `data` for `--json`, `text` for people, and the exit code."""

    data: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    code: int = ExitCode.OK


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """How this call speaks: `verbose` is -1 (quiet), 0, 1 or more; `color` is for stdout."""

    json: bool
    verbose: int
    color: bool
    observer: Observer


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What must be known of a call before its arguments are parsed: failures are told the same way."""

    json: bool
    events: bool


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or a polite request to end (SIGTERM, SIGHUP): cleaned up after alike."""


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"envkit.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in VERBS:
            import difflib

            near = difflib.get_close_matches(name, VERBS, n=1)
            hint = (
                _("did you mean '{name}'?").format(name=near[0]) if near else _("`envkit --help` lists them")
            )
            raise InputError(_("there is no command '{name}'").format(name=name), hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="envkit")
def envkit() -> None:
    """From a bare machine to a proven PyTorch environment."""


def verb(name: str, **settings: Any) -> Callable[[Callable[..., Outcome]], click.Command]:
    """Make a click command of a function `(session, **options) -> Outcome`.

    Adds the options every verb has: --json, -q, -v, --progress, --lang.
    """

    def decorate(function: Callable[..., Outcome]) -> click.Command:
        @functools.wraps(function)
        def call(
            json: bool, quiet: bool, verbose: int, progress: Mode, lang: str | None, **options: Any
        ) -> Outcome:
            messages.use(lang)
            with view("none" if quiet else progress) as observer:
                session = Session(
                    json=json,
                    verbose=-1 if quiet else verbose,
                    color=not json and sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
                    observer=observer,
                )
                return function(session, **options)

        decorated: Callable[..., Any] = call
        for option in (
            click.option("--lang", type=click.Choice(messages.LANGUAGES), help="Language of the messages."),
            click.option(
                "--progress",
                type=click.Choice(PROGRESS),
                default="auto",
                envvar="ENVKIT_PROGRESS",
                help="On stderr: bars on a terminal and lines elsewhere (auto), lines, JSON lines, nothing.",
            ),
            click.option("-v", "--verbose", count=True, help="Say more; twice for everything."),
            click.option("-q", "--quiet", is_flag=True, help="Say less: no progress, notes or details."),
            click.option("--json", is_flag=True, help="Print one JSON object, failures included."),
        ):
            decorated = option(decorated)
        help_text = VERBS[name]
        if function.__doc__:
            help_text += f"\n\n{inspect.cleandoc(function.__doc__)}"
        make: Callable[..., click.Command] = click.command(name, help=help_text, **settings)
        return make(decorated)

    return decorate


def execute(arguments: Sequence[str]) -> int:
    """Run one command line; everything it has to say is printed when this returns its exit code."""
    messages.use(_value_asked(arguments, "--lang"))
    asked = _Asked(
        json="--json" in _own(arguments),
        events=(_value_asked(arguments, "--progress") or os.environ.get("ENVKIT_PROGRESS")) == "json",
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    command = next((word for word in arguments if word in VERBS), "")
    code = 0
    try:
        result = envkit.main(list(arguments) or ["--help"], prog_name="envkit", standalone_mode=False)
        outcome = result if isinstance(result, Outcome) else Outcome(code=int(result or 0))
        code = int(outcome.code)
        if asked.json and isinstance(result, Outcome):
            _print_json(command, outcome.code, result=outcome.data)
        elif outcome.text:
            print(outcome.text if command in _VERBATIM else worded(outcome.text))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever reads has read enough (`| head -1`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return code
    except (KeyboardInterrupt, click.Abort):
        return _fail(command, asked, ExitCode.INTERRUPTED, _("interrupted"), _("run the same command again"))
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as problem:
        hint = _("`envkit {command} --help` shows how it is used").format(command=command).replace("  ", " ")
        return _fail(command, asked, ExitCode.USAGE, usage_words(problem), hint)
    except Error as problem:
        where: dict[str, Any] = {}
        hint = problem.hint
        if isinstance(problem, InputError) and problem.path is not None:
            where = {"path": str(problem.path), "line": problem.line}
            hint = hint or _("correct the file or its path, then run the same command again")
        if isinstance(problem, Findings) and problem.details:
            where["details"] = problem.details
        text = str(problem)
        if where.get("details", {}).get("chain") and _verbose(arguments):
            text = "\n  ".join((f"{text}\n" + _("all that the solver says:"), *where["details"]["chain"]))
        code = ExitCode.CHILD_NOT_RUN if command == "run" else problem.code
        return _fail(command, asked, code, text, hint, **where)
    except paths.NoHome:
        return _fail(
            command,
            asked,
            ExitCode.USAGE,
            _("the home folder that ENVKIT_HOME, ENVKIT_CACHE or HOME mean is not known"),
            _("set ENVKIT_HOME to a folder you may write to"),
        )
    except OSError as problem:
        # A full or failing disk can answer any write; it is the machine's fault and never a bug.
        text = f"{problem.strerror or problem}" + (f": {problem.filename}" if problem.filename else "")
        hint = _("free some space or choose a folder you may write to")
        return _fail(command, asked, ExitCode.ENVIRONMENT, text, hint)
    except Exception as problem:
        if isinstance(problem.__cause__, KeyboardInterrupt):  # wrapped where a class was made
            return _fail(
                command, asked, ExitCode.INTERRUPTED, _("interrupted"), _("run the same command again")
            )
        return _bug(command, asked, problem)


def _own(arguments: Sequence[str]) -> Sequence[str]:
    """What is envkit's: all up to `--` or to the environment of `run`; the rest is someone else's command."""
    own = list(arguments)
    if "--" in own:
        own = own[: own.index("--")]
    for position in range(1, len(own) if own[:1] == ["run"] else 0):
        if not own[position].startswith("-") and own[position - 1] not in ("--lang", "--progress"):
            return own[: position + 1]
    return own


def _verbose(arguments: Sequence[str]) -> bool:
    return any(word == "--verbose" or re.fullmatch("-q?v+q?", word) for word in _own(arguments))


def _value_asked(arguments: Sequence[str], option: str) -> str | None:
    """What an option that every verb has was given, before any of it is parsed."""
    own = list(_own(arguments))
    for position, word in enumerate(own):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and position + 1 < len(own):
            return own[position + 1]
    return None


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def _print_json(
    command: str,
    code: int,
    *,
    result: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
) -> None:
    document = {
        "schema": SCHEMA,
        "command": command,
        "ok": code == ExitCode.OK,
        "exit": int(code),
        "result": result,
        "error": error,
    }
    text = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # an ASCII terminal, or a file name that is no Unicode
        text = json.dumps(document, indent=2, default=str)
    print(text)


def _fail(command: str, asked: _Asked, code: int, message: str, hint: str = "", **where: Any) -> int:
    hint = worded(shown_text(hint))
    # Each error has its URLs without passwords already; this is for the one that was forgotten.
    message, where = worded(shown_text(message)), {key: _harmless(value) for key, value in where.items()}
    if asked.json:
        with suppress(OSError):  # a full disk; the code says enough
            _print_json(command, code, error={"message": message, "hint": hint, **where})
            sys.stdout.flush()
    if asked.events:
        from envkit.cli.jsonlines import tell

        tell("error", text=message, hint=hint, exit=int(code))
        return int(code)
    streams.say(_("error: {message}").format(message=message))
    if hint:
        streams.say(_("hint: {hint}").format(hint=hint))
    return int(code)


def _harmless(value: Any) -> Any:
    """Data as it may be shown: every text in it as `shown_text` has it."""
    if isinstance(value, str):
        return shown_text(value)
    if isinstance(value, Mapping):
        return {_harmless(key): _harmless(inner) for key, inner in value.items()}
    return [_harmless(inner) for inner in value] if isinstance(value, list | tuple) else value


def _bug(command: str, asked: _Asked, problem: Exception) -> int:
    """Our own mistake: one line for the user, the traceback in a file for whoever mends it."""
    text = "".join(traceback.format_exception(problem))
    try:
        kept = paths.state() / "last-bug.txt"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text, encoding="utf-8", errors="backslashreplace")
        hint = _("the details are in {path}; please report them").format(path=kept)
    except OSError:
        hint = text
    message = _("a bug in envkit: {kind}: {problem}").format(kind=type(problem).__name__, problem=problem)
    return _fail(command, asked, ExitCode.BUG, message, hint)
