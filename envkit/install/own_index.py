"""Files of the public Python index from the index that the user's pip has in its place, where it has one.

A company's index is often all that can be reached, and only pip knows its way there: its address, its
credentials, its certificates. Mirrors that envkit knows need none of this: `envkit.fetch` asks them itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from envkit.channels import canonicalise_url, is_pypi_file
from envkit.errors import Error
from envkit.fetch import Routes, wheel_file
from envkit.messages import _
from envkit.model import Package
from envkit.progress import Observer

__all__ = ["OWN_INDEX", "take_from_own_index"]

OWN_INDEX = ".own-index-"
"""How a folder of unfinished downloads by pip is called, in the cache's `downloads`."""


def take_from_own_index(
    packages: Sequence[Package], *, routes: Routes, cache: Path, observer: Observer
) -> None:
    """Put into the cache what of a pip section the user's own index gives; never fails for what it lacks.

    pip is held to name, version and sha256. Nothing is asked where nothing is missing, where no connection
    may be opened or only chosen mirrors be asked, or where pip is configured for a mirror that envkit knows.
    """
    missing = [
        package
        for package in packages
        if is_pypi_file(package.url) and not wheel_file(package, cache).is_file()
    ]
    if not missing or routes.only or routes.session.offline:
        return
    from envkit.solve.pip_lines import configured_indexes

    configured = configured_indexes()
    if configured.default_index or any(canonicalise_url(url).known for url in configured.indexes):
        return
    try:
        (cache / "downloads").mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=OWN_INDEX, dir=cache / "downloads") as folder:
            _download(missing, Path(folder), cache, observer)
    except (Error, OSError) as problem:
        observer.note(
            _("pip's own index does not give the pip section ({reason}); asking elsewhere").format(
                reason=str(problem).splitlines()[0]
            )
        )


def _download(packages: Sequence[Package], folder: Path, cache: Path, observer: Observer) -> None:
    from envkit.wheels import download
    from envkit.wheels.plan import Wheel

    wanted = {
        package.sha256: Wheel(
            name=package.name, version=package.version, url=package.url, sha256=package.sha256
        )
        for package in packages
    }
    found = download(tuple(wanted.values()), folder, options=(), observer=observer)
    for package in packages:
        kept = wheel_file(package, cache)
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found[package.url].replace(kept)
