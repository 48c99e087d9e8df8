"""The text that a shell evaluates to activate an environment: `eval "$(envkit activate NAME)"`.

It defines `envkit_deactivate`, which puts PATH and every variable back. Activating again deactivates
first. Nothing here needs conda, and every value is quoted by the rules of its shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from envkit.errors import InputError
from envkit.install.variables import scripts, settings
from envkit.messages import _
from envkit.model import Environment

__all__ = ["SHELLS", "activation"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Steps:
    """What to do, in no shell's language yet. `variables` maps to None what is to be hidden."""

    binaries: str
    prompt: str
    variables: Mapping[str, str | None]
    on: tuple[Path, ...]
    off: tuple[Path, ...]


def activation(environment: Environment, shell: str) -> str:
    """The activation text for a shell of SHELLS; InputError for another one.

    Works under `set -u` and `set -e`; changes the prompt of interactive shells only.
    """
    if shell not in SHELLS:
        raise InputError(
            _("no activation for the shell '{shell}'").format(shell=shell),
            _("choose one of: {shells}").format(shells=", ".join(SHELLS)),
        )
    ending = ".fish" if shell == "fish" else ".sh"
    # Prompts are expanded again by their shells, so only plain characters go there.
    name = re.sub(r"[^\w.+=-]", "_", environment.name)
    steps = _Steps(
        binaries=str(environment.prefix / "bin"),
        prompt=f"({name}) ",
        variables={**settings(environment), "CONDA_PROMPT_MODIFIER": f"({name}) "},
        on=scripts(environment, "activate", ending),
        off=scripts(environment, "deactivate", ending)[::-1],
    )
    return "\n".join(SHELLS[shell](steps)) + "\n"


def _posix(steps: _Steps) -> Iterable[str]:
    """For bash, zsh, dash and their kin. `${NAME+x}` asks without offending `set -u`."""
    quote = shlex.quote
    yield "if command -v envkit_deactivate >/dev/null 2>&1; then envkit_deactivate; fi"
    # Scripts of packages are not written for `set -u` and `set -e`.
    yield "_envkit_source() {"
    yield '    if [ -r "$1" ]; then'
    yield '        case $- in *u*) set +u; . "$1" || :; set -u ;; *) . "$1" || : ;; esac'
    yield "    fi"
    yield "}"
    yield "envkit_deactivate() {"
    yield from (f"    _envkit_source {quote(str(script))}" for script in steps.off)
    for name in ("PATH", *steps.variables):
        old = f"_ENVKIT_OLD_{name}"
        yield f'    if [ -n "${{{old}+x}}" ]; then export {name}="${old}"; unset {old}; else unset {name}; fi'
    yield '    if [ -n "${_ENVKIT_OLD_PS1+x}" ]; then PS1="$_ENVKIT_OLD_PS1"; unset _ENVKIT_OLD_PS1; fi'
    yield "    unset -f envkit_deactivate _envkit_source"
    yield "}"
    for name in ("PATH", *steps.variables):
        yield f'unset _ENVKIT_OLD_{name}; if [ -n "${{{name}+x}}" ]; then _ENVKIT_OLD_{name}="${name}"; fi'
    yield f'export PATH={quote(steps.binaries)}"${{PATH:+:$PATH}}"'
    for name, value in steps.variables.items():
        yield f"unset {name}" if value is None else f"export {name}={quote(value)}"
    yield from (f"_envkit_source {quote(str(script))}" for script in steps.on)
    yield "case $- in *i*)"
    yield f'    if [ -n "${{PS1+x}}" ]; then _ENVKIT_OLD_PS1="$PS1"; PS1={quote(steps.prompt)}"$PS1"; fi ;;'
    yield "esac"


def _fish(steps: _Steps) -> Iterable[str]:
    yield "if functions -q envkit_deactivate; envkit_deactivate; end"
    yield "function envkit_deactivate"
    yield from (f"    if test -r {_quote_fish(s)}; source {_quote_fish(s)}; end" for s in map(str, steps.off))
    for name in ("PATH", *steps.variables):
        old = f"_envkit_old_{name}"
        yield f"    if set -q {old}; set -gx {name} ${old}; set -eg {old}; else; set -eg {name}; end"
    yield "    if functions -q _envkit_old_prompt"
    yield "        functions -e fish_prompt"
    yield "        functions -c _envkit_old_prompt fish_prompt"
    yield "        functions -e _envkit_old_prompt _envkit_status"
    yield "    end"
    yield "    functions -e envkit_deactivate"
    yield "end"
    for name in ("PATH", *steps.variables):
        yield f"if set -q {name}; set -g _envkit_old_{name} ${name}; end"
    yield f"set -gx PATH {_quote_fish(steps.binaries)} $PATH"
    for name, value in steps.variables.items():
        yield f"set -eg {name}" if value is None else f"set -gx {name} {_quote_fish(value)}"
    yield from (f"if test -r {_quote_fish(s)}; source {_quote_fish(s)}; end" for s in map(str, steps.on))
    yield "if status is-interactive; and functions -q fish_prompt"
    yield "    functions -c fish_prompt _envkit_old_prompt"
    yield "    function _envkit_status; return $argv[1]; end"
    yield "    function fish_prompt"
    yield "        set -l envkit_status $status"
    yield f"        printf '%s' {_quote_fish(steps.prompt)}"
    yield "        _envkit_status $envkit_status"
    yield "        _envkit_old_prompt"
    yield "    end"
    yield "end"


def _quote_fish(text: str) -> str:
    """Inside fish's single quotes only the backslash and the quote are special."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": _posix, "zsh": _posix, "fish": _fish, "posix": _posix}
