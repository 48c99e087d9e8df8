"""The hashes of wheels whose index gives none: computed from what came the first time, demanded from then on.

Flat listings and old mirrors name files alone. What such a file was is kept in `<cache>/wheels/hashes.json`
by its URL and size, so that nothing large is downloaded twice and a file that was exchanged is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from envkit.channels import shown
from envkit.files import parse_json, sha256_of, write_atomically
from envkit.messages import _
from envkit.progress import Observer
from envkit.wheels.cache import PackageCache
from envkit.wheels.download import download
from envkit.wheels.plan import Wheel, WheelPlan

__all__ = ["recalled", "settled"]


def recalled(plan: WheelPlan, store: PackageCache) -> WheelPlan:
    """The plan with the hashes that are known from an earlier time. Reads only."""
    known = _read(store.hashes)
    return replace(
        plan,
        items=tuple(
            item if item.sha256 else replace(item, sha256=known.get(_key(item), "")) for item in plan.items
        ),
    )


def settled(plan: WheelPlan, store: PackageCache, observer: Observer) -> tuple[WheelPlan, dict[str, Path]]:
    """The plan with a hash for every wheel, and the files that had to be downloaded for that, by sha256.

    Used inside `with store.held(observer):`, in whose work folder those files lie.
    """
    plan = recalled(plan, store)
    bare = [item for item in plan.items if not item.sha256]
    if not bare:
        return plan, {}
    files = download(bare, store.scratch(), options=plan.options, observer=observer)
    hashes = {url: sha256_of(path) for url, path in files.items()}
    observer.note(
        _("no index gives a sha256 of {names}: computed from what came, demanded from now on").format(
            names=", ".join(item.file_name for item in bare)
        )
    )
    known = {_key(item): hashes[item.url] for item in bare if item.size is not None}
    if known:
        text = json.dumps({**_read(store.hashes), **known}, indent=1, sort_keys=True)
        write_atomically(store.hashes, f"{text}\n")
    items = tuple(item if item.sha256 else replace(item, sha256=hashes[item.url]) for item in plan.items)
    return replace(plan, items=items), {hashes[url]: path for url, path in files.items()}


def _key(wheel: Wheel) -> str:
    """A file as it was: one of another size is another file. Users and passwords are left out."""
    return f"{shown(wheel.url)} {wheel.size}"


def _read(path: Path) -> Mapping[str, str]:
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
