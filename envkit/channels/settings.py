"""A choice of mirrors in the words of other tools: a .condarc for conda and mamba, a pip.conf for pip.

The texts are for people to keep and edit, so they explain themselves; the comments are English in every
language, for a team shares one file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envkit.channels.pypi import pypi_simple
from envkit.channels.table import Mirror, table
from envkit.channels.urls import is_url, shown
from envkit.errors import InputError
from envkit.messages import _

__all__ = ["MAINLAND", "condarc_text", "pip_conf_text"]

MAINLAND = ("tuna", "sustech")
"""What a team in mainland China starts with: TUNA, and the one that has nvidia."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9:/._~%-]*[A-Za-z0-9/]")
_MOST_NAMED = 6
_REMARKS = {"pytorch": "ends with PyTorch 2.5.1, as upstream does"}

_TOP = """\
# For a team that also uses conda or mamba by hand. Copy it to ~/.condarc.
# Made by: envkit export condarc --mirror {choice}
# envkit itself needs none of this: `--mirror {choice}` does the same for one command, and the
# lock files hold upstream's addresses whichever mirror served them.
# The facts and their sources are in envkit/data/mirrors.yaml, as of {as_of}; no host was contacted for this.

channels:
  - conda-forge            # names only: a mirror's address here would end up in environment files
default_channels: []       # "defaults" then stands for nothing, also where a tool adds it unasked
denylist_channels:         # the licensed tree: not even by its address
  - https://repo.anaconda.com/pkgs/main
  - https://repo.anaconda.com/pkgs/r
  - https://repo.anaconda.com/pkgs/msys2
channel_priority: strict   # an environment.yml cannot say this
show_channel_urls: true
"""

_BOTTOM = """\

remote_connect_timeout_secs: 15    # default 9.15
remote_read_timeout_secs: 120      # default 60
remote_max_retries: 5              # default 3
remote_backoff_factor: 2           # default 1
fetch_threads: 3                   # default 5; be kind to campus mirrors
repodata_use_zst: true             # where a mirror has none, conda takes the plain ones
repodata_use_shards: true          # 404 at TUNA, then the whole index; false silences newer tools about it

ssl_verify: true                   # never false, and never http://
auto_update_conda: false
report_errors: false
# proxy_servers:
#   https: http://proxy.example:8080
"""

_PIP_TOP = """\
# pip's configuration: ~/.config/pip/pip.conf, or $VIRTUAL_ENV/pip.conf for one environment.
# Made by: envkit export pip-conf --mirror {choice}
# The facts and their sources are in envkit/data/mirrors.yaml, as of {as_of}; no host was contacted for this.

[global]
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """One word of a choice: a mirror of the table, or a server's own base."""

    mirror: Mirror | None = None
    base: str | None = None

    def base_of(self, channel: str) -> str | None:
        """What `custom_channels` needs: the address without the channel's name."""
        if self.mirror is None:
            return self.base
        url = self.mirror.url(channel)
        return url.removesuffix(f"/{channel.removeprefix('pkgs/')}") if url else None


def condarc_text(mirrors: Sequence[str], channels: Sequence[str]) -> str:
    """A .condarc that asks the first of `mirrors` that carries it for each channel.

    `mirrors` are ids of the table, "official" and URLs; a name or a password in a URL is left out. Raises
    InputError for a mirror that is none.
    """
    places = [_place(word) for word in mirrors]
    lines = [_TOP.format(choice=_choice(mirrors), as_of=table().as_of)]
    entries = [(channel, _first(places, channel)) for channel in channels]
    if any(base for _channel, base in entries):
        lines.append(
            "\n# The value is the address WITHOUT the channel's name (conda appends it), https, and no space"
            " at the end.\ncustom_channels:\n"
        )
        wide = max(len(f"{channel}: {_scalar(base)}") for channel, base in entries if base)
        for channel, base in entries:
            if base is not None:
                remark = "; ".join(_remarks(places, channel))
                text = f"  {f'{channel}: {_scalar(base)}':{wide}}" + (f"    # {remark}" if remark else "")
                lines.append(text.rstrip() + "\n")
        for channel, base in entries:
            if base is None:
                lines.append(f"# {channel}: none of these has it; conda.anaconda.org does\n")
        lines += _seconds(places)
    return "".join(lines) + _BOTTOM


