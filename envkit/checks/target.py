"""What is to be proven: an interpreter, and what was asked of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.errors import Error
from envkit.messages import _
from envkit.model import CPU, Environment

__all__ = ["UNKNOWN", "Target"]

UNKNOWN: Final = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """An interpreter to validate.

    `cuda` is the CUDA version that was asked for ("11.8"), None where a CPU build was, and UNKNOWN where
    nobody said: then whatever torch was built for is held to be what was wanted.
    """

    python: Path
    environment: Environment | None = None
    cuda: str | None = UNKNOWN

    @classmethod
    def of(cls, environment: Environment) -> Target:
        """An installed environment, held to what it was installed for."""
        asked = environment.asked
        return cls(
            python=environment.python, environment=environment, cuda=UNKNOWN if asked is None else asked.cuda
        )

    @classmethod
    def at(cls, python: Path, accelerator: str | None = None) -> Target:
        """Any interpreter. `accelerator` is what was asked of it: "cpu", a CUDA version, or None for nothing.

        Links in the path are kept: the `python` of a virtual environment is one.
        """
        cuda = {None: UNKNOWN, CPU: None}.get(accelerator, accelerator)
        return cls(python=python.absolute(), cuda=cuda)

    @property
    def subject(self) -> str:
        return str(self.python) if self.environment is None else self.environment.name

    @property
    def python_version(self) -> str | None:
        """The minor version that was asked for ("3.11"), if that is known."""
        asked = None if self.environment is None else self.environment.asked
        return None if asked is None else asked.python

    @property
    def renewal(self) -> str:
        """What to run to make this environment again.

        Its own copy of the lock mends it whatever it was made from: `install` knows no name of a stranger's
        lock or of the wheel channel, and finds an environment current that only files were broken in.
        """
        if self.environment is None:
            return _("check the path, or name an environment: `envkit variants` lists them")
        from envkit.install.drift.subject import Subject

        return Subject(environment=self.environment).repair

    def variables(self) -> tuple[dict[str, str], str]:
        """The variables to run it in, and why they are not the environment's own ("" if they are)."""
        if self.environment is None:
            return dict(os.environ), ""
        from envkit.install import environment_variables

        try:
            given: Mapping[str, str] = environment_variables(self.environment)
        except Error as problem:
            return dict(os.environ), problem.message
        return dict(given), ""
