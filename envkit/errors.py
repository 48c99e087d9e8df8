"""What can go wrong, as a message and a hint, with the exit code that says whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

__all__ = ["Error", "ExitCode", "Findings", "InputError"]


class ExitCode(IntEnum):
    """The exit codes of every command, as the README documents them."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    ENVIRONMENT = 3
    BUG = 70
    CHILD_NOT_RUN = 125
    INTERRUPTED = 130


class Error(Exception):
    """An expected failure: the environment, the network or the disk did not allow it (exit 3).

    `message` says what is wrong, `hint` names the command to run or the line to change. Both are
    already in the user's language.
    """

    code = ExitCode.ENVIRONMENT

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(Error):
    """Something the user wrote is wrong (exit 2): a file, with its line where there is one, or an argument.

    Shown as `path:line: message`.
    """

    code = ExitCode.USAGE

    def __init__(
        self, message: str, hint: str = "", *, path: Path | None = None, line: int | None = None
    ) -> None:
        super().__init__(message, hint)
        self.path = path
        self.line = line

    def __str__(self) -> str:
        if self.path is None:
            return self.message
        where = f"{self.path}:{self.line}" if self.line is not None else str(self.path)
        return f"{where}: {self.message}"


class Findings(Error):
    """The work was done and the answer is no (exit 1): an unsolvable spec, a stale lock.

    `details` is what `--json` shows beside the message.
    """

    code = ExitCode.FINDINGS

    def __init__(self, message: str, hint: str = "", *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, hint)
        self.details = dict(details or {})
