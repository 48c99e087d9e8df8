"""envkit-conda: a conda-compatible executable, so that an unmodified conda-lock works without conda.

    conda-lock lock --conda envkit-conda -f environment.yml
    conda-lock install --conda envkit-conda --prefix PREFIX conda-lock.yml

It understands what conda-lock runs (conda_solver.py and conda_lock.py of 4.0.3) and answers as conda
does; whatever else conda can do is refused. A program of its own: it prints and exits.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from envkit import __version__, paths
from envkit.errors import Error, ExitCode, InputError
from envkit.messages import _, use
from envkit.progress import Observer
from envkit.solve.conda_channels import target_platform

__all__ = ["main"]

_CONDA_VERSION = "24.11.0"
"""The conda whose answers are imitated."""


def main() -> NoReturn:
    """The console script. Leaves by `os._exit`: rattler's threads can crash a normal interpreter exit."""
    use()
    arguments = sys.argv[1:]
    as_json = "--json" in arguments
    try:
        code = _run(arguments)
    except SystemExit as problem:  # argparse
        code = problem.code if isinstance(problem.code, int) else ExitCode.USAGE
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Error as problem:
        code = ExitCode.FINDINGS if as_json else problem.code
        _tell(problem, as_json)
    except BrokenPipeError:
        code = ExitCode.ENVIRONMENT
    except OSError as problem:
        code = ExitCode.ENVIRONMENT
        told = f"{problem.strerror or problem}" + (f": {problem.filename}" if problem.filename else "")
        _tell(Error(told), as_json)
    except Exception as problem:
        code = ExitCode.BUG
        told = _("a bug in envkit: {kind}: {problem}").format(kind=type(problem).__name__, problem=problem)
        _tell(Error(told), as_json)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            code = code or (ExitCode.ENVIRONMENT if stream is sys.stdout else ExitCode.OK)
    os._exit(code)


