"""Where jobs run: one interpreter under test, its environment, and what is to be cleared away afterwards."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import IO, Any

from envkit.checks.groups import Groups
from envkit.checks.records import Records

__all__ = ["Seat", "Started", "output_of"]

_TAIL = 6000


@dataclass(kw_only=True)
class Seat:
    """The interpreter `python`, run with `variables`; output goes to files in `folder`.

    `token` is in the name of every semaphore that a job of this run makes.
    """

    python: Path
    variables: Mapping[str, str]
    folder: Path
    groups: Groups = field(default_factory=Groups)
    token: str = field(default_factory=lambda: f"envkit-{secrets.token_hex(4)}")
    memory_groups: tuple[Path, ...] = ()
    owned: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, control: Mapping[str, Any], name: str, *, stdin: int) -> Started:
        """Start the probe. Raises OSError where the interpreter cannot be run."""
        reading, writing = os.pipe()
        try:
            stdout, stderr = (self.folder / f"{name}.{ending}" for ending in ("out", "err"))
            with stdout.open("wb") as out, stderr.open("wb") as err:
                process = subprocess.Popen(
                    [os.fspath(self.python), _probe(), json.dumps({"fd": writing, **control})],
                    stdin=stdin,
                    stdout=out,
                    stderr=err,
                    env=dict(self.variables),
                    pass_fds=(writing,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self.groups.add(process.pid)
        return Started(
            process=process,
            records=Records(reading, alive=lambda: process.poll() is None),
            since=time.monotonic(),
        )

    def own(self, paths: Iterable[str]) -> None:
        with self._lock:
            self.owned += paths

    def oom_kills(self) -> int:
        """How many processes the kernel has killed for memory in this run's memory cgroup, ever."""
        for folder in self.memory_groups:
            for name in ("memory.events", "memory.oom_control"):
                try:
                    text = (folder / name).read_text()
                except OSError:
                    continue
                found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
                if found:
                    return int(found[1])
        return 0


@dataclass(kw_only=True)
class Started:
    """A running probe."""

    process: subprocess.Popen[bytes]
    records: Records
    since: float

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin


def output_of(folder: Path, name: str) -> str:
    """The end of what a job wrote to stderr, then of what it wrote to stdout."""
    return "\n".join(
        text for ending in ("err", "out") if (text := _tail(folder / f"{name}.{ending}").strip())
    )


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _probe() -> str:
    return os.fspath(Path(str(resources.files("envkit"))) / "probe" / "main.py")
