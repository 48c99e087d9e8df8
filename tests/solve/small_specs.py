"""A few packages that need each other, and specs over small channels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tinychannel import TinyPackage, script

from envkit.model import Source, Spec, Variant, VirtualPackage

PYTHON = TinyPackage(
    "python", "3.11.9", "h1_0_cpython", {"bin/python3.11": script("#!/bin/sh\necho 3.11.9\n")}
)
HELLO = TinyPackage(
    "hello",
    "2.0",
    "py_0",
    {"site-packages/hello.py": "print('hello')\n"},
    noarch="python",
    depends=["python >=3.11", "libhello 1.* hb_*"],
)
LIBHELLO = TinyPackage("libhello", "1.5", "hb_0", {"lib/libhello.txt": "lib\n"}, depends=["__glibc >=2.17"])
OLD_LIBHELLO = TinyPackage(
    "libhello", "1.4", "hb_0", {"lib/libhello.txt": "old\n"}, depends=["__glibc >=2.17"]
)

VIRTUAL: Mapping[str, tuple[VirtualPackage, ...]] = {
    "linux-64": (
        VirtualPackage(name="__unix", version="0"),
        VirtualPackage(name="__linux", version="4.18"),
        VirtualPackage(name="__glibc", version="2.28"),
        VirtualPackage(name="__archspec", version="1", build="x86_64"),
    ),
    "linux-aarch64": (
        VirtualPackage(name="__unix", version="0"),
        VirtualPackage(name="__linux", version="4.18"),
        VirtualPackage(name="__glibc", version="2.28"),
        VirtualPackage(name="__archspec", version="1", build="aarch64"),
    ),
    "osx-arm64": (VirtualPackage(name="__unix", version="0"), VirtualPackage(name="__osx", version="14.0")),
    "win-64": (VirtualPackage(name="__win", version="10"),),
}


def make_spec(
    *dependencies: str,
    channels: Sequence[str] = ("conda-forge",),
    platforms: Sequence[str] = ("linux-64",),
    cuda: str | None = None,
    name: str = "py311-test",
    text: str | None = None,
    source: Source = "conda-forge",
) -> Spec:
    """A Spec from dependency lines, as `envkit render` would make it."""
    lines = "".join(f"  - {one}\n" for one in channels)
    listed = "".join(f"  - {one}\n" for one in platforms)
    rendered = (
        f"name: {name}\nchannels:\n{lines}  - nodefaults\nplatforms:\n{listed}dependencies:\n"
        + "".join(f"  - {one}\n" for one in dependencies)
    )
    virtual = {
        platform: (*VIRTUAL[platform], *((VirtualPackage(name="__cuda", version=cuda),) if cuda else ()))
        for platform in platforms
    }
    return Spec(
        variant=Variant(
            name=name,
            python="3.11",
            accelerator=cuda or "cpu",
            torch="*",
            source=source,
            platforms=tuple(platforms),
        ),
        text=rendered if text is None else text,
        channels=tuple(channels),
        virtual_packages=virtual,
        digest=hashlib.sha256(rendered.encode()).hexdigest(),
    )


def repodata_of(root: Path) -> Callable[[str, str], Path]:
    """Repodata from a directory of channels, as `fetch.repodata` gives it."""
    return lambda channel, subdir: root / channel / subdir / "repodata.json"


def canonical(channel: str) -> str:
    return channel if "://" in channel else f"https://conda.anaconda.org/{channel}"