def _run(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    verb: Callable[[argparse.Namespace], int] = options.verb
    return verb(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="envkit-conda", description=__doc__.splitlines()[0])
    parser.add_argument(
        "-V", "--version", action="version", version=f"conda {_CONDA_VERSION} (envkit {__version__})"
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, function: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        each = verbs.add_parser(name, help=text)
        each.set_defaults(verb=function)
        each.add_argument("--json", action="store_true")
        return each

    verb("info", _info, "this executable and its folders")
    config = verb("config", _config, "the settings conda-lock asks for")
    config.add_argument("what", nargs="*")
    config.add_argument("--show", nargs="*")
    listing = verb("list", _list, "the packages of an environment")
    listing.add_argument("--no-pip", action="store_true")
    _add_place(listing)
    for name, function, text in (
        ("create", _create, "make an environment from specs or an explicit file"),
        ("install", _install, "solve for an update (with --dry-run only)"),
    ):
        each = verb(name, function, text)
        _add_creation(each)
        each.add_argument("--dry-run", "-d", action="store_true")
        each.add_argument("--override-channels", action="store_true")
        each.add_argument("--channel", "-c", action="append", default=[], metavar="CHANNEL")
        each.add_argument("specs", nargs="*", metavar="SPEC")
    env = verb("env", _create_env, "make an environment from environment.yml: `env create --file FILE`")
    env.add_argument("action", choices=["create"])
    _add_creation(env)
    run = verb("run", _run_command, "run a command in an environment")
    _add_place(run)
    run.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def _add_creation(parser: argparse.ArgumentParser) -> None:
    _add_place(parser)
    parser.add_argument("--file", "-f", type=Path, metavar="FILE")
    for flag in ("--yes", "--quiet", "--copy"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-y", "-q", action="store_true", help=argparse.SUPPRESS)


def _add_place(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--prefix", "-p", type=Path)
    place.add_argument("--name", "-n")


def _prefix(options: argparse.Namespace) -> Path:
    if options.prefix is not None:
        return Path.cwd() / Path(options.prefix)
    name = str(options.name)
    if not name or "/" in name or name.startswith("."):
        raise InputError(_("'{name}' is not a name for an environment").format(name=name))
    return paths.environments() / name


def _door() -> Any:
    from envkit import fetch
    from envkit.channels import read_condarc
    from envkit.solve.conda_actions import Door

    routes = fetch.routes(
        os.environ.get("ENVKIT_MIRROR", "auto"),
        only=os.environ.get("ENVKIT_ONLY_MIRRORS", "").lower() in ("1", "true", "yes", "on"),
        condarc=read_condarc(),
    )
    return Door(routes=routes, cache=paths.cache(), observer=_Stderr())


def _create(options: argparse.Namespace) -> int:
    from envkit.solve.conda_json import fetch_actions, link_actions

    door, prefix = _door(), _prefix(options)
    if options.file is not None:
        if options.dry_run or options.specs:
            raise InputError(_("--file goes with neither --dry-run nor further specs"))
        door.create_from_explicit(options.file, prefix)
        _answer({"prefix": str(prefix)}, options)
        return ExitCode.OK
    solved = door.solve(options.channel, options.specs)
    if not options.dry_run:
        door.create(solved, prefix)
    actions = {"FETCH": fetch_actions(solved), "LINK": link_actions(solved), "PREFIX": str(prefix)}
    _answer({"actions": actions, "prefix": str(prefix), "dry_run": options.dry_run}, options)
    return ExitCode.OK


def _install(options: argparse.Namespace) -> int:
    from envkit.solve.conda_json import fetch_actions, link_actions

    if not options.dry_run or options.file is not None:
        raise InputError(
            _("envkit-conda does not change environments that exist"),
            _("lock the change, then install the lock: `envkit lock`, `envkit install`"),
        )
    prefix = _prefix(options)
    changed = _door().update(options.channel, options.specs, prefix)
    actions = {"FETCH": fetch_actions(changed), "LINK": link_actions(changed), "PREFIX": str(prefix)}
    _answer({"actions": actions, "prefix": str(prefix), "dry_run": True}, options)
    return ExitCode.OK


def _create_env(options: argparse.Namespace) -> int:
    if options.file is None:
        raise InputError(_("`env create` needs --file FILE"))
    prefix = _prefix(options)
    _door().create_from_yaml(options.file, prefix)
    _answer({"prefix": str(prefix)}, options)
    return ExitCode.OK


def _run_command(options: argparse.Namespace) -> int:
    if not options.command:
        raise InputError(_("no command to run"))
    code: int = _door().run(_prefix(options), options.command)
    return code


def _list(options: argparse.Namespace) -> int:
    from envkit.solve.conda_json import listed

    packages = listed(_prefix(options))
    if options.json:
        _write(json.dumps(packages, indent=2))
    else:
        _write("\n".join(f"{one['name']} {one['version']} {one['build_string']}" for one in packages))
    return ExitCode.OK


def _info(options: argparse.Namespace) -> int:
    _answer(
        {
            "conda_version": _CONDA_VERSION,
            "envs_dirs": [str(paths.environments())],
            "pkgs_dirs": _pkgs_dirs(),
            "platform": target_platform(),
        },
        options,
    )
    return ExitCode.OK


def _config(options: argparse.Namespace) -> int:
    _answer({"channels": [], "channel_priority": "strict", "pkgs_dirs": _pkgs_dirs()}, options)
    return ExitCode.OK


def _pkgs_dirs() -> list[str]:
    chosen = os.environ.get("CONDA_PKGS_DIRS", "")
    from envkit import fetch

    return [folder for folder in chosen.split(",") if folder] or [str(fetch.package_cache(paths.cache()))]


def _answer(content: Mapping[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        _write(json.dumps({"success": True, **content}, indent=2))
        return
    for key, value in content.items():
        if key != "actions":
            _write(f"{key}: {value}")
    for one in content.get("actions", {}).get("LINK", ()):
        _write(f"  {one['name']} {one['version']} {one['build_string']}")


def _tell(problem: Error, as_json: bool) -> None:
    """Say what went wrong; that nobody can hear it changes nothing."""
    text = str(problem) if not problem.hint else f"{problem}\n{problem.hint}"
    answer = {"success": False, "error": text, "message": text, "exception_name": type(problem).__name__}
    with suppress(OSError):
        if as_json:
            _write(json.dumps(answer, indent=2))
        else:
            _note(f"envkit-conda: {text}")


def _write(text: str) -> None:
    if sys.stdout is not None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _note(text: str) -> None:
    if sys.stderr is not None:  # it is None where the caller closed it
        with suppress(OSError):
            sys.stderr.write(f"{text}\n")


class _Stderr(Observer):
    def note(self, text: str) -> None:
        _note(text)
