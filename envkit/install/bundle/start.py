"""Runs envkit from the wheels of an unpacked bundle: nothing is installed, nothing stays behind.

`install.sh` starts this file with any Python from 3.10 on; it has the standard library alone. Whoever runs it
trusts the bundle: hashes that lie beside what they describe tell damage, not malice.
"""

# ruff: noqa: E402 (a Ctrl-C may come while the imports are under way)
from __future__ import annotations

import signal

# Those that somebody who started this wants to be deaf to (nohup) stay so.
STOPS = [
    number
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if signal.getsignal(number) is not signal.SIG_IGN
]
for number in STOPS:
    signal.signal(number, signal.SIG_DFL)  # nothing is there to clean up yet

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

WHEEL = re.compile(
    r"envkit-wheels/[^-/]+-[^-/]+(?:-\d[^-/]*)?-(?P<python>[^-/]+)-(?P<abi>[^-/]+)-[^-/]+\.whl"
)
TAG = re.compile(r"(?P<kind>cp|py)(?P<major>\d)(?P<minor>\d*)")
MACHINE = 3
"""envkit's exit code for what the machine does not allow."""

ENVKIT = """\
import signal

if (told := signal.getsignal(signal.SIGINT)) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
from envkit.cli import main

signal.signal(signal.SIGINT, told)
main()
"""
"""How envkit is started: a Ctrl-C before it can answer one ends it without words."""


class Problem(Exception):
    """What is wrong, and what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def main() -> int:
    """Unpack the wheels, run envkit, clean up; its exit code."""
    bundle = Path(__file__).absolute().parent.parent
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    for number in STOPS:
        signal.signal(number, leave)
    try:
        with tempfile.TemporaryDirectory(prefix=f"envkit-bundle-{os.getpid()}-") as folder:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)  # from here on the folder goes whatever comes
            for wheel in fitting(bundle):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(folder)
            Path(folder, "__main__.py").write_text(ENVKIT, encoding="utf-8")
            return run(command(sys.argv[1:], bundle), folder, bundle)
    except Problem as problem:
        say(str(problem), problem.hint)
    except (OSError, zipfile.BadZipFile) as problem:
        say(
            f"the wheels of the bundle cannot be unpacked: {problem}",
            "free some space, or set TMPDIR elsewhere",
        )
    return MACHINE


def command(arguments: list[str], bundle: Path) -> list[str]:
    """What envkit is asked for."""
    if arguments[:1] == ["--envkit"]:
        return arguments[1:]
    prefix = os.path.abspath(arguments[0])  # noqa: PTH100 (a name with a leading dash becomes a path)
    return ["install", f"--from={bundle}", "--offline", f"--prefix={prefix}", *arguments[1:]]


def fitting(bundle: Path) -> Iterator[Path]:
    """The wheels for the Python that runs this, whole ones."""
    here = sys.version_info[:2]
    again = f"unpack the bundle again: tar -xf BUNDLE -C {shlex.quote(str(bundle))}"
    try:
        contents = json.loads((bundle / "bundle.json").read_bytes())
        rows = {str(row["path"]): row for row in contents["members"]}
        pythons = [str(version) for version in contents["pythons"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Problem(f"{bundle / 'bundle.json'} is damaged", again) from None
    if "{}.{}".format(*here) not in pythons:
        raise Problem(
            "the bundle has no wheels for Python {}.{}".format(*here),
            f"name another one ({', '.join(pythons)}): PYTHON=/path/to/python3 sh install.sh ...",
        )
    for path, row in sorted(rows.items()):
        match = WHEEL.fullmatch(path)
        if match is None or not any(fits(tag, match["abi"], here) for tag in match["python"].split(".")):
            continue
        raw = (bundle / path).read_bytes()
        if len(raw) != row.get("size") or hashlib.sha256(raw).hexdigest() != row.get("sha256"):
            raise Problem(f"{bundle / path} is damaged", again)
        yield bundle / path


def fits(tag: str, abi: str, here: tuple[int, ...]) -> bool:
    """Whether a wheel is for a version of Python: https://packaging.python.org/en/latest/specifications/."""
    match = TAG.fullmatch(tag)
    if match is None:
        return False
    version = (int(match["major"]), int(match["minor"] or 0))
    if match["kind"] == "py":
        return abi == "none" and version[0] == here[0] and version <= here
    return version <= here if abi == "abi3" else version == here


def run(arguments: list[str], folder: str, bundle: Path) -> int:
    """envkit to its end; what would end this process is passed on to it."""
    again = f"sh {shlex.quote(str(bundle / 'install.sh'))} --envkit"
    environ = {**os.environ, "ENVKIT_CALLED": again}
    # By its folder: `-m` would let what lies in the current folder stand in for a module.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", folder, *arguments],
        env=environ,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS),
    )

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT:  # a terminal tells envkit itself
            process.send_signal(number)

    for number in STOPS:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    code = process.wait()
    return 128 - code if code < 0 else code


def leave(number: int, _frame: FrameType | None) -> None:
    """End, and clean up first, whatever else comes."""
    for other in STOPS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def say(message: str, hint: str) -> None:
    """An error as envkit tells it."""
    sys.stderr.write(f"error: {message}\nhint: {hint}\n")


if __name__ == "__main__":
    sys.exit(main())
