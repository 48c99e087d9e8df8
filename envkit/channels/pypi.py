"""Where the Python package index lies, taken from pip: an address of its own is written nowhere in envkit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

__all__ = ["index_at", "index_url", "is_pypi_file", "pypi_files", "pypi_simple"]


@cache
def pypi_simple() -> str | None:
    """The URL of the index's simple API, without a trailing slash; None where pip is not installed."""
    try:
        from pip._internal.models.index import PyPI
    except ImportError:
        return None
    return str(PyPI.simple_url).rstrip("/")


@cache
def pypi_files() -> str | None:
    """The URL below which the index's files lie, without a trailing slash; None without pip."""
    try:
        from pip._internal.models.index import PyPI
    except ImportError:
        return None
    return f"https://{PyPI.file_storage_domain}/packages"


def index_url(label: str) -> str:
    """The index of PyTorch's own builds for an accelerator: "cu121" -> "https://…/whl/cu121"."""
    from envkit.channels.table import table

    return f"{table().pytorch}/{label}"


def is_pypi_file(url: str) -> bool:
    """Whether `url` is a file of the public Python index, in its own spelling."""
    files = pypi_files()
    return files is not None and url.startswith(f"{files}/")


def index_at(url: str, hosts: Sequence[str]) -> str:
    """Where to ask for one of PyTorch's indexes: at the first of `hosts` that has a copy, else itself.

    `url` may be written as a mirror's already. Any other index comes back as it is: who serves the public
    one is a matter of pip's configuration.
    """
    from envkit.channels.canonical import canonicalise_url
    from envkit.channels.table import table

    canonical = canonicalise_url(url)
    if canonical.tree != "pytorch":
        return url
    below = canonical.url.removeprefix(table().pytorch)
    for host in hosts:
        for base in table().bases:
            if base.tree == "pytorch" and base.place.partition("/")[0] == host:
                return f"https://{base.place}{below}"
    return canonical.url
