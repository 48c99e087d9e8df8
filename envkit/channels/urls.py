"""URLs as they may be shown (without user names, passwords, tokens, signed queries), and as paths."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

__all__ = ["local_path", "shown"]

_TOKEN = re.compile(r"/t/[^/]+/")


def shown(url: str) -> str:
    """`url` without anything secret: userinfo, `/t/<token>/` and the query."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, _TOKEN.sub("/", parts.path), "", ""))


def local_path(url: str) -> Path | None:
    """The path that a `file://` URL names, or None for any other URL."""
    return Path(unquote(urlsplit(url).path)) if url.startswith("file://") else None
