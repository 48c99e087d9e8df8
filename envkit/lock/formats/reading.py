"""One door for every file that people call their environment."""

from __future__ import annotations

from pathlib import Path

from envkit.lock.formats.conda_list import read_conda_list
from envkit.lock.formats.detect import kind_of
from envkit.lock.formats.environment import read_environment_file
from envkit.lock.formats.explicit import read_explicit_file
from envkit.lock.formats.foreign import Foreign
from envkit.lock.formats.pixi import read_pixi_lock
from envkit.lock.formats.requirements import read_requirements_file
from envkit.lock.formats.source import read_source
from envkit.messages import _

__all__ = ["read_spec"]


def read_spec(
    path: Path,
    *,
    python: str | None = None,
    platform: str | None = None,
    environment: str | None = None,
) -> Foreign:
    """What a file asks for, or has pinned, whatever tool it was written for.

    environment.yml, requirements.txt, `conda list --export`, `conda list --explicit` and pixi.lock are
    told apart by content and name. `python` is for requirements that name no version, `platform` for an
    explicit file that names none, `environment` chooses one of a pixi.lock. Raises InputError with the file,
    the line and what to do for everything that cannot be locked as it stands. Opens no connection.
    """
    source = read_source(path)
    kind = kind_of(source)
    if kind == "environment":
        return read_environment_file(source)
    if kind == "requirements":
        return read_requirements_file(source, python=python)
    if kind == "conda-list":
        return read_conda_list(source)
    if kind == "explicit":
        return read_explicit_file(source, platform=platform)
    if kind == "pixi":
        return read_pixi_lock(source, environment=environment)
    raise source.refusal(
        _("this is a conda-lock file already"),
        _(
            "install it with `envkit install --lock {path}`, or make its URLs canonical with "
            "`envkit lock --canonicalise {path}`"
        ).format(path=path),
    )
