"""The pip section of a lock: installed by the staged pip, hashes required, shebangs for the final prefix."""

from __future__ import annotations

import base64
import csv
import ctypes
import hashlib
import io
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from envkit.channels import is_pypi_file
from envkit.errors import Error, InputError
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
    "--no-deps", "--require-hashes", "--no-compile", "--no-user", "--no-input", "--no-warn-script-location",
    "--disable-pip-version-check", "--progress-bar=off", "--root-user-action=ignore",
)  # fmt: skip


def install_wheels(
    packages: Sequence[Package], stage: Path, final: Path, *, cache: Path, observer: Observer
) -> None:
    """Install `packages` into the staged environment, from the lock's own URLs.

    pip runs with the user's configuration (proxies, certificates) and keeps what it fetches under
    `cache`. Where that names an index in the place of the public one, the public one's files are asked for
    there first. Raises Error with pip's own words.
    """
    if not packages:
        return
    task = _("install the pip section")
    observer.start(task, len(packages), _("packages"))
    try:
        before = set(distributions(stage))
        *elsewhere, own = _requirements(packages)
        if not any(_installed(requirements, stage, cache) for requirements in elsewhere):
            _run_pip(own, stage, cache)
        for distribution in sorted(set(distributions(stage)) - before):
            _rewrite_shebangs(distribution, stage, final)
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


def _requirements(packages: Sequence[Package]) -> Iterator[str]:
    """What pip is told, the likeliest to be reached from here first, the lock's own URLs last."""
    from envkit.solve.pip_lines import configured_indexes

    own = {package.name: package.url.split("#", 1)[0] for package in packages}
    for name, url in own.items():
        if re.search(r"\s", url + name):
            raise InputError(
                _("the address of the pip package '{name}' has a blank in it").format(name=name),
                _("make the lock again with `envkit lock`"),
            )
    if any(map(is_pypi_file, own.values())) and not configured_indexes().default_index:
        yield "".join(
            _line(package, "" if is_pypi_file(package.url) else own[package.name]) for package in packages
        )
    yield "".join(_line(package, own[package.name]) for package in packages)


def _line(package: Package, url: str) -> str:
    """A requirement that one file alone meets, at `url` or at whichever index pip is configured for."""
    where = f" @ {url}" if url else f"=={package.version}"
    return f"{package.name}{where} --hash=sha256:{package.sha256}\n"


def _installed(requirements: str, stage: Path, cache: Path) -> bool:
    """Whether pip could do that; nothing is there of what it could not."""
    try:
        _run_pip(requirements, stage, cache)
    except Error:
        return False
    return True


def _run_pip(requirements: str, stage: Path, cache: Path) -> None:
    environ = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    environ |= {
        "PATH": f"{stage / 'bin'}{os.pathsep}{environ.get('PATH', os.defpath)}",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_CACHE_DIR": str(cache / "pip"),
    }
    with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="envkit-pip-", encoding="utf-8") as file:
        file.write(requirements)
        file.flush()
        command = [str(stage / "bin" / "python"), "-m", "pip", "install", *_OPTIONS, "-r", file.name]
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
            _("check the address and the hash in the lock, then run the command again"),
        )


def _dies_with_parent() -> Callable[[], None]:
    """For a child that must not go on writing into a stage whose maker was killed."""
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _rewrite_shebangs(distribution: Path, stage: Path, final: Path) -> None:
    """Point a distribution's scripts at the final prefix, and say so in its RECORD."""
    record = distribution / "RECORD"
    rows = list(csv.reader(io.StringIO(record.read_text(encoding="utf-8"), newline="")))
    changed = False
    for row in rows:
        script = Path(os.path.normpath(distribution.parent / row[0]))
        if script.parent != stage / "bin" or script.is_symlink():
            continue
        raw = script.read_bytes()
        fixed = _with_final_shebang(raw, str(stage), str(final))
        if fixed != raw:
            script.write_bytes(fixed)
            digest = base64.urlsafe_b64encode(hashlib.sha256(fixed).digest()).rstrip(b"=").decode()
            row[1:] = [f"sha256={digest}", str(len(fixed))]
            changed = True
    if changed:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        record.write_text(text.getvalue(), encoding="utf-8")


def _with_final_shebang(raw: bytes, stage: str, final: str) -> bytes:
    lines = raw.split(b"\n", 3)
    trampoline = lines[0] == b"#!/bin/sh" and len(lines) > 3 and lines[1].startswith(b"'''exec'")
    head = b"\n".join(lines[: 3 if trampoline else 1])
    found = re.search(re.escape(os.fsencode(stage)) + rb'(/bin/[^\s"]+)', head)
    if not raw.startswith(b"#!") or not found:
        return raw
    return os.fsencode(shebang(final + os.fsdecode(found.group(1)))) + raw[len(head) + 1 :]
