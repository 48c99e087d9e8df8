"""The two sides of a comparison: what a word on the command line means, and the packages behind it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from envkit.channels import shown
from envkit.errors import Error, InputError
from envkit.lock import LOCK_NAME, lock_path, parse_lock, read_lock
from envkit.lock.committed import committed_bytes, committed_names, repository_top, revision_id
from envkit.lock.installed import installed_packages
from envkit.matrix import Axes, Matrix, find_root, read_matrix, select
from envkit.messages import _
from envkit.model import Package, Variant

__all__ = ["HEAD", "Side", "Sides"]

HEAD = "HEAD"
_ENVIRONMENT = "env:"
_ENDINGS = (".yml", ".yaml", ".lock")

SideKind = Literal["lock", "revision", "environment"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One side: `label` says what it is and where it was read. `platform` is an environment's own.

    `variant` and `file` are what the side is a state of, for the side that is compared with it by default.
    `short` is the label, or the name in it, without any path.
    """

    kind: SideKind
    label: str
    packages: tuple[Package, ...]
    platform: str | None = None
    variant: str | None = None
    file: Path | None = None
    short: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "label": self.label, "packages": len(self.packages)}

    def on(self, platform: str) -> Side:
        """The side as far as it concerns one platform."""
        kept = tuple(package for package in self.packages if package.platform == platform)
        return replace(self, packages=kept)


