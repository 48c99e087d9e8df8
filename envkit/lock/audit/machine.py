"""A machine described in words: `glibc=2.17,driver=535.104,gpu=8.6`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from envkit.errors import InputError
from envkit.host.drivers import newest_cuda
from envkit.messages import _
from envkit.model import Gpu, Host

__all__ = ["KEYS", "parse_host"]

_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){0,3}")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_PLATFORM = re.compile(r"[a-z]+-[a-z0-9]+")
_LEVEL = re.compile(r"(?:x86_64_v)?([1-4])")

_Put = Callable[[Host, str], Host | None]


def _field(name: str, pattern: re.Pattern[str]) -> _Put:
    def put(host: Host, value: str) -> Host | None:
        return replace(host, **_changes(name, value)) if pattern.fullmatch(value) else None

    return put


def _changes(name: str, value: Any) -> Mapping[str, Any]:
    return {name: value}


def _driver(host: Host, value: str) -> Host | None:
    if not _VERSION.fullmatch(value):
        return None
    return replace(host, driver=value, driver_cuda=host.driver_cuda or newest_cuda(value))


def _gpu(host: Host, value: str) -> Host | None:
    if not _CAPABILITY.fullmatch(value):
        return None
    index = len(host.gpus)
    return replace(host, gpus=(*host.gpus, Gpu(index=index, name=f"GPU {index}", capability=value)))


def _cpu(host: Host, value: str) -> Host | None:
    match = _LEVEL.fullmatch(value)
    return replace(host, cpu_level=int(match[1])) if match else None


KEYS: Mapping[str, tuple[str, _Put]] = {
    "platform": ("linux-64", _field("platform", _PLATFORM)),
    "glibc": ("2.17", _field("glibc", _VERSION)),
    "driver": ("535.104", _driver),
    "cuda": ("12.2", _field("driver_cuda", _VERSION)),
    "gpu": ("8.6", _gpu),
    "cpu": ("x86_64_v3", _cpu),
    "system": ("5.14", _field("system", _VERSION)),
}
"""What can be said of a machine, with an example of each and what it changes in a Host."""


def parse_host(text: str) -> Host:
    """The machine that `key=value,…` describes; `gpu` may come once for each GPU.

    Without `platform` it is linux-64. What is not named is not known. Raises InputError for a key or a value
    that is none.
    """
    host = Host(platform="linux-64")
    seen: set[str] = set()
    for part in (word.strip() for word in text.split(",")):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or key not in KEYS:
            raise InputError(
                _("'{part}' says nothing of a machine that is known here").format(part=part),
                _("name any of {keys}").format(keys=_examples()),
            )
        if key in seen and key != "gpu":
            raise InputError(_("{key} is named twice").format(key=key), _("only gpu may come again"))
        seen.add(key)
        example, put = KEYS[key]
        changed = put(host, value)
        if changed is None:
            raise InputError(
                _("'{value}' is no {key}").format(value=value, key=key),
                _("write it as {key}={example}").format(key=key, example=example),
            )
        host = changed
    return host


def _examples() -> str:
    return ", ".join(f"{key}={example}" for key, (example, _put) in KEYS.items())
