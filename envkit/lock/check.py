"""Whether a lock is still the one its variant asks for, told without solving and without a connection.

The digest in the head of a lock (`envkit.render.digest`) is over the rendered text, the channels and the
virtual packages. Neither envkit's version nor conda-lock's goes into it, so an upgrade makes no lock stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from envkit.errors import InputError
from envkit.files import read_text
from envkit.lock.head import read_head
from envkit.lock.place import lock_path
from envkit.messages import _
from envkit.model import Spec, Variant

if TYPE_CHECKING:
    from envkit.matrix import Matrix

__all__ = ["LockState", "State", "check"]

State = Literal["fresh", "stale", "missing", "unkept", "unrendered", "unreadable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LockState:
    """What became of one variant's lock.

    "unkept" is a variant without a lock of which the team keeps none. "unrendered" is a lock that fits beside
    an environment.yml that is not the template's. `reason` is one
    sentence, empty where all is well; `diff` is what changed in environment.yml, as a unified diff; `hint`
    names the command that mends it.
    """

    variant: Variant
    path: Path
    state: State
    reason: str = ""
    diff: str = ""
    hint: str = ""

    @property
    def fresh(self) -> bool:
        return self.state == "fresh"

    def to_json(self) -> dict[str, Any]:
        """The state as JSON: one row of `envkit lock --check --json`."""
        return {
            "variant": self.variant.name,
            "path": str(self.path),
            "state": self.state,
            "fresh": self.fresh,
            "reason": self.reason,
            "diff": self.diff,
            "hint": self.hint,
        }


def check(root: Path, matrix: Matrix, variant: Variant) -> LockState:
    """The state of the lock of `variant` in the project at `root`; milliseconds where it is fresh.

    Only the head of the lock is read. Raises InputError where the variant cannot be rendered at all.
    """
    from envkit.render import environment_file, render

    spec = render(matrix, variant)
    listed = matrix.lists(variant)
    path = lock_path(root, variant, listed=listed)
    to_lock = _("run `envkit lock {name}` and review what changes").format(name=variant.name)
    if not path.exists():
        return LockState(
            variant=variant,
            path=path,
            state="missing" if matrix.commits(variant) else "unkept",
            reason=_("there is no lock yet"),
            hint=_("run `envkit lock {name}`").format(name=variant.name),
        )
    try:
        head = read_head(path)
    except InputError as problem:
        line = "" if problem.line is None else _("line {line}: ").format(line=problem.line)
        return LockState(
            variant=variant, path=path, state="unreadable", reason=line + problem.message, hint=problem.hint
        )
    file = environment_file(root, variant) if listed else None
    if head.digest != spec.digest:
        from envkit.lock.cause import cause

        reason, changed = cause(root, matrix, spec, head, file)
        return LockState(variant=variant, path=path, state="stale", reason=reason, diff=changed, hint=to_lock)
    if file is not None and (unlike := _unlike(file, spec)):
        return LockState(
            variant=variant,
            path=path,
            state="unrendered",
            reason=unlike[0],
            diff=unlike[1],
            hint=_("run `envkit render {name}`").format(name=variant.name),
        )
    return LockState(variant=variant, path=path, state="fresh")


def _unlike(file: Path, spec: Spec) -> tuple[str, str] | None:
    """Why the file is not the rendering, and how it differs; None where it is."""
    from envkit.lock.cause import text_diff

    if not file.exists():
        return _("{file} is missing").format(file=file.name), ""
    try:
        text = read_text(file)
    except InputError as problem:
        return str(problem), ""
    if text == spec.text:
        return None
    changed = text_diff(text, spec.text, _("on disk"))
    if not changed:
        return _("{file} differs from its rendering in line ends only").format(file=file.name), ""
    return _("{file} is not what the matrix renders").format(file=file.name), changed
