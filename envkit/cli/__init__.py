"""The command line: one file a verb, loaded when it is asked for. Only this package prints and exits."""

from __future__ import annotations

import os
import sys

from envkit.cli.frame import execute

__all__ = ["main"]


def main() -> None:
    """Run `envkit` with the process's arguments and leave at once.

    py-rattler's runtime can crash an interpreter that shuts down in the ordinary way, after the work is
    done; so the streams are flushed and the process leaves without further ceremony.
    """
    code = execute(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 1
    os._exit(code)