class Sides:
    """Reads sides, in the project around the current folder where there is one."""

    @cached_property
    def project(self) -> tuple[Path, Matrix] | None:
        """The project and its matrix; None outside of one, where files can still be compared."""
        try:
            root = find_root()
        except InputError:
            return None
        return root, read_matrix(root / "environments" / "matrix.yaml")

    @property
    def folder(self) -> Path:
        return self.project[0] if self.project else Path.cwd()

    def read(self, word: str) -> Side:
        """What a word means, by the rules that `envkit diff --help` states."""
        if word.startswith(_ENVIRONMENT):
            return self.environment(word.removeprefix(_ENVIRONMENT))
        if "://" in word:
            raise InputError(
                _("{word} is an address; locks are compared as files").format(word=shown(word)),
                _("download it first, then give the file"),
            )
        if ":" in word and not Path(word).exists():
            revision, _colon, what = word.partition(":")
            return self.revision(revision, what)
        if _is_path(word):
            return self.path(Path(word).expanduser())
        return self._bare(word)

    def default_old(self, side: Side) -> Side:
        """What a single side is compared with: its committed state at HEAD, or nothing where it is new."""
        if side.variant is not None:
            return self.revision(HEAD, side.variant, missing_is_empty=True)
        if side.kind == "lock" and side.file is not None:
            raw = committed_bytes(side.file.parent, HEAD, f"./{side.file.name}")
            return self._committed(HEAD, str(side.file), raw, side.file.parent)
        raise InputError(
            _("{side} has no committed state to be compared with").format(side=side.label),
            _("name both sides: envkit diff A B"),
        )

    def default_new(self, revision: Side) -> Side:
        """What a single revision is compared with: the same lock as it lies on disk."""
        if revision.variant is not None:
            return self.variant(revision.variant)
        assert revision.file is not None
        return self.path(revision.file)

    def variant(self, name: str) -> Side:
        """The lock of a variant, as it lies on disk."""
        if self.project is None:
            find_root()  # says what is missing
            raise AssertionError
        root, matrix = self.project
        variant = select(matrix, Axes(name=name))
        return self._variant_lock(root, matrix, variant)

    def unchanged(self, variant: Variant, revision: str) -> bool:
        """Whether a listed variant's lock has the very bytes it was committed with, or never was there."""
        file = lock_path(self.folder, variant)
        raw = committed_bytes(self.folder, revision, f"./{file.relative_to(self.folder).as_posix()}")
        return raw == (file.read_bytes() if file.exists() else None)

    def on_disk(self, variant: Variant) -> Side:
        """The lock of a listed variant as it lies on disk; nothing where there is none."""
        assert self.project is not None
        root, matrix = self.project
        file = lock_path(root, variant)
        if not file.exists():
            label = _("nothing ({label} is not there)").format(label=_relative(file))
            return Side(kind="lock", label=label, packages=())
        return self._variant_lock(root, matrix, variant)

    def path(self, path: Path) -> Side:
        """A lock file, a folder that holds one, or the prefix of an environment."""
        if (path / "conda-meta").is_dir():
            return self.environment(str(path) if os.sep in str(path) else f"./{path}")
        file = path / LOCK_NAME if (path / LOCK_NAME).is_file() else path
        if path.is_dir() and file == path:
            raise InputError(
                _("this folder is no environment and holds no {name}").format(name=LOCK_NAME), path=path
            )
        return Side(
            kind="lock",
            label=str(file),
            packages=read_lock(file).packages,
            file=file.absolute(),
        )

    def environment(self, name_or_prefix: str) -> Side:
        """An installed environment, by its name or its prefix."""
        from envkit.install import read_environment
        from envkit.install.marker import read as read_marker

        environment = read_environment(name_or_prefix)
        written = read_marker(environment.prefix)
        packages = installed_packages(environment.prefix, written.platform if written else None)
        conda = sum(package.manager == "conda" for package in packages)
        return Side(
            kind="environment",
            label=_("environment {name} ({prefix}: {conda} conda packages, {pip} from pip)").format(
                name=environment.name, prefix=environment.prefix, conda=conda, pip=len(packages) - conda
            ),
            short=_("environment {name} ({conda} conda packages, {pip} from pip)").format(
                name=environment.name, conda=conda, pip=len(packages) - conda
            ),
            packages=packages,
            platform=packages[0].platform if packages else None,
            variant=environment.asked.name if environment.asked else None,
        )

    def revision(self, revision: str, what: str, *, missing_is_empty: bool = False) -> Side:
        """A variant's lock, or a lock file, as it was committed."""
        folder = self.folder
        if not what:
            raise InputError(
                _("'{revision}:' names no lock").format(revision=revision),
                _("write {revision}:VARIANT or {revision}:PATH").format(revision=revision),
            )
        if _is_path(what):
            raw = committed_bytes(Path.cwd(), revision, what)
            top = Path.cwd() if what.startswith(("./", "../")) else repository_top(Path.cwd())
            file, variant = Path(os.path.normpath(top / what)), None
            shown = what
        else:
            shown = f"environments/{what}/{LOCK_NAME}"
            raw = committed_bytes(folder, revision, f"./{shown}")
            file, variant = folder / shown, what
        if raw is None and not missing_is_empty:
            raise self._not_there(revision, shown)
        return self._committed(revision, shown if variant is None else variant, raw, file, variant)

    def _committed(
        self, revision: str, what: str, raw: bytes | None, file: Path, variant: str | None = None
    ) -> Side:
        commit = revision_id(self.folder if variant else Path.cwd(), revision)[:9] or _("staged")
        label = f"{revision}:{what} ({commit})"
        if raw is None:
            return Side(
                kind="revision", label=_("nothing ({label} is not there)").format(label=label), packages=()
            )
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(_("{label} is no lock: not UTF-8").format(label=label)) from None
        lock = parse_lock(text, Path(label))
        return Side(kind="revision", label=label, packages=lock.packages, variant=variant, file=file)

    def _bare(self, word: str) -> Side:
        problem: InputError | None = None
        variant = None
        if self.project is not None:
            root, matrix = self.project
            try:
                variant = select(matrix, Axes(name=word))
                return self._variant_lock(root, matrix, variant)
            except InputError as refusal:
                if matrix.named(word):
                    raise
                problem = refusal
        if Path(word).exists():
            return self.path(Path(word))
        try:
            return self.environment(word)
        except InputError as refusal:
            if problem is not None and variant is not None:
                raise problem from None
            hints = (problem.message, problem.hint) if problem else (refusal.hint,)
            raise InputError(
                _("'{word}' is no variant here, no file and no environment").format(word=word),
                "; ".join(hint for hint in hints if hint),
            ) from None

    def _variant_lock(self, root: Path, matrix: Matrix, variant: Variant) -> Side:
        listed = matrix.lists(variant)
        file = lock_path(root, variant, listed=listed)
        if not file.exists():
            raise InputError(
                _("{name} has no lock yet").format(name=variant.name),
                _("run `envkit lock {name}`; for an environment of that name write {env}{name}").format(
                    name=variant.name, env=_ENVIRONMENT
                ),
            )
        return Side(
            kind="lock",
            label=f"{variant.name} ({_relative(file)})",
            short=variant.name,
            packages=read_lock(file).packages,
            variant=variant.name if listed else None,
            file=file,
        )

    def title(self, side: Side) -> str:
        """The label without a place of this machine, for a text that others read."""
        if side.kind != "lock" or side.file is None:
            return side.short or side.label
        path = self._in_repository(side.file)
        return f"{side.short} ({path})" if side.short else path

    def _in_repository(self, file: Path) -> str:
        """The path from the top of the repository, or of the project; the file and its folder elsewhere."""
        whole = file.absolute()
        try:
            top = repository_top(whole.parent)
        except Error:
            top = self.folder
        own = whole.relative_to(top) if whole.is_relative_to(top) else Path(whole.parent.name, whole.name)
        return own.as_posix()

    def _not_there(self, revision: str, shown: str) -> InputError:
        names = committed_names(self.folder, revision, f"environments/*/{LOCK_NAME}")
        locked = ", ".join(Path(name).parent.name for name in names)
        return InputError(
            _("there is no {file} at {revision}").format(file=shown, revision=revision or _("the index")),
            _("locked there are: {names}").format(names=locked) if locked else _("nothing is locked there"),
        )


def _is_path(word: str) -> bool:
    return "/" in word or word in (".", "..", "~") or word.endswith(_ENDINGS)


def _relative(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
