"""The JSON that conda answers with, as far as conda-lock reads it (conda_lock/models/dry_run_install.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envkit.solve.conda_channels import installed_records
from envkit.solve.engine import Solved

__all__ = ["fetch_actions", "link_actions", "listed"]


def fetch_actions(solved: Sequence[Solved]) -> list[Mapping[str, Any]]:
    """What conda calls FETCH: the whole repodata record of each package, with its URL and channel."""
    return [
        json.loads(one.record.to_json())
        | {
            "channel": f"{one.channel}/{one.subdir}",
            "fn": one.file_name,
            "url": one.url,
            "subdir": one.subdir,
        }
        for one in solved
    ]


def link_actions(solved: Sequence[Solved]) -> list[Mapping[str, Any]]:
    """What conda calls LINK: the packages that would stand in the environment."""
    return [
        {
            "base_url": one.channel.rpartition("/")[0],
            "build_number": one.build_number,
            "build_string": one.build,
            "channel": one.channel.rpartition("/")[2],
            "dist_name": f"{one.name}-{one.version}-{one.build}",
            "name": one.name,
            "platform": one.subdir,
            "version": one.version,
        }
        for one in solved
    ]


def listed(prefix: Path) -> list[Mapping[str, Any]]:
    """What `conda list --json` says of a prefix."""
    return [
        {
            "base_url": str(record.get("channel", "")).rpartition("/")[0],
            "build_number": record.get("build_number", 0),
            "build_string": record.get("build", ""),
            "channel": record.get("channel", ""),
            "dist_name": f"{record['name']}-{record['version']}-{record['build']}",
            "name": record["name"],
            "platform": record.get("subdir", ""),
            "version": record["version"],
        }
        for record in installed_records(prefix)
    ]
