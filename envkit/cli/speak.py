"""What several verbs say of an environment, for people and for programs."""

from __future__ import annotations

import shlex
from typing import Any

from envkit import paths
from envkit.cli.invocation import ourselves, shell_in_use
from envkit.model import Environment
from envkit.report import to_json
from envkit.up import Provisioned

__all__ = ["activation_line", "provisioned_data"]


def activation_line(environment: Environment) -> str:
    """The line to paste into a shell to enter an environment."""
    named = environment.prefix.parent == paths.environments()
    call = f"{ourselves()} activate {shlex.quote(environment.name if named else str(environment.prefix))}"
    return f"{call} | source" if shell_in_use() == "fish" else f'eval "$({call})"'


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
