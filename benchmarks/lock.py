"""Locking every shipped variant: one `envkit lock --all`, and conda-lock with a call a variant.

    python benchmarks/lock.py [--channels DIR] [--rounds 3]

conda-lock is unmodified and runs over the same solver and the same records, through `envkit-conda`. Both run
in turn within each round, so that a slow spell of the machine meets both; what is fetched or unpacked once is
there before the first round. Promised: at least 4 times faster, under 1.5 GB of memory, the same packages;
and a lock is read in at most 1.3 times what PyYAML's C loader alone takes.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from envkit.lock import read_lock
from envkit.lock.pypi_names import conda_lock_map
from envkit.matrix import Matrix, read_matrix
from envkit.model import Spec
from envkit.render import render

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ENVKIT_SHARED", ROOT.parent / "shared"))
PROGRAMS = Path(sys.executable).parent
READS = 15


class Cost(NamedTuple):
    """Seconds of wall time, of CPU time (children included), and the most memory held, in bytes."""

    wall: float
    cpu: float
    memory: int


class Workshop:
    """A project of its own with the shipped matrix, and an environment in which nothing else is seen."""

    def __init__(self, folder: Path, channels: Path) -> None:
        self.project = folder / "project"
        for name in ("environments", "templates"):
            shutil.copytree(ROOT / name, self.project / name)
        self.matrix: Matrix = read_matrix(self.project / "environments" / "matrix.yaml")
        self.environ = {
            "HOME": str(folder),
            "PATH": f"{PROGRAMS}:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "ENVKIT_HOME": str(folder / "home"),
            "ENVKIT_CACHE": str(folder / "cache"),
            "ENVKIT_MIRROR": channels.resolve().as_uri(),
        }

    def specs(self) -> list[Spec]:
        """The variants that are locked and committed, rendered."""
        return [
            render(self.matrix, variant) for variant in self.matrix.variants if self.matrix.commits(variant)
        ]

    def forget(self, folder: Path) -> None:
        """Take the locks away, so that every round is the first."""
        for lock in (*self.project.glob("environments/*/conda-lock.yml"), *folder.glob("*.yml")):
            lock.unlink()

    def ours(self) -> Cost:
        """Lock all in one process."""
        command = [sys.executable, "-m", "envkit", "lock", "--all", "--quiet", "--json"]
        return measured(command, self.environ, self.project)

    def theirs(self, spec: Spec, target: Path) -> Cost:
        """Lock one variant by conda-lock, told the same of the machines."""
        source, machines = target.with_suffix(".environment.yml"), target.with_suffix(".machines.yml")
        source.write_text(spec.text, encoding="utf-8")
        machines.write_text(yaml.safe_dump(machines_of(spec)), encoding="utf-8")
        command = [
            str(PROGRAMS / "conda-lock"), "lock", "--conda", "envkit-conda",
            "--file", str(source), "--lockfile", str(target),
            "--virtual-package-spec", str(machines), "--pypi_to_conda_lookup_file", conda_lock_map(),
        ]  # fmt: skip
        for platform in spec.variant.platforms:
            command += ["--platform", platform]
        return measured(command, self.environ, target.parent)


def machines_of(spec: Spec) -> Mapping[str, Any]:
    """The virtual packages of a spec, as conda-lock's `--virtual-package-spec` reads them."""
    return {
        "subdirs": {
            platform: {
                "packages": {
                    one.name: one.version if one.build == "0" else f"{one.version} {one.build}"
                    for one in packages
                }
            }
            for platform, packages in spec.virtual_packages.items()
        }
    }


def measured(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> Cost:
    """Run a command to its end. Exits with its output on failure."""
    began = time.perf_counter()
    child = subprocess.Popen(
        command, env=dict(environ), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert child.stdout is not None
    said = child.stdout.read()
    _pid, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if child.returncode:
        sys.exit(f"{' '.join(command)}\n{said}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def packages_of(path: Path) -> list[tuple[str, ...]]:
    """The package section, as far as it decides what is installed, in one order."""
    return sorted(
        (p.platform, p.manager, p.name, p.version, p.url, p.sha256, p.md5 or "", p.category)
        for p in read_lock(path).packages
    )


def reading_ratio(paths: Sequence[Path]) -> float:
    """CPU time of read_lock in that of PyYAML's C loader alone: the median of pairs taken turn by turn."""
    ratios = []
    for _round in range(READS):
        alone = timed(lambda: [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in paths])
        whole = timed(lambda: [read_lock(path) for path in paths])
        ratios.append(whole / alone)
    return statistics.median(ratios)


def timed(work: Callable[[], object]) -> float:
    """Seconds of CPU time; what another measurement left to be collected is not counted."""
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels", type=Path, default=SHARED / "channels", help="tree of channels")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="envkit-benchmark-") as name:
        folder = Path(name)
        workshop = Workshop(folder, options.channels)
        specs = workshop.specs()
        solves = sum(len(spec.variant.platforms) for spec in specs)
        print(f"{len(specs)} variants, {solves} solves, {os.cpu_count()} CPUs")
        workshop.ours()
        walls, cpus, memory = [], [], 0
        for number in range(options.rounds):
            workshop.forget(folder)
            own = workshop.ours()
            others = [workshop.theirs(spec, folder / f"{spec.variant.name}.yml") for spec in specs]
            wall, cpu = (sum(cost[column] for cost in others) for column in (0, 1))
            walls.append(wall / own.wall)
            cpus.append(cpu / own.cpu)
            memory = max(memory, own.memory)
            print(
                f"round {number + 1}: envkit {own.wall:.1f} s ({own.cpu:.1f} CPU), conda-lock {wall:.1f} s"
                f" ({cpu:.1f} CPU), ratio {walls[-1]:.1f} ({cpus[-1]:.1f})"
            )
        made = [workshop.project / "environments" / spec.variant.name / "conda-lock.yml" for spec in specs]
        unlike = [
            path.parent.name
            for path in made
            if packages_of(path) != packages_of(folder / f"{path.parent.name}.yml")
        ]
        print(
            f"faster: {statistics.median(walls):.1f} times (least {min(walls):.1f}), promised 4;"
            f" by CPU time {statistics.median(cpus):.1f} times"
        )
        print(f"peak memory: {memory / 1e9:.2f} GB, promised under 1.5")
        print(f"reading a lock: {reading_ratio(made):.2f} times the C loader alone, promised at most 1.3")
        print(f"other packages than conda-lock's: {', '.join(unlike) or 'none'}")


if __name__ == "__main__":
    main()
