"""What conda and mamba look for: a history in the prefix, and its line in the list of environments."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from envkit.errors import Error
from envkit.files import write_atomically
from envkit.model import Package

__all__ = ["history", "register", "settle_records", "stem", "unregister"]

# conda takes any text between the arrows. No time stamp: equal locks make equal prefixes.
_HEADER = "==> 1980-01-01 00:00:00 <==\n# envkit writes no dates; the file's own says when it was made\n"
_CHANNELS = {"https://conda.anaconda.org/": "", "https://repo.anaconda.com/pkgs/": "pkgs/"}
# Both are optional to conda: conda/models/records.py.
_PLACE_IN_CACHE = re.compile(rb'(?m)^  "extracted_package_dir": ".*",\n|,\n  "link": {[^{}]*}')
_COMMANDS = ("conda", "mamba", "micromamba")


def stem(package: Package) -> str:
    """The archive's name without its ending, decoded: what folders and records are named after."""
    return unquote(package.file_name).removesuffix(".conda").removesuffix(".tar.bz2")


def history(packages: Iterable[Package]) -> str:
    """The text of `conda-meta/history` for a prefix made in one step.

    Source of the format: conda/history.py, https://github.com/conda/conda.
    """
    lines = sorted(f"+{_channel(package)}/{package.subdir}::{stem(package)}\n" for package in packages)
    return _HEADER + "# cmd: envkit install\n" + "".join(lines)


def settle_records(folder: Path) -> None:
    """Make rattler's records, private and naming our cache, those of the packages alone.

    Who may read the prefix may list it, and the same lock makes the same bytes whatever the cache is called.
    """
    readable = folder.parent.stat().st_mode & 0o666
    for record in folder.glob("*.json"):
        record.write_bytes(_PLACE_IN_CACHE.sub(b"", record.read_bytes()))
        record.chmod(readable)


def _channel(package: Package) -> str:
    address = package.url.rsplit("/", 2)[0]
    for start, name in _CHANNELS.items():
        if address.startswith(start):
            return name + address.removeprefix(start)
    return address


def register(prefix: Path) -> None:
    """Let `conda env list` show the prefix, where conda was ever used; never fails."""
    listing = _listing()
    try:
        known = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
        used = listing.exists() or "CONDA_EXE" in os.environ or any(map(shutil.which, _COMMANDS))
        if used and str(prefix) not in known:
            write_atomically(listing, "".join(f"{line}\n" for line in [*known, str(prefix)]))
    except (Error, OSError, RuntimeError, ValueError):
        return


def unregister(prefix: Path) -> None:
    """Take the prefix out of conda's list of environments; never fails."""
    listing = _listing()
    try:
        known = listing.read_text(encoding="utf-8").splitlines()
        if str(prefix) in known:
            write_atomically(listing, "".join(f"{line}\n" for line in known if line != str(prefix)))
    except (Error, OSError, RuntimeError, ValueError):
        return


def _listing() -> Path:
    return Path.home() / ".conda" / "environments.txt"