def pip_conf_text(mirrors: Sequence[str]) -> str:
    """A pip.conf with the index of the first of `mirrors` that has one. Raises InputError as above."""
    places = [place.mirror for place in map(_place, mirrors) if place.mirror is not None]
    lines = [_PIP_TOP.format(choice=_choice(mirrors), as_of=table().as_of)]
    simple = next((mirror.simple for mirror in places if mirror.simple), None)
    lines.append(f"index-url = {simple}\n" if simple else f"# index-url = {pypi_simple()} is pip's own\n")
    lines.append("timeout = 60\nretries = 5\n")
    known = [mirror for mirror in table().mirrors.values() if mirror.wheels]
    lines.append(
        "\n# PyTorch's own builds lie beside the index, by CUDA version; never as extra-index-url, for pip"
        " then\n# takes the newest of both. On the command line, for CUDA 12.6:\n"
    )
    for mirror in known:
        option = "--find-links" if mirror.flat else "--index-url"
        lines.append(f"#   {mirror.name}: pip install torch {option} {mirror.wheels}/cu126\n")
    return "".join(lines)


def _place(word: str) -> _Place:
    if word.lower() == "official":
        return _Place(mirror=table().upstream)
    if is_url(word, "https", "http", "file") and not re.search(r"\s", word):
        return _Place(base=shown(word).rstrip("/"))
    if word.lower() in table().mirrors:
        return _Place(mirror=table().mirrors[word.lower()])
    raise InputError(
        _("there is no mirror '{word}'").format(word=shown(word)),
        _("choose one of {names}, the URL of a conda server, or file:///a/directory").format(
            names=", ".join(("official", *table().mirrors))
        ),
    )


def _choice(mirrors: Sequence[str]) -> str:
    return ",".join(_scalar(shown(word)) for word in mirrors)


def _first(places: Sequence[_Place], channel: str) -> str | None:
    return next((base for place in places if (base := place.base_of(channel)) is not None), None)


def _remarks(places: Sequence[_Place], channel: str) -> Iterator[str]:
    """What is to be known of a line: how the channel is, and who lacks it where the first choice does."""
    if channel in _REMARKS:
        yield _REMARKS[channel]
    if places[0].mirror is not None and places[0].base_of(channel) is None:
        rows = table().mirrors.values()
        lacking = [row.id for row in rows if (facts := row.channels.get(channel)) and facts.carried == "no"]
        if lacking:
            yield f"not at {', '.join(lacking[:_MOST_NAMED])}"


def _seconds(places: Sequence[_Place]) -> Iterator[str]:
    """The next mirrors to write there where the first is down."""
    named = [place.mirror for place in places if place.mirror is not None]
    rows = table().mirrors
    taken = {mirror.id for mirror in named} | {mirror.redirects for mirror in named}
    free = [name for name in table().auto if name not in taken and rows[name] is not table().upstream]
    if named and free:
        base = _Place(mirror=rows[free[0]]).base_of("conda-forge")
        yield f"# Second choice, independent of the first: {base}\n"
    for mirror in rows.values():
        if mirror.redirects is not None and mirror.redirects in taken:
            yield f"# (Not {mirror.id}: what it lacks it redirects to {mirror.redirects}.)\n"
    yield (
        "# Labels (conda-forge/label/...) follow custom_channels too; most mirrors have the main one alone:\n"
        "# ask for others from https://conda.anaconda.org by their full address.\n"
    )


def _scalar(text: str) -> str:
    """A text as YAML reads it back; JSON's quotes are YAML's."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
