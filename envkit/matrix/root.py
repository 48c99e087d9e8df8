"""Where the project is: the folder that holds environments/matrix.yaml."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from envkit.errors import InputError
from envkit.messages import _

__all__ = ["MATRIX", "find_root"]

MATRIX = Path("environments") / "matrix.yaml"


def find_root(start: Path | None = None) -> Path:
    """The project folder: `start` (by default the current one) or the nearest above it that has a matrix.

    Where there is none, the folder that ENVKIT_PROJECT names. Raises InputError where that has none either.
    """
    try:
        here = (start or Path.cwd()).absolute()
    except OSError:
        here = None
    for folder in [here, *here.parents] if here is not None else []:
        if _has_matrix(folder):
            return folder
    chosen = os.environ.get("ENVKIT_PROJECT")
    if chosen:
        folder = Path(chosen).expanduser().absolute()
        if _has_matrix(folder):
            return folder
        raise InputError(
            _("ENVKIT_PROJECT names {folder}, where there is no {matrix}").format(
                folder=folder, matrix=MATRIX
            ),
            _("point ENVKIT_PROJECT at the folder that holds environments/"),
        )
    raise InputError(
        _("there is no {matrix} in {folder} or above it").format(
            matrix=MATRIX, folder=here or _("the current folder (which is gone)")
        ),
        _("run envkit inside the project, or set ENVKIT_PROJECT to its folder"),
    )


def _has_matrix(folder: Path) -> bool:
    try:
        return stat.S_ISREG((folder / MATRIX).stat().st_mode)
    except PermissionError as problem:
        inside = (folder / MATRIX).parent
        if not os.path.isdir(inside):  # noqa: PTH112 (that of Path raises)
            return False  # a folder above the project that others keep to themselves
        raise InputError(
            _("{folder} cannot be read: {reason}").format(folder=inside, reason=problem.strerror),
            _("allow it: chmod -R u+rX {folder}").format(folder=inside),
        ) from None
    except OSError:
        return False
