"""How large downloads will be, asked without downloading."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

__all__ = ["sizes"]

_PATIENCE = httpx.Timeout(5.0)
_ALL_AT_MOST = 8


def sizes(urls: Sequence[str]) -> dict[str, int | None]:
    """The size in bytes behind each `file:` or `https:` URL; None where it cannot be learnt in 5 seconds."""
    found: dict[str, int | None] = {url: _on_disk(url) for url in urls}
    remote = [url for url in urls if urlsplit(url).scheme in ("http", "https")]
    if remote:
        with httpx.Client(timeout=_PATIENCE, follow_redirects=True) as client:
            with ThreadPoolExecutor(_ALL_AT_MOST) as pool:
                found |= zip(remote, pool.map(lambda url: _announced(client, url), remote), strict=True)
    return found


def _on_disk(url: str) -> int | None:
    parts = urlsplit(url)
    try:
        return Path(unquote(parts.path)).stat().st_size if parts.scheme == "file" else None
    except OSError:
        return None


def _announced(client: httpx.Client, url: str) -> int | None:
    try:
        answer = client.head(url.split("#", 1)[0])
    except httpx.HTTPError:
        return None
    length = answer.headers.get("content-length", "")
    return int(length) if answer.is_success and length.isdigit() else None
