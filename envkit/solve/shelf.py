"""Repodata opened once, however many variants and platforms are solved in one process.

Opening the index of conda-forge costs tenths of a second and its pages stay in memory; nine variants share
five of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.errors import Error
from envkit.messages import _
from envkit.solve.engine import Index

if TYPE_CHECKING:
    from rattler import SparseRepoData

__all__ = ["Repodata", "Shelf"]

Repodata = Callable[[str, str], Path]
"""Gives the local, plain repodata.json of a channel (as the spec names it) and a subdir."""


class Shelf:
    """Indexes over shared repodata. `canonical` gives the canonical URL of a channel.

    May be used by several threads at once.
    """

    def __init__(self, repodata: Repodata, canonical: Callable[[str], str]) -> None:
        self._repodata = repodata
        self._canonical = canonical
        self._opened: dict[tuple[str, str], SparseRepoData] = {}
        self._guard = threading.Lock()

    def index(self, channels: Sequence[str], platform: str) -> Index:
        """The channels for one platform, in order of priority, open for solving.

        Raises Error where a file is not repodata; what `repodata` raises passes through.
        """
        return Index(
            {channel: self._canonical(channel) for channel in channels},
            platform,
            [self._open(channel, subdir) for channel in channels for subdir in (platform, "noarch")],
        )

    def _open(self, channel: str, subdir: str) -> SparseRepoData:
        from rattler import Channel, SparseRepoData

        with self._guard:
            key = (self._canonical(channel), subdir)
            if key not in self._opened:
                path = self._repodata(channel, subdir)
                try:
                    self._opened[key] = SparseRepoData(Channel(key[0]), subdir, str(path))
                except Exception as problem:
                    # rattler raises a bare Exception or OSError here, depending on what is wrong.
                    raise Error(
                        _("{path} is not the repodata of {channel}/{subdir}: {reason}").format(
                            path=path, channel=channel, subdir=subdir, reason=problem
                        ),
                        _("remove the file, then run the command again"),
                    ) from None
            return self._opened[key]
