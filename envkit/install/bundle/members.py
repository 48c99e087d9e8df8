"""Where a bundle has the packages of a lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from envkit.channels import locate
from envkit.errors import InputError
from envkit.install.bundle.contents import PIP
from envkit.messages import _
from envkit.model import Package

__all__ = ["channel_path", "member_path", "paths_of"]


def channel_path(channel: str) -> str:
    """The folder of a channel, by name or URL, below the root of a tree of channels."""
    from envkit.fetch import folder_name

    return folder_name(channel)


def member_path(package: Package) -> str:
    """The path of a package's file: where a tree of channels has it, so that a bundle is one."""
    name = unquote(package.file_name)
    if package.manager == "pip":
        return f"{PIP}/{name}"
    place = locate(package.url)
    return f"{channel_path(place.channel)}/{place.subdir}/{name}"


def paths_of(packages: Iterable[Package]) -> Mapping[str, Package]:
    """The packages by the paths of their files; InputError for two that would need the same."""
    found: dict[str, Package] = {}
    for package in packages:
        other = found.setdefault(member_path(package), package)
        if other.sha256 != package.sha256:
            raise InputError(
                _("the lock has two different files {file}").format(file=member_path(package)),
                _("make the lock again with `envkit lock`"),
            )
    return found
