"""The nouns of envkit, one frozen dataclass each.

    matrix.yaml -> Variant -> render -> Spec -> solve -> Lock
        -> fetch -> install -> Environment -> checks -> Report

A noun holds what was parsed and checked at the edge; nothing here reads a file or opens a connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal

CPU = "cpu"

Source = Literal["pytorch", "conda-forge", "pip", "wheels"]
Manager = Literal["conda", "pip"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One cell of the matrix: the axes that decide an environment.

    `python` is a minor version ("3.11"). `accelerator` is "cpu" or a CUDA runtime version ("11.8").
    `torch` is a conda version constraint ("2.3.*", "<=2.5.1", ">=2.0"). `platforms` are conda subdirs.
    """

    name: str
    python: str
    accelerator: str
    torch: str
    source: Source
    platforms: tuple[str, ...]
    extras: tuple[str, ...] = ()

    @property
    def cuda(self) -> str | None:
        """The CUDA runtime version asked for, or None where a CPU build is."""
        return None if self.accelerator == CPU else self.accelerator


@dataclass(frozen=True, kw_only=True, slots=True)
class VirtualPackage:
    """A property of the machine that the solver sees as a package: `__glibc=2.17=0`."""

    name: str
    version: str
    build: str = "0"

    def __str__(self) -> str:
        return f"{self.name}={self.version}={self.build}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """A rendered environment.yml and what must be known beside it to solve it.

    `channels` are names in priority order ("pytorch"), or the `file://` URL of a local channel; never a
    mirror and never "nodefaults". `virtual_packages` holds, for each platform, what the solver is told
    of the target machine. `digest` is the sha256 (hex) of the text and the virtual packages. `origin` is the
    file to edit for another text. `listed` is false where the matrix has no such variant: what it is made
    of was then asked for with options.
    """

    variant: Variant
    text: str
    channels: tuple[str, ...]
    virtual_packages: Mapping[str, tuple[VirtualPackage, ...]]
    digest: str
    origin: str = "environments/matrix.yaml"
    listed: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """One package of a lock on one platform.

    `url` is canonical. `depends` maps names to version constraints as conda-lock writes them; for conda
    packages only. `hashes` are hex. `category` is conda-lock's group, "main" unless a lock says otherwise.
    """

    name: str
    version: str
    manager: Manager
    platform: str
    url: str
    sha256: str
    md5: str | None = None
    depends: Mapping[str, str] = field(default_factory=dict)
    category: str = "main"

    @property
    def file_name(self) -> str:
        """The archive's name, as in the URL (still percent-encoded where the URL is)."""
        return self.url.split("#", 1)[0].split("?", 1)[0].rsplit("/", 1)[-1]

    @property
    def subdir(self) -> str:
        """The channel folder of a conda package: "linux-64" or "noarch"; empty where the URL has none."""
        return self.url.split("#", 1)[0].split("?", 1)[0].rpartition("/")[0].rpartition("/")[2]

    @property
    def build(self) -> str:
        """The build string of a conda package, from its file name; empty for pip."""
        if self.manager == "pip":
            return ""
        stem = self.file_name.removesuffix(".conda").removesuffix(".tar.bz2")
        return stem.rsplit("-", 1)[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """A conda-lock v1 file. `digest` is the Spec's digest it was made for (None in a stranger's lock)."""

    path: Path
    digest: str | None
    channels: tuple[str, ...]
    platforms: tuple[str, ...]
    packages: tuple[Package, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def on(self, platform: str) -> tuple[Package, ...]:
        """The packages for one platform, in the order of the file."""
        return tuple(package for package in self.packages if package.platform == platform)


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """An installed prefix, with what envkit wrote down about it when it was made.

    `asked` is the Variant it was installed for (None for an environment from a bare lock or a stranger);
    `lock_sha256` is the digest of the bytes of the lock it came from.
    """

    name: str
    prefix: Path
    asked: Variant | None = None
    lock_sha256: str | None = None

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One GPU as NVML describes it. `capability` is its compute capability, "8.6"; memory in bytes."""

    index: int
    name: str
    capability: str | None = None
    memory: int | None = None
    uuid: str | None = None
    mig: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """Facts of this machine. None means "could not be read", never zero. Sizes in bytes, CPUs in cores.

    `driver` is the NVIDIA driver ("535.104.05"), `driver_cuda` the newest CUDA version it supports.
    `cpus` is what may really be used: the least of affinity, cgroup quota and cpuset.
    `memory_limit` is the least of the machine's memory and every cgroup above this process.
    `scheduler` names a batch system whose commands are here ("slurm"), `override_cuda` CONDA_OVERRIDE_CUDA.
    `system` is the version that conda's `__linux`, `__osx` or `__win` has here (of the kernel, on Linux);
    `cpu_level` the x86-64 level of the processor (1 to 4, as in `x86_64_v3`).
    """

    platform: str
    system: str | None = None
    cpu_level: int | None = None
    glibc: str | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    gpus: tuple[Gpu, ...] = ()
    cpus: float | None = None
    memory_limit: int | None = None
    shm_size: int | None = None
    container: str | None = None
    scheduler: str | None = None
    wsl: bool = False
    override_cuda: str | None = None


class Status(str, Enum):
    """What became of a check. SKIP and CRASH carry a reason; neither is ever OK."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"
    CRASH = "crash"


class Severity(str, Enum):
    """How much a failed check matters, in the words of the failure catalogue."""

    FATAL = "fatal"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One finding. `id` is `area.kebab-case` and never changes; `data` is JSON; `seconds` is wall time."""

    id: str
    status: Status
    severity: Severity
    summary: str
    detail: str = ""
    hint: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def bad(self) -> bool:
        """Whether this check makes the verdict negative."""
        return self.status in (Status.FAIL, Status.CRASH) and self.severity in (Severity.FATAL, Severity.HIGH)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The checks made of one subject, in the order they ran."""

    subject: str
    checks: tuple[Check, ...]
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not any(check.bad for check in self.checks)
