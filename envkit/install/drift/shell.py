"""What comes before an environment's own files, or runs beside them, as checks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from envkit.install.drift.content import paths_of
from envkit.install.drift.shadow import (
    Shadow,
    library_path,
    path_files,
    python_path,
    site_customs,
    user_site,
)
from envkit.install.drift.subject import Subject
from envkit.install.drift.verdicts import bad, ok, some, warn
from envkit.messages import _
from envkit.model import Check

__all__ = ["OF_THE_SHELL", "checks"]

OF_THE_SHELL = frozenset({"drift.python-path", "drift.user-site", "drift.library-path"})
"""What the calling shell decides: no repair of an environment changes it."""


def checks(subject: Subject, owned: Collection[str], environ: Mapping[str, str]) -> Iterator[Check]:
    """The checks of what may shadow the environment; `owned` are the files that its packages have."""
    yield _python_path(subject, environ)
    yield _user_site(subject, environ)
    yield _library_path(subject, environ)
    yield _path_files(subject, owned)
    yield _site_customs(subject, owned)


def _python_path(subject: Subject, environ: Mapping[str, str]) -> Check:
    home = environ.get("PYTHONHOME")
    if home:
        text = _("PYTHONHOME leads Python to the standard library in {folder}").format(folder=home)
        return bad("drift.python-path", text, "unset PYTHONHOME", data={"PYTHONHOME": home})
    found = python_path(subject.prefix, environ)
    if any(one.names for one in found):
        text = _("PYTHONPATH puts others before the environment's own: {names}").format(names=_names(found))
        return bad("drift.python-path", text, "unset PYTHONPATH", data=_data(found))
    if found:
        text = _("PYTHONPATH adds {folders}").format(folders=some([one.folder for one in found]))
        return warn("drift.python-path", text, "unset PYTHONPATH", data=_data(found))
    return ok("drift.python-path", _("neither PYTHONPATH nor PYTHONHOME leads elsewhere"))


def _user_site(subject: Subject, environ: Mapping[str, str]) -> Check:
    found = user_site(subject.prefix, environ)
    hint = "export PYTHONNOUSERSITE=1"
    if any(one.names for one in found):
        text = _("your own site-packages come before the environment's: {names}").format(names=_names(found))
        return bad("drift.user-site", text, hint, data=_data(found))
    if found:
        text = _("your own site-packages are added: {folders}").format(
            folders=some([one.folder for one in found])
        )
        return warn("drift.user-site", text, hint, data=_data(found))
    return ok("drift.user-site", _("no packages of your own are added"))


def _library_path(subject: Subject, environ: Mapping[str, str]) -> Check:
    found = library_path(subject.prefix, environ)
    if not found:
        return ok("drift.library-path", _("LD_LIBRARY_PATH covers no library of the environment"))
    text = _("LD_LIBRARY_PATH puts others before the environment's own: {names}").format(names=_names(found))
    return bad("drift.library-path", text, "unset LD_LIBRARY_PATH", data=_data(found))


def _path_files(subject: Subject, owned: Collection[str]) -> Check:
    found = path_files(subject.prefix, owned)
    if not found:
        return ok("drift.path-files", _("no .pth file leads out of the environment"))
    text = _(".pth files lead out of the environment or run code: {names}").format(
        names=some([file.path.rpartition("/")[2] for file in found])
    )
    hint = _("if nobody needs them: `rm {paths}`").format(
        paths=paths_of(subject, [file.path for file in found])
    )
    lines = [f"{file.path}: {line}" for file in found for line in file.lines]
    return warn("drift.path-files", text, hint, lines, {"lines": lines})


def _site_customs(subject: Subject, owned: Collection[str]) -> Check:
    found = site_customs(subject.prefix, owned)
    if not found:
        return ok("drift.site-customs", _("no code of others runs when Python starts"))
    text = _("code that no package brought runs whenever Python starts: {names}").format(names=some(found))
    hint = _("if nobody needs them: `rm {paths}`").format(paths=paths_of(subject, found))
    return warn("drift.site-customs", text, hint, found, {"files": list(found)})


def _names(found: Sequence[Shadow]) -> str:
    return "; ".join(f"{one.folder} ({some(one.names)})" for one in found if one.names)


def _data(found: Sequence[Shadow]) -> dict[str, Any]:
    return {"folders": {one.folder: list(one.names) for one in found}}
