"""A lock over tiny packages, and the wheels that pip finds for `install.sh`: nothing is fetched."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import yaml
from tinychannel import PLATFORM, TinyPackage, this_python, write_channel

from envkit.install.bundle import own
from envkit.model import Package

ROOT = Path(__file__).parents[1]
KINDS = (
    this_python(),
    TinyPackage("foo"),
    TinyPackage("old", ending=".tar.bz2", platform=PLATFORM),
    TinyPackage("bar", noarch="generic", depends=["foo >=1"]),
)
MIRROR_CHANNEL = "conda-forge"


def write_lock(path: Path, *packages: Package, channels: tuple[str, ...] = ("conda-forge",)) -> Path:
    """A conda-lock v1 file of the given packages."""
    rows = [
        {
            "name": p.name, "version": p.version, "manager": p.manager, "platform": p.platform,
            "dependencies": dict(p.depends), "url": p.url, "hash": {"md5": p.md5, "sha256": p.sha256},
            "category": "main", "optional": False,
        }
        for p in packages
    ]  # fmt: skip
    for row in rows:
        row["hash"] = {key: value for key, value in row["hash"].items() if value}
    platforms = sorted({p.platform for p in packages})
    document = {
        "version": 1,
        "metadata": {
            "content_hash": dict.fromkeys(platforms, "0" * 64),
            "channels": [{"url": channel, "used_env_vars": []} for channel in channels],
            "platforms": platforms,
            "sources": ["environment.yml"],
        },
        "package": rows,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def mirror_and_lock(folder: Path) -> tuple[Path, Path]:
    """A tree of channels, and a lock over it that names canonical URLs."""
    mirror = folder / "mirror"
    write_channel(mirror / MIRROR_CHANNEL, *KINDS)
    return mirror, write_lock(folder / "lock" / "conda-lock.yml", *(kind.locked() for kind in KINDS))


def _wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> None:
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for path, raw in files.items():
            wheel.writestr(zipfile.ZipInfo(path), raw)
        info = f"{stem}.dist-info"
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
        for path, text in (("METADATA", about), ("WHEEL", tag), ("RECORD", record)):
            wheel.writestr(zipfile.ZipInfo(f"{info}/{path}"), text)


def write_shelf(folder: Path, *, real: bool) -> Path:
    """Wheels of what envkit imports, said to be for any machine: as installed here, or their names alone."""
    folder.mkdir(parents=True)
    for line in {line for python in own.PYTHONS for line in own._requirements(python, PLATFORM)}:
        name, _equals, version = line.partition("==")
        files: dict[str, bytes] = {}
        if not version:
            version = "1.0"
        elif real:
            for file in metadata.distribution(name).files or ():
                path = Path(str(file.locate()))
                if ".dist-info" not in str(file) and ".." not in file.parts and path.suffix != ".pyc":
                    files[str(file)] = path.read_bytes()
        _wheel(folder, name, version, files)
    return folder


def pip_sees(shelf: Path) -> dict[str, str]:
    """The environment in which pip finds these wheels and no others."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "PIP_CONFIG_FILE": os.devnull}


def members(raw: bytes) -> list[tuple[tarfile.TarInfo, bytes]]:
    """What a tar has."""
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return [(each, tar.extractfile(each).read() if each.isreg() else b"") for each in tar.getmembers()]


def tar_of(rows: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A tar of these, ended as bundles are."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, raw in rows:
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))
        end = tar.offset
    return buffer.getvalue()[:end] + bytes(1024)


def call(
    *arguments: str, env: dict[str, str], within: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """The command line of this tree, to its end."""
    done = subprocess.run(
        [*within, sys.executable, "-m", "envkit", *arguments],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT), **env},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


def snapshot(folder: Path) -> list[str]:
    """Every path below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) if folder.exists() else []


def digest(raw: bytes) -> str:
    """The sha256 in hex."""
    return hashlib.sha256(raw).hexdigest()
