"""What several verbs say of an environment, for people and for programs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from envkit import paths
from envkit.model import Environment
from envkit.report import to_json
from envkit.up import Provisioned

__all__ = ["SHELLS", "activation_line", "provisioned_data", "shell_in_use"]

SHELLS = ("bash", "zsh", "fish", "posix")


def shell_in_use() -> str:
    """The user's login shell where it is one we know, else bash."""
    name = Path(os.environ.get("SHELL", "")).name
    return name if name in SHELLS else "posix" if name in ("sh", "dash", "ash", "ksh") else "bash"


def activation_line(environment: Environment) -> str:
    """The line to paste into a shell to enter an environment."""
    named = environment.prefix.parent == paths.environments()
    call = f"{_ourselves()} activate {shlex.quote(environment.name if named else str(environment.prefix))}"
    return f"{call} | source" if shell_in_use() == "fish" else f'eval "$({call})"'


def _ourselves() -> str:
    """How the user would call this program from here: its bare name where that finds it."""
    own = Path(sys.argv[0]).absolute()
    if own.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m envkit"
    found = shutil.which("envkit")
    if found and Path(found).resolve() == own.resolve():
        return "envkit"
    try:
        return shlex.quote(str(own.relative_to(Path.cwd())))
    except ValueError:
        return shlex.quote(str(own))


def provisioned_data(made: Provisioned) -> dict[str, Any]:
    """A Provisioned as JSON."""
    environment = made.environment
    return {
        "environment": environment.name,
        "prefix": str(environment.prefix),
        "variant": environment.asked.name if environment.asked else None,
        "reason": made.reason,
        "fallback": made.fallback,
        "installed": made.fresh,
        "stages": [
            {"name": stage.name, "text": stage.text, "seconds": round(stage.seconds, 3)}
            for stage in made.stages
        ],
        "report": to_json(made.report) if made.report else None,
        "activate": activation_line(environment),
    }
