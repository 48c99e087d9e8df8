"""What a .condarc makes of channel names: the bases under which its owner's files may name channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envkit.channels.canonical import canonicalise_url
from envkit.channels.names import canonical_url
from envkit.channels.table import table
from envkit.errors import InputError

__all__ = ["condarc_bases"]


def condarc_bases(settings: Mapping[str, Any]) -> dict[str, str]:
    """The bases of a .condarc that are copies of channels, for `canonicalise_url(…, also=…)`.

    `custom_channels: {nvidia: https://m.example/cloud}` puts nvidia at https://m.example/cloud/nvidia, with
    its labels; `channel_alias: https://m.example/conda` puts every channel without a place of its own there.
    The longest base comes first. What is no such setting is passed over.
    """
    found: dict[str, str] = {}
    custom = settings.get("custom_channels")
    for name, base in custom.items() if isinstance(custom, dict) else ():
        if isinstance(name, str) and isinstance(base, str) and base.startswith(("https://", "http://")):
            try:
                found[f"{base.rstrip('/')}/{name}"] = canonical_url(name)
            except InputError:
                continue
    alias = settings.get("channel_alias")
    if isinstance(alias, str) and alias.startswith(("https://", "http://")):
        found[alias.rstrip("/")] = table().cloud
    unknown = {base: url for base, url in found.items() if not canonicalise_url(f"{base}/x").known}
    return dict(sorted(unknown.items(), key=lambda item: -len(item[0])))
