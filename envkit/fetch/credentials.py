"""Whose name and password, or token, goes to which host, and to no other.

Looked up anew for every URL that is asked, redirects included, so that what belongs to one host never
reaches another. What is found goes into the request alone: nothing here is logged, shown or written.
"""

from __future__ import annotations

import base64
import json
import netrc
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import SplitResult, quote, unquote, unquote_plus, urlsplit

from envkit.channels import table
from envkit.errors import InputError
from envkit.messages import _

if TYPE_CHECKING:
    import httpx

__all__ = ["auth_for"]

Signer: TypeAlias = "Callable[[httpx.Request], httpx.Request]"
"""Puts credentials into a request, as httpx takes them."""

_TOKEN = "/t/"
_LONGEST_LOOK = 10.0
"""Seconds after which a keyring that waits for somebody to unlock it is left alone."""


def auth_for(url: str) -> Signer | None:
    """The credentials for one request; None where nobody has any for its host.

    In this order: those in the URL (its user name, or a `/t/<token>/`), the host's own entry in ~/.netrc
    (or `$NETRC`), anaconda-client's token files, rattler's file (`$RATTLER_AUTH_FILE`, or
    ~/.rattler/credentials.json), and for a host that is nobody's public mirror the system's keyring, where
    the library `keyring` and one of its backends are installed. Raises InputError for a ~/.netrc that
    cannot be read.
    """
    parts = urlsplit(url)
    if parts.username:
        return _basic(unquote(parts.username), unquote(parts.password or ""))
    if parts.path.startswith(_TOKEN) or parts.hostname is None:
        return None
    for look in (_in_netrc, _in_anaconda_client, _in_rattler, _in_keyring):
        if (found := look(parts)) is not None:
            return found
    return None


def _basic(name: str, password: str) -> Signer:
    return _header("Basic " + base64.b64encode(f"{name}:{password}".encode()).decode("ascii"))


def _header(value: str) -> Signer:
    def sign(request: httpx.Request) -> httpx.Request:
        request.headers["Authorization"] = value
        return request

    return sign


def _path_token(token: str, below: str = "") -> Signer:
    """conda's own way: `/t/<token>` stands in the path, before the channel and after what is `below` it."""

    def sign(request: httpx.Request) -> httpx.Request:
        path = request.url.raw_path.decode("ascii").removeprefix(below)
        request.url = request.url.copy_with(raw_path=f"{below}{_TOKEN}{quote(token, safe='')}{path}".encode())
        return request

    return sign


def _in_netrc(parts: SplitResult) -> Signer | None:
    try:
        # Its `default` entry is for any host at all, and so for none here.
        found = netrc.netrc(os.environ.get("NETRC")).hosts.get(parts.hostname or "")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, netrc.NetrcParseError) as problem:
        raise InputError(
            _("~/.netrc cannot be used: {reason}").format(reason=problem),
            _("correct it, or set NETRC=/dev/null to do without"),
        ) from None
    return None if found is None else _basic(found[0] or found[1] or "", found[2] or "")


def _in_anaconda_client(parts: SplitResult) -> Signer | None:
    """Files named after a URL (`https%3A%2F%2Fapi.anaconda.org.token`), as conda reads them.

    A token for an `api.` host is for the `conda.` host beside it as well.
    """
    for folder in _token_folders():
        for file in _token_files(folder):
            written = urlsplit(unquote_plus(file.name.removesuffix(".token")))
            below = written.path.rstrip("/")
            hosts = {written.netloc, written.netloc.replace("api.", "conda.", 1)}
            if (
                written.scheme == parts.scheme
                and parts.netloc in hosts
                and f"{parts.path}/".startswith(f"{below}/")
                and (token := _text(file).strip())
            ):
                return _path_token(token, below)
    return None


def _token_folders() -> Iterator[Path]:
    if chosen := os.environ.get("BINSTAR_CONFIG_DIR"):
        yield Path(chosen) / "data"
    elif home := os.environ.get("HOME"):
        yield Path(os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config") / "binstar"
        yield Path(os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share") / "binstar"
        yield Path(home) / ".continuum/anaconda-client/tokens"


def _token_files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.token"))
    except OSError:
        return []


def _in_rattler(parts: SplitResult) -> Signer | None:
    file = os.environ.get("RATTLER_AUTH_FILE")
    home = os.environ.get("HOME")
    if not file and not home:
        return None
    try:
        said = json.loads(_text(Path(file) if file else Path(home or "") / ".rattler/credentials.json"))
    except ValueError:
        return None
    for name in _rattler_names(parts):
        if isinstance(said, dict) and (found := _of_rattler(said.get(name))) is not None:
            return found
    return None


def _rattler_names(parts: SplitResult) -> Iterator[str]:
    """A host, then `*.` and each of the domains around it."""
    host = parts.hostname or ""
    yield parts.netloc.lower()
    yield host
    while "." in host:
        host = host.partition(".")[2]
        yield f"*.{host}"


def _of_rattler(entry: object) -> Signer | None:
    """One entry of rattler's store: a token in the header or in the path, or a name and a password."""
    if not isinstance(entry, dict):
        return None
    if isinstance(bearer := entry.get("BearerToken"), str):
        return _header(f"Bearer {bearer}")
    if isinstance(token := entry.get("CondaToken"), str):
        return _path_token(token)
    basic = entry.get("BasicHTTP") or entry.get("BasicHttp")
    if isinstance(basic, Mapping):
        return _basic(str(basic.get("username", "")), str(basic.get("password", "")))
    return None


def _in_keyring(parts: SplitResult) -> Signer | None:
    # A desktop may ask for a password before it answers: not for hosts that everybody may read.
    if table().at_host(parts.hostname or ""):
        return None
    answer: list[tuple[str, str] | str] = []
    thread = threading.Thread(target=lambda: answer.extend(_asked_keyring(parts.netloc)), daemon=True)
    thread.start()
    thread.join(_LONGEST_LOOK)
    return _of_keyring(answer[0]) if answer else None


@cache
def _asked_keyring(host: str) -> tuple[tuple[str, str] | str, ...]:
    """What the keyring has for a host: a name and a password as pip finds them, or what rattler wrote."""
    try:
        import keyring

        if (found := keyring.get_credential(host, None)) is not None:
            return ((found.username, found.password),)
        if (text := keyring.get_password("rattler", host)) is not None:
            return (text,)
    except Exception:  # whatever a backend raises where it is locked or absent
        return ()
    return ()


def _of_keyring(found: tuple[str, str] | str) -> Signer | None:
    if isinstance(found, tuple):
        return _basic(*found)
    try:
        entry: Any = json.loads(found)
    except ValueError:
        return None
    return _of_rattler(entry)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
