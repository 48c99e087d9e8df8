"""Where the Python package index lies, taken from pip: an address of its own is written nowhere in envkit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

__all__ = ["index_at", "index_url", "is_pypi_file", "published_file", "pypi_files", "pypi_simple"]

_STORED = re.compile(r"/packages(?P<path>/[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{60}/[^/?#]+(?:#.*)?)$")
"""Where the public index keeps a file: under the BLAKE2 of its content (as its API documentation says)."""


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


def published_file(url: str, indexes: Iterable[str]) -> str:
    """The public index's own URL of a file of it that one of `indexes`, an unknown copy, serves.

    A copy keeps the path, which is made from the content. What has no such path, or comes from a server that
    has none of `indexes`, stays as it is: a company's index may hold packages of its own.
    """
    stored, files = _STORED.search(url), pypi_files()
    if stored is None or files is None or _server(url) not in map(_server, indexes):
        return url
    return files + stored["path"]


def _server(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2]


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
