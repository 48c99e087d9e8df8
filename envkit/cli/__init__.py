"""The command line: one file a verb, loaded when it is asked for. Only this package prints and exits."""

from __future__ import annotations

import os
import sys

from envkit.cli import streams
from envkit.errors import ExitCode

__all__ = ["main"]


def main() -> None:
    """Run `envkit` with the process's arguments and leave at once.

    py-rattler's runtime can crash an interpreter that shuts down in the ordinary way, after the work is
    done; so the streams are flushed and the process leaves without further ceremony.
    """
    try:
        streams.prepare()
        # Imported here: a Ctrl-C may come that early too.
        from envkit.cli.frame import execute

        code = execute(sys.argv[1:])
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    if not streams.flush():
        code = code or ExitCode.ENVIRONMENT
    os._exit(code)
