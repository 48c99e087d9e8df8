"""What envkit knows about a prefix: JSON in `conda-meta/envkit`, written last of all.

The name has no `.json` ending because conda reads every `conda-meta/*.json` as a package.
"""

from __future__ import annotations

import json
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from envkit.errors import Error
from envkit.files import parse_json
from envkit.messages import _
from envkit.model import Variant

__all__ = ["Marker", "lock_copy", "path", "read", "write"]

_SCHEMA = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """`packages` counts the conda and pip packages; `lock_sha256` is over the bytes of the lock file."""

    name: str
    platform: str
    packages: int
    lock_sha256: str
    lock_digest: str | None = None
    variant: Variant | None = None


def path(prefix: Path) -> Path:
    """The marker file of a prefix."""
    return prefix / "conda-meta" / "envkit"


def lock_copy(prefix: Path) -> Path:
    """The lock that the environment was made from, byte for byte; not there in those of older versions."""
    return prefix / "conda-meta" / "envkit-lock.yml"


def write(prefix: Path, marker: Marker) -> None:
    """Write the marker of a prefix that is otherwise complete; OSError where that fails."""
    document = {"schema": _SCHEMA, **asdict(marker)}
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    path(prefix).write_text(text, encoding="utf-8")


def read(prefix: Path) -> Marker | None:
    """The marker of a prefix, None where there is none; Error for one that cannot be understood."""
    place = path(prefix)
    try:
        if not stat.S_ISREG(place.stat().st_mode):  # reading a pipe would never end
            raise ValueError(_("it is no plain file"))
        document = parse_json(place.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.pop("schema", None) != _SCHEMA:
            raise ValueError(_("another version of envkit wrote it"))
        return _parse(document)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        raise Error(
            _("the record of the environment {prefix} cannot be read: {reason}").format(
                prefix=prefix, reason=problem
            ),
            _("make the environment again with `envkit up` or `envkit install`"),
        ) from None


def _parse(document: dict[str, Any]) -> Marker:
    axes: Any = document.pop("variant", None)
    if axes is not None:
        axes = {key: tuple(value) if isinstance(value, list) else value for key, value in axes.items()}
    return Marker(variant=None if axes is None else Variant(**axes), **document)
