"""The pip section of a lock: installed by the staged pip, hashes required, shebangs for the final prefix."""

from __future__ import annotations

import base64
import csv
import ctypes
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from envkit import paths
from envkit.errors import Error
from envkit.messages import _
from envkit.model import Package
from envkit.progress import Observer

__all__ = ["distributions", "install_wheels", "shebang"]

_PR_SET_PDEATHSIG = 1
_SHEBANG_LIMIT = 127  # BINPRM_BUF_SIZE of kernels before 5.1, less the newline
_SHOWN_LINES = 4
# What would send the files elsewhere, or make pip refuse to work outside a virtual environment.
_DROPPED = (
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "PYTHONHOME",
    "PYTHONPATH",
)
_OPTIONS = (
    "--no-index", "--no-deps", "--require-hashes", "--no-compile", "--no-user", "--no-input",
    "--no-warn-script-location", "--disable-pip-version-check", "--progress-bar=off",
    "--root-user-action=ignore",
)  # fmt: skip


def install_wheels(
    packages: Sequence[Package],
    files: Mapping[str, Path],
    stage: Path,
    final: Path,
    *,
    cache: Path,
    observer: Observer,
) -> None:
    """Install `packages` into the staged environment, from `files` by sha256; pip opens no connection.

    One that comes as source is built with what the environment has. Each is recorded with its URL in the
    lock, so that it is the same bytes wherever the file came from. Raises Error with pip's own words.
    """
    if not packages:
        return
    task = _("install the pip section")
    observer.start(task, len(packages), _("packages"))
    try:
        before = set(distributions(stage))
        _run_pip(packages, files, stage, cache)
        origins = {files[package.sha256].as_uri(): package for package in packages}
        for distribution in sorted(set(distributions(stage)) - before):
            _settle(distribution, stage, final, origins)
        observer.advance(task, len(packages))
    finally:
        observer.finish(task)


def distributions(prefix: Path) -> tuple[Path, ...]:
    """The `.dist-info` folders of a prefix."""
    return tuple(sorted(prefix.glob("lib/python3*/site-packages/*.dist-info")))


def shebang(executable: str) -> str:
    """The first line, or three lines where a kernel could not read it, of a Python script."""
    line = f"#!{executable}\n"
    if " " not in executable and len(line.encode()) <= _SHEBANG_LIMIT:
        return line
    # A shell starts Python; to Python the same lines are a string.
    return f"#!/bin/sh\n'''exec' \"{executable}\" \"$0\" \"$@\"\n' '''\n"


def _requirements(packages: Iterable[Package], files: Mapping[str, Path]) -> str:
    return "".join(
        f"{package.name} @ {files[package.sha256].as_uri()} --hash=sha256:{package.sha256}\n"
        for package in packages
    )


def _run_pip(packages: Sequence[Package], files: Mapping[str, Path], stage: Path, cache: Path) -> None:
    sources = [package.name for package in packages if files[package.sha256].suffix != ".whl"]
    options = [*_OPTIONS, "--no-build-isolation"] if sources else _OPTIONS
    environ = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    environ |= {
        "PATH": f"{stage / 'bin'}{os.pathsep}{environ.get('PATH', os.defpath)}",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_CACHE_DIR": str(cache / "pip"),
    }
    with tempfile.NamedTemporaryFile(
        "w", suffix=".txt", prefix=paths.scratch("pip"), encoding="utf-8"
    ) as file:
        file.write(_requirements(packages, files))
        file.flush()
        command = [str(stage / "bin" / "python"), "-m", "pip", "install", *options, "-r", file.name]
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False, preexec_fn=_dies_with_parent(),
        )  # fmt: skip
    if done.returncode != 0:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines
        raise Error(
            _("pip could not install the pip section of the lock: {reason}").format(
                reason=" ".join(errors[:_SHOWN_LINES]) or done.returncode
            ),
            _(
                "{names} come as source and are built with what the environment has: add setuptools to it, "
                "or choose releases with wheels"
            ).format(names=", ".join(sources))
            if sources
            else _("run the command again; if that does not help, make the lock again with `envkit lock`"),
        )


def _dies_with_parent() -> Callable[[], None]:
    """For a child that must not go on writing into a stage whose maker was killed."""
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _settle(distribution: Path, stage: Path, final: Path, origins: Mapping[str, Package]) -> None:
    """Make a distribution's scripts and origin those of the final prefix and of the lock, its RECORD too."""
    record = distribution / "RECORD"
    rows = list(csv.reader(io.StringIO(record.read_text(encoding="utf-8"), newline="")))
    changed = False
    for row in rows:
        file = Path(os.path.normpath(distribution.parent / row[0]))
        if file.parent == stage / "bin" and not file.is_symlink():
            raw = file.read_bytes()
            fixed = _with_final_shebang(raw, str(stage), str(final))
        elif file == distribution / "direct_url.json":
            raw = file.read_bytes()
            fixed = _with_locked_origin(raw, origins)
        else:
            continue
        if fixed != raw:
            file.write_bytes(fixed)
            digest = base64.urlsafe_b64encode(hashlib.sha256(fixed).digest()).rstrip(b"=").decode()
            row[1:] = [f"sha256={digest}", str(len(fixed))]
            changed = True
    if changed:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        record.write_text(text.getvalue(), encoding="utf-8")


def _with_locked_origin(raw: bytes, origins: Mapping[str, Package]) -> bytes:
    """pip's note of where a distribution came from (PEP 610), naming the lock's URL, not our cache."""
    package = origins.get(json.loads(raw).get("url"))
    if package is None:
        return raw
    digest = package.sha256
    archive = {"hash": f"sha256={digest}", "hashes": {"sha256": digest}}
    note = {"archive_info": archive, "url": package.url.split("#", 1)[0]}
    return json.dumps(note, sort_keys=True).encode()


def _with_final_shebang(raw: bytes, stage: str, final: str) -> bytes:
    lines = raw.split(b"\n", 3)
    trampoline = lines[0] == b"#!/bin/sh" and len(lines) > 3 and lines[1].startswith(b"'''exec'")
    head = b"\n".join(lines[: 3 if trampoline else 1])
    found = re.search(re.escape(os.fsencode(stage)) + rb'(/bin/[^\s"]+)', head)
    if not raw.startswith(b"#!") or not found:
        return raw
    return os.fsencode(shebang(final + os.fsdecode(found.group(1)))) + raw[len(head) + 1 :]
