"""Where an environment may be put: names, prefixes, and what already stands there."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from envkit import paths
from envkit.errors import Error, InputError
from envkit.install import marker
from envkit.install.space import cannot_write
from envkit.messages import _

__all__ = ["check_name", "check_place", "check_target", "fit_name", "is_environment", "locate", "normal"]

# Letters and digits of any script; then also what ad-hoc names are made of: `py311-cu118+vision`.
_NAME = re.compile(r"\w[\w.+=-]*\Z")
# `:` separates the entries of PATH; the others are live inside the double quotes of /bin/sh trampolines.
_UNFIT = re.compile(r'[:"$`\\\x00-\x1f\x7f\udc80-\udcff]')


def check_name(name: str) -> str:
    """`name` itself, if an environment may be called so; InputError otherwise."""
    if not _NAME.match(name) or ".." in name or len(name.encode()) > 200:
        raise InputError(
            _("'{name}' cannot be the name of an environment").format(name=name),
            _("use letters, digits and - _ + = . and begin with a letter or digit"),
        )
    return name


def fit_name(text: str) -> str:
    """The nearest to `text`, such as a folder's name, that an environment may be called; "" where none is."""
    words = re.sub(r"[^\w.+=-]+", "-", text).lstrip("-.+=").rstrip("-")
    return re.sub(r"\.{2,}", ".", words).encode()[:200].decode(errors="ignore")


def locate(name_or_prefix: str) -> Path:
    """The prefix that a user means: a path where it has a slash (or is `.`), else a named environment."""
    if "/" in name_or_prefix or name_or_prefix in (".", "..", "~"):
        return normal(Path(os.path.expanduser(name_or_prefix)))  # noqa: PTH111 (that of Path can raise)
    return paths.environments() / check_name(name_or_prefix)


def normal(prefix: Path) -> Path:
    """`prefix` absolute and without `..`; where it is a symbolic link, what the link stands for."""
    absolute = Path(os.path.abspath(prefix))  # noqa: PTH100 (resolve() would follow links of parents)
    return Path(os.path.realpath(absolute)) if absolute.is_symlink() else absolute


def is_environment(prefix: Path) -> bool:
    """Whether conda, mamba or envkit finished making an environment at `prefix`.

    Where our own record is damaged the answer is no: it is to be installed again.
    """
    try:
        if marker.read(prefix) is not None:
            return True
        return (prefix / "conda-meta" / "history").is_file()
    except (Error, OSError):
        return False


def check_place(prefix: Path) -> bool:
    """Whether an older environment of ours stands at `prefix`. Quick, and nothing is written.

    Raises InputError for a path that can hold no environment or holds something else: a file, a folder
    with other content, an environment that envkit did not make, a mount point.
    """
    prefix = normal(prefix)
    unfit = _UNFIT.search(str(prefix))
    if unfit:
        raise InputError(
            _("the path {path} holds the character {character}, which scripts and PATH cannot").format(
                path=ascii(str(prefix)), character=ascii(unfit.group())
            ),
            _("choose another folder with `--prefix DIR`"),
        )
    if _is_cache(prefix):
        raise InputError(
            _("{path} lies in the cache, which `envkit clean` empties").format(path=prefix),
            _("choose another folder with `--prefix DIR`"),
        )
    if prefix.is_symlink():
        raise InputError(
            _("{path} is a symbolic link that leads in a circle").format(path=prefix),
            _("remove it, or choose another folder with `--prefix DIR`"),
        )
    try:
        exists = prefix.exists()
        content = bool(exists and (not prefix.is_dir() or any(prefix.iterdir())))
    except OSError as problem:
        raise cannot_write(prefix, problem) from None
    if exists and os.path.ismount(prefix):
        raise InputError(
            _("{path} is a mount point; an environment is put in place by renaming").format(path=prefix),
            _("choose a folder inside it: `--prefix {path}`").format(path=prefix / "env"),
        )
    replaces = content and marker.path(prefix).is_file()
    if content and not replaces:
        _refuse(prefix)
    return replaces


def check_target(prefix: Path) -> bool:
    """`check_place`, and whether an install can begin: the parent of `prefix` is made where it lacks.

    Raises InputError also for an environment nested inside the one to be replaced, Error where the parent
    cannot be written to.
    """
    replaces = check_place(prefix)
    if replaces:
        _refuse_nested(prefix)
    _make_parent(prefix.parent)
    return replaces


def _is_cache(prefix: Path) -> bool:
    """Whether `prefix` is in the cache or holds it. What shares its folder is not."""
    cache, place = Path(os.path.realpath(paths.cache())), Path(os.path.realpath(prefix))
    inside = place.is_relative_to(cache) and not cache.is_relative_to(os.path.realpath(paths.home()))
    if inside:  # ENVKIT_CACHE names a folder that has more than the cache
        return place == cache or place.relative_to(cache).parts[0] in paths.CACHED
    return place.is_relative_to(cache) or cache.is_relative_to(place)


def _refuse(prefix: Path) -> None:
    what = (
        _("{path} is an environment that envkit did not make")
        if is_environment(prefix)
        else _("{path} exists and is not an environment")
    )
    raise InputError(
        what.format(path=prefix),
        _("remove it yourself if it is not needed, or choose another folder with `--prefix DIR`"),
    )


def _refuse_nested(prefix: Path) -> None:
    for folder, children, _files in os.walk(prefix):
        if "conda-meta" in children and Path(folder) != prefix:
            raise InputError(
                _("{path} holds another environment, {nested}, which replacing it would delete").format(
                    path=prefix, nested=folder
                ),
                _("move {nested} elsewhere or choose another folder with `--prefix DIR`").format(
                    nested=folder
                ),
            )


def _make_parent(parent: Path) -> None:
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(parent, problem) from None
    if not os.access(parent, os.W_OK | os.X_OK):
        number = errno.EROFS if os.statvfs(parent).f_flag & os.ST_RDONLY else errno.EACCES
        raise cannot_write(parent, OSError(number, os.strerror(number)))
