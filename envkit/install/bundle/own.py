"""envkit itself and what `envkit install` imports, as wheels for a machine without pip and network."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import cast

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

import envkit
from envkit.errors import Error
from envkit.files import parse_json, sha256_of, write_atomically
from envkit.messages import _
from envkit.progress import Observer

__all__ = ["IMPORTED", "PYTHONS", "OwnWheels", "envkit_wheel", "own_wheels"]

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""The versions of Python that `install.sh` of a bundle runs with."""

IMPORTED = ("click", "filelock", "jinja2", "nvidia-ml-py", "packaging", "py-rattler", "pyyaml", "rich")
"""What `envkit install --from` imports, bars on a terminal included; a test runs it with nothing else.
Neither what the solver needs (conda-lock) nor what opens connections (httpx) is."""

_FORMAT = 1
_NOTE = "wheels.json"
_GLIBC = (
    "manylinux_2_17",
    "manylinux2014",
    "manylinux_2_12",
    "manylinux2010",
    "manylinux1",
    "manylinux_2_28",
)
"""The oldest C library first: who knows what the other machine has."""

_MACHINES = {"linux-64": "x86_64"}
_SUFFIXES = frozenset((".py", ".yaml", ".json", ".mo", ".po", ".sh", ".typed"))


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnWheels:
    """Wheels by file name, and the versions of Python that all of envkit's needs are there for."""

    files: Mapping[str, Path]
    pythons: tuple[str, ...]


def own_wheels(platform: str, *, cache: Path, observer: Observer, offline: bool = False) -> OwnWheels:
    """The wheels of `IMPORTED`, of the versions that run this, for `platform` and each of `PYTHONS`.

    The user's pip fetches them, once: they are kept in the cache, so that the same bundle can be made again.
    A version of Python that pip finds no wheels for is left out. Raises PipError for what pip could not do,
    Error where that would need a connection that may not be made.
    """
    from filelock import FileLock

    from envkit.fetch.disk import private_folder, writing
    from envkit.fetch.use import use

    wanted = {python: tuple(sorted(_requirements(python, platform))) for python in PYTHONS}
    key = hashlib.sha256(json.dumps([_FORMAT, platform, wanted], sort_keys=True).encode()).hexdigest()[:32]
    use(cache, observer)
    root = cache / "tools"
    private_folder(root)
    folder = root / key
    with writing(root), FileLock(root / ".lock", mode=0o600):
        found = _kept(folder)
        if found is not None:
            return found
        if offline:
            raise Error(
                _("envkit's own wheels are not in the cache, and no connection may be made"),
                _("run the same command once without --offline"),
            )
        observer.note(_("fetching what envkit itself needs on the other machine, by pip"))
        work = root / ".work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        pythons = tuple(_fetch(wanted, platform, work, observer))
        wheels = sorted(path.name for path in work.glob("*.whl"))
        note = {"pythons": pythons, "wheels": {name: sha256_of(work / name) for name in wheels}}
        write_atomically(work / _NOTE, json.dumps(note, indent=1, sort_keys=True) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
        return OwnWheels(files={name: folder / name for name in wheels}, pythons=pythons)


def envkit_wheel() -> tuple[str, bytes]:
    """The envkit that runs this as a wheel, its name and its bytes: from a source tree or an installation."""
    root = Path(envkit.__file__).parent
    name = f"envkit-{envkit.__version__}"
    files = {
        f"envkit/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file() and not _is_hidden(path.relative_to(root))
    }
    about = f"Metadata-Version: 2.1\nName: envkit\nVersion: {envkit.__version__}\n"
    files[f"{name}.dist-info/METADATA"] = about.encode()
    files[f"{name}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: envkit\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = f"{name}.dist-info/RECORD"
    files[record] = "".join(f"{path},,\n" for path in [*files, record]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as wheel:  # what deflates differs between machines
        for path, raw in files.items():
            wheel.writestr(zipfile.ZipInfo(path), raw)
    return f"{name}-py3-none-any.whl", buffer.getvalue()


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _requirements(python: str, platform: str) -> Iterator[str]:
    """What must be there for one version of Python, each pinned to the release that is installed here."""
    environment: dict[str, str | AbstractSet[str]] = {
        **cast(Mapping[str, str], default_environment()),
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_machine": _machine(platform),
        "extra": "",
    }
    pending, seen = [Requirement(name) for name in IMPORTED], set()
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # needed there alone, such as by an older Python
            yield f"{name}{requirement.specifier}"
            continue
        yield f"{name}=={distribution.version}"
        needed = map(Requirement, distribution.requires or ())
        pending += [each for each in needed if each.marker is None or each.marker.evaluate(environment)]


def _fetch(
    wanted: Mapping[str, Sequence[str]], platform: str, folder: Path, observer: Observer
) -> Iterator[str]:
    """Fetch the wheels; the versions of Python that all are there for, in order."""
    from envkit.wheels import pip

    problem: pip.PipError | None = None
    machine, found = _machine(platform), False
    places = [word for glibc in _GLIBC for word in ("--platform", f"{glibc}_{machine}")]
    for python in PYTHONS:
        missing = [line for line in wanted[python] if not _is_there(line, python, folder)]
        if missing:
            tag = "cp" + python.replace(".", "")
            try:
                pip.run([
                    "download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder),
                    "--python-version", python, "--implementation", "cp",
                    "--abi", tag, "--abi", "abi3", "--abi", "none", *places, *missing,
                ])  # fmt: skip
            except pip.PipError as failed:
                if failed.kind != "missing":
                    raise
                observer.note(
                    _("no wheels for Python {python}: install.sh of the bundle will not run with it").format(
                        python=python
                    )
                )
                problem = failed
                continue
        found = True
        yield python
    if problem is not None and not found:
        raise problem


def _is_there(line: str, python: str, folder: Path) -> bool:
    """Whether a wheel that was fetched for an older Python does for this one too."""
    requirement = Requirement(line)
    minor = int(python.partition(".")[2])
    for path in folder.glob("*.whl"):
        name, version, _build, tags = parse_wheel_filename(path.name)
        if name != canonicalize_name(requirement.name) or version not in requirement.specifier:
            continue
        for tag in tags:
            pure = tag.interpreter in ("py3", f"py3{minor}") and tag.abi == "none"
            stable = (
                tag.abi == "abi3" and tag.interpreter.startswith("cp3") and int(tag.interpreter[3:]) <= minor
            )
            if pure or stable:
                return True
    return False


def _kept(folder: Path) -> OwnWheels | None:
    """What an earlier call fetched; None where there is nothing, or something else by now."""
    try:
        note = parse_json((folder / _NOTE).read_bytes())
        files = {str(name): folder / str(name) for name in note["wheels"]}
        whole = all(sha256_of(path) == note["wheels"][name] for name, path in files.items())
        return OwnWheels(files=files, pythons=tuple(map(str, note["pythons"]))) if whole and files else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _machine(platform: str) -> str:
    return _MACHINES.get(platform, platform.removeprefix("linux-"))
