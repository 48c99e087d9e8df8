"""URLs as they may be shown (without user names, passwords, tokens, signed queries), and as paths."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

__all__ = ["has_token", "has_user", "hostname", "is_url", "local_path", "shown", "shown_text"]

_TOKEN = re.compile(r"/t/[^/]+(?=/|$)")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s'\"`]+")
_USER = re.compile(r"[\w.~%+-]{1,64}:[^\s/@'\"`]{1,200}@(?=[\w-]+\.)")
"""In what is nearly a URL: "https//u:pw@host.example". Bounded, since without an end it takes for ever."""
_ENDLESS = re.compile(r"\S{240,}")


def is_url(text: str, *schemes: str) -> bool:
    """Whether a text is a URL of one of these schemes, as far as its host can be told."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in schemes and "://" in text and bool(parts.hostname or parts.scheme == "file")


def hostname(url: str) -> str | None:
    """The host of a URL, in lower case; None where there is none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def has_user(url: str) -> bool:
    """Whether a user name or a password stands in a URL."""
    return "@" in re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]


def has_token(url: str) -> bool:
    """Whether a URL has a `/t/<token>/`, as Anaconda's and other servers of private channels want it."""
    return "://" in url and _TOKEN.search(re.split(r"[?#]", url, maxsplit=1)[0]) is not None


def shown(url: str) -> str:
    """`url` without anything secret: userinfo, `/t/<token>` and the query."""
    if "://" not in url:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("://")[0] + "://…"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, _TOKEN.sub("", parts.path), "", ""))


def shown_text(text: str) -> str:
    """A text from somebody's file as it may be shown: its URLs as `shown` has them, fragments kept.

    A word without an end (a megabyte of base64) is cut.
    """

    def masked(match: re.Match[str]) -> str:
        url, mark, fragment = match[0].partition("#")
        return shown(url) + mark + fragment

    return _ENDLESS.sub(lambda match: f"{match[0][:200]}…", _USER.sub("", _URL.sub(masked, text)))


def local_path(url: str) -> Path | None:
    """The path that a `file://` URL names, or None for any other URL."""
    return Path(unquote(urlsplit(url).path)) if is_url(url, "file") else None
