"""Run by tests in a process of its own: install a pickled (lock, prefix, cache, mirror); notes to stdout."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from envkit import fetch
from envkit.errors import Error
from envkit.install import install
from envkit.progress import Observer


class Printer(Observer):
    def note(self, text: str) -> None:
        print(text, flush=True)


def main() -> int:
    lock, prefix, cache, mirror = pickle.loads(Path(sys.argv[1]).read_bytes())
    try:
        print("begin", flush=True)
        install(
            lock, prefix, name="tiny", variant=None, cache=cache, observer=Printer(),
            routes=fetch.routes(mirror, only=mirror != "official"),
        )  # fmt: skip
    except Error as problem:
        print(f"{problem}\n{problem.hint}", flush=True)
        return int(problem.code)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
