"""The variables of an environment: what it sets, what it hides, and what its activation scripts export."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from envkit.errors import Error
from envkit.files import parse_json, read_plain
from envkit.messages import _
from envkit.model import Environment

__all__ = ["environment_variables", "scripts", "settings"]

# Of other environments: whoever reads them would be led to the wrong interpreter.
_FOREIGN = ("CONDA_PROMPT_MODIFIER", "PYTHONHOME", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT")
_STACK = re.compile(r"CONDA_(PREFIX|STACKED)_\d+\Z")
# What a shell changes by itself, and what would make it run more than it is asked to.
_OF_THE_SHELL = ("_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV", "ENV")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_UNSET = "***unset***"  # conda/core/prefix_data.py: a variable that an environment hides
_SOURCE_ALL = 'exec 3>&1 1>&2; for _envkit; do . "$_envkit"; done; exec "$ENVKIT_ENV" -0 >&3'


def settings(environment: Environment) -> dict[str, str | None]:
    """The variables that the environment sets (None: hides), without PATH and activation scripts.

    Includes those of packages (`etc/conda/env_vars.d`) and of `conda env config vars` (`conda-meta/state`).
    Raises Error for a file of these that cannot be understood.
    """
    prefix = environment.prefix
    result: dict[str, str | None] = {
        **dict.fromkeys(_FOREIGN),
        "CONDA_DEFAULT_ENV": environment.name,
        "CONDA_PREFIX": str(prefix),
        "CONDA_SHLVL": "1",
        "PYTHONNOUSERSITE": "1",
    }
    for file in sorted((prefix / "etc" / "conda" / "env_vars.d").glob("*.json")):
        result |= _read_variables(file, nested=False)
    return result | _read_variables(prefix / "conda-meta" / "state", nested=True)


def scripts(environment: Environment, phase: str, ending: str) -> tuple[Path, ...]:
    """The scripts of a phase ("activate", "deactivate") for a kind of shell (".sh", ".fish"), in order."""
    folder = environment.prefix / "etc" / "conda" / f"{phase}.d"
    return tuple(sorted(folder.glob(f"*{ending}"), key=lambda path: path.name))


def environment_variables(environment: Environment, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The complete variables to run a program with inside the environment, made from `base` (os.environ).

    Those of other conda and virtual environments are gone, the environment's `bin` stands first in PATH,
    once, and its activation scripts had their say, under bash. Raises Error where a script ends the shell.
    """
    start = dict(os.environ if base is None else base)
    changes = settings(environment)
    others = {f"{start[name]}/bin" for name in ("CONDA_PREFIX", "VIRTUAL_ENV") if start.get(name)}
    ours = str(environment.prefix / "bin")
    entries = start.get("PATH", os.defpath).split(os.pathsep)
    result = {name: value for name, value in start.items() if name not in changes and not _STACK.match(name)}
    result |= {name: value for name, value in changes.items() if value is not None}
    result["PATH"] = os.pathsep.join([ours, *(entry for entry in entries if entry not in others | {ours})])
    activation = scripts(environment, "activate", ".sh")
    return _sourced(activation, result) if activation else result


def _sourced(activation: tuple[Path, ...], start: Mapping[str, str]) -> dict[str, str]:
    """`start` with what the scripts change in it."""
    shell = shutil.which("bash") or shutil.which("sh")
    lister = shutil.which("env")
    if shell is None or lister is None:
        raise Error(
            _("the environment has activation scripts and there is no shell to run them"),
            _("install bash"),
        )
    given = {name: value for name, value in start.items() if name not in _OF_THE_SHELL}
    done = subprocess.run(
        [shell, "-c", _SOURCE_ALL, "envkit", *map(str, activation)],
        env={**given, "ENVKIT_ENV": lister},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise Error(
            _("an activation script ended the shell: {reason}").format(
                reason=said[-1] if said else done.returncode
            ),
            _("the scripts are {scripts}").format(scripts=", ".join(map(str, activation))),
        )
    after = dict(_assignments(done.stdout))
    kept = {name: value for name, value in start.items() if name in _OF_THE_SHELL}
    return {name: value for name, value in after.items() if name not in (*_OF_THE_SHELL, "ENVKIT_ENV")} | kept


def _assignments(listing: bytes) -> Iterator[tuple[str, str]]:
    for item in listing.split(b"\0"):
        name, equals, value = item.partition(b"=")
        if equals:
            yield os.fsdecode(name), os.fsdecode(value)


def _read_variables(file: Path, *, nested: bool) -> dict[str, str | None]:
    try:
        document = parse_json(read_plain(file))
        variables = document.get("env_vars", {}) if nested else document
        pairs = {str(name): str(value) for name, value in variables.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as problem:
        raise Error(
            _("the variables in {path} cannot be read: {reason}").format(path=file, reason=problem),
            _("repair or delete the file, or make the environment again with `envkit install`"),
        ) from None
    unfit = sorted(name for name in pairs if not _VARIABLE.match(name))
    if unfit:
        raise Error(
            _("{path} sets '{name}', which is no name of a variable").format(path=file, name=unfit[0]),
            _("repair or delete the file"),
        )
    return {name: None if value == _UNSET else value for name, value in pairs.items()}
