"""One file with all that an environment needs, for machines without a network.

    bundle.json                       what the tar has: name, platform, sha256 and size of every other member
    <channel>/<subdir>/<archive>      every package, repodata.json beside them: unpacked, a tree of channels
    conda-lock.yml environment.yml    the lock, the rendered spec
    pip/<file>                        the files of the pip section
    install.sh envkit-wheels/         installs with a POSIX shell and Python alone, from envkit's own wheels

The tar is plain, sorted and dated 1970: its bytes follow from its contents. What lies in it says nothing of
who made it: that is for its sha256 to say, which is printed where it is made and where it is read.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from envkit.install.bundle.opening import Opened, opened

if TYPE_CHECKING:
    from envkit.install.bundle.making import Bundled, bundle

__all__ = ["Bundled", "Opened", "bundle", "opened"]


def __getattr__(name: str) -> object:
    if name not in ("Bundled", "bundle"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.making"), name)
