"""Solves over one local channel and links the result: CHANNEL PREFIX CACHE SPEC…

A program of its own, because rattler's runtime can crash the interpreter at exit.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import rattler
from rattler.install import install


async def main(channel: Path, prefix: str, cache: str, specs: list[str]) -> None:
    url = rattler.Channel(channel.absolute().as_uri())
    repodata = [
        rattler.SparseRepoData(url, subdir.name, str(subdir / "repodata.json"))
        for subdir in channel.iterdir()
    ]
    virtual = [
        rattler.GenericVirtualPackage(
            rattler.PackageName(name), rattler.Version(version), rattler.BuildString("0")
        )
        for name, version in (("__glibc", os.confstr("CS_GNU_LIBC_VERSION").split()[1]), ("__linux", "0"))
    ]
    records = await rattler.solve_with_sparse_repodata(
        [rattler.MatchSpec(spec, strict=False) for spec in specs], repodata, virtual_packages=virtual
    )
    await install(records, prefix, cache_dir=cache, show_progress=False)
    for record in records:
        print(f"{record.name.source}-{record.version}-{record.build}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
    sys.stdout.flush()
    os._exit(0)
