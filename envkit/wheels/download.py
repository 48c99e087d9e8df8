"""Brings the wheels of a plan to this machine's disk, through pip, each checked against its sha256."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from envkit.errors import Error
from envkit.messages import _
from envkit.progress import Observer
from envkit.wheels import pip
from envkit.wheels.plan import Wheel

__all__ = ["at_hand", "download"]

_FETCHED = re.compile(r"\s*(?:Downloading|Using cached) (?P<name>\S+\.whl)\b(?!\.metadata)")


def at_hand(wheel: Wheel) -> Path | None:
    """The wheel's file where pip found it on disk; None for one to download, Error where it has gone."""
    path = wheel.path
    if path is not None and not path.is_file():
        raise Error(
            _("pip chose {path}, which is no longer there").format(path=path), _("run the same command again")
        )
    return path


def download(
    wheels: Sequence[Wheel], folder: Path, *, options: Sequence[str], observer: Observer
) -> dict[str, Path]:
    """The files, by the wheels' URLs, downloaded into `folder` in one run of pip.

    pip chooses by name, version and hash under the user's configuration, so that its indexes, mirrors and
    credentials are those of the plan.
    All of `wheels` have a hash, which is demanded, or none has.
    """
    hashed = all(wheel.sha256 for wheel in wheels)
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(f"{_pinned(wheel)}\n" for wheel in wheels), encoding="utf-8")
    known = {wheel.file_name: wheel.size or 0 for wheel in wheels}
    task = _("downloading wheels")
    observer.start(task, sum(known.values()), "B")

    def heard(line: str) -> None:
        found = _FETCHED.match(line)
        if found:
            observer.advance(task, known.pop(unquote(found["name"]).rsplit("/", 1)[-1], 0))

    try:
        arguments = ["download", "--no-deps", "--only-binary", ":all:"]
        arguments += ["--require-hashes"] if hashed else []
        arguments += ["--dest", str(folder), *options, "--requirement", str(requirements)]
        # What pip has not finished lies beside, and not in /tmp, which may be smaller than one CUDA wheel.
        pip.run(arguments, heard=heard, temporary=folder)
    finally:
        observer.finish(task)
    return {wheel.url: _found(folder, wheel) for wheel in wheels}


def _pinned(wheel: Wheel) -> str:
    what = f"{wheel.name} @ {wheel.url}" if wheel.direct else f"{wheel.name}=={wheel.version}"
    return f"{what} --hash=sha256:{wheel.sha256}" if wheel.sha256 else what


def _found(folder: Path, wheel: Wheel) -> Path:
    path = folder / wheel.file_name
    if not path.is_file():
        raise Error(
            _("pip downloaded no {name}").format(name=wheel.file_name), _("run the same command again")
        )
    return path
