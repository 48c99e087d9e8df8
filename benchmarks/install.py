"""Installing a real PyTorch environment: envkit beside rattler alone, uv, and plain copying.

    make env MIRROR=wheels && python benchmarks/install.py [--rounds 5] [--speed 20]

The archives are those of the wheel channel, served from this machine's loopback. Every contender runs once in
each round, in a new process, so that a slow spell of the machine meets them all; what counts is the ratio of
the times of one round. Promised: cold and warm at most 1.15 times what `rattler.install` alone needs, an
install that finds nothing to do under 0.3 s of work, and behind a server of 20 MB/s at most 1.15 times the
time that the bytes alone take. uv installs the same wheels into a new venv, from the same server.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from envkit import paths
from envkit.lock import download_size, read_lock
from envkit.model import Lock

ROOT = Path(__file__).resolve().parents[1]
CHANNEL = "bench"
MEGABYTE = 1e6
BLOCK = 1 << 16
TEN_MINUTES = 600.0

RATTLER = """
import asyncio, json, sys
from rattler import PackageRecord, RepoDataRecord
from rattler.install import install
from rattler.networking import Client
from rattler.package_cache import PackageCache
from rattler.platform import Subdir
rows, prefix, cache = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
records = [
    RepoDataRecord(
        PackageRecord.from_index_json(row["index"], None, row["sha256"], row["md5"]),
        row["file"], row["url"], row["channel"],
    )
    for row in rows
]
asyncio.run(install(
    records, prefix, platform=Subdir(sys.argv[4]), package_cache=PackageCache.new_layered([cache]),
    client=Client(), show_progress=False,
))
sys.stdout.flush()
import os
os._exit(0)
"""


class Throttle:
    """At most `speed` bytes a second over all connections; no limit where it is 0."""

    def __init__(self) -> None:
        self.speed = 0.0
        self._lock = threading.Lock()
        self._free = 0.0

    def wait(self, count: int) -> None:
        if not self.speed:
            return
        with self._lock:
            self._free = max(self._free, time.monotonic()) + count / self.speed
            until = self._free
        time.sleep(max(0.0, until - time.monotonic()))


class Handler(SimpleHTTPRequestHandler):
    """A quiet server of a folder, as fast as it is allowed to be."""

    protocol_version = "HTTP/1.1"
    throttle = Throttle()

    def copyfile(self, source, outputfile) -> None:  # type: ignore[no-untyped-def]
        with suppress(ConnectionError):
            while block := source.read(BLOCK):
                self.throttle.wait(len(block))
                outputfile.write(block)

    def log_message(self, *_words: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The URL of a folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


@dataclass(kw_only=True)
class Bench:
    """The archives, the wheels, and where the contenders work: all on one file system."""

    folder: Path
    url: str
    lock: Path
    rows: list[dict[str, object]]
    platform: str
    environ: Mapping[str, str]
    size: int
    times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def prefix(self) -> Path:
        return self.folder / "work" / "env"

    def clear(self, *names: str) -> None:
        """Remove what a contender left, and let the disk settle before the next one is timed."""
        for name in ("work", *names):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.prefix.parent.mkdir()
        os.sync()

    def call(self, *words: object, keep: bool = False) -> float:
        """Seconds that a program takes; the benchmark ends where it fails."""
        began = time.perf_counter()
        done = subprocess.run(
            [str(word) for word in words], env=dict(self.environ), capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - began
        if done.returncode:
            sys.exit(f"{words}\n{done.stdout}{done.stderr}")
        return seconds

    def envkit(self) -> float:
        return self.call(
            sys.executable, "-m", "envkit", "install", "--lock", self.lock, "--prefix", self.prefix,
            "--mirror", self.url, "--only-mirrors", "-q",
        )  # fmt: skip

    def rattler(self) -> float:
        rows = self.folder / "rows.json"
        rows.write_text(json.dumps(self.rows), encoding="utf-8")
        return self.call(
            sys.executable, "-c", RATTLER, rows, self.prefix, self.folder / "rattler-cache", self.platform
        )

    def uv(self) -> float:
        uv = [sys.executable, "-m", "uv", "--no-config", "--cache-dir", self.folder / "uv-cache"]
        seconds = self.call(*uv, "venv", "-q", "--python", sys.executable, self.prefix)
        wheels = sorted(path.name for path in (self.folder / "served" / "wheels").glob("*.whl"))
        addresses = [f"{self.url}/wheels/{name.replace('+', '%2B')}" for name in wheels]
        python = self.prefix / "bin" / "python"
        return seconds + self.call(
            *uv, "pip", "install", "-q", "--no-deps", "--no-index", "--python", python, *addresses
        )

    def copied(self, *how: str) -> float:
        return self.call("cp", *how, self.model, self.prefix)

    def round(self, contenders: Mapping[str, Callable[[], float]], kind: str, *caches: str) -> None:
        """Each contender once, in a random order, with an empty place to work in."""
        names = list(contenders)
        random.shuffle(names)
        for name in names:
            self.clear(*caches)
            self.times.setdefault(f"{kind} {name}", []).append(contenders[name]())

    def tell(self, kind: str, limit: float) -> None:
        """A line a contender: its seconds, and envkit's as a ratio to it with its range over the rounds."""
        own = self.times[f"{kind} envkit"]
        for label, times in self.times.items():
            if not label.startswith(f"{kind} "):
                continue
            ratios = sorted(mine / theirs for mine, theirs in zip(own, times, strict=True))
            line = f"  {label:22} {statistics.median(times):6.2f} s"
            if times is not own:
                line += f"   envkit takes {statistics.median(ratios):5.2f} times that"
                line += f" ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            if label == f"{kind} rattler":
                line += f", promised {limit}"
            print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--environment", default=f"wheels-py{sys.version_info[0]}{sys.version_info[1]}-cpu")
    parser.add_argument("--speed", type=float, default=20.0, help="MB/s of the throttled server")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="bench-", dir=paths.home()) as name:
        folder = Path(name)
        bench_lock, files = prepare(folder, given.environment)
        with serving(folder / "served") as url:
            run(set_up(folder, url, bench_lock, files), given.rounds, given.speed * MEGABYTE)
    promises(given.speed * MEGABYTE)


def prepare(folder: Path, environment: str) -> tuple[Lock, dict[str, Path]]:
    """A wheel-channel lock with its archives and, for uv, the wheels they were made from."""
    path = paths.state() / "locks" / environment / "conda-lock.yml"
    if not path.exists():
        sys.exit(f"{environment} is not here: run `make env MIRROR=wheels` first")
    lock = read_lock(path)
    files = {package.url: Path(unquote(urlsplit(package.url).path)) for package in lock.packages}
    for package in lock.packages:
        place = folder / "served" / CHANNEL / package.subdir / files[package.url].name
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(files[package.url], place)
    download_wheels(paths.environments() / environment, folder / "served" / "wheels")
    return lock, files


def download_wheels(environment: Path, folder: Path) -> None:
    """The wheels of an environment's distributions, through the user's own pip."""
    listed = subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "list", "--format=freeze"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*download, "-d", folder, *listed], check=True)


def set_up(folder: Path, url: str, lock: Lock, files: Mapping[str, Path]) -> Bench:
    """The lock under canonical addresses, rattler's records of the same archives, and one finished prefix."""
    text = lock.path.read_text(encoding="utf-8")
    for package in lock.packages:
        address = f"https://conda.anaconda.org/{CHANNEL}/{package.subdir}/{package.file_name}"
        text = text.replace(package.url, address)
    ours = folder / "bench.yml"
    ours.write_text(text, encoding="utf-8")
    unpacked = paths.cache() / "pkgs"
    rows: list[dict[str, object]] = [
        {
            "index": str(unpacked / files[package.url].name.removesuffix(".conda") / "info" / "index.json"),
            "sha256": package.sha256,
            "md5": package.md5,
            "file": files[package.url].name,
            "url": f"{url}/{CHANNEL}/{package.subdir}/{files[package.url].name}",
            "channel": f"{url}/{CHANNEL}",
        }
        for package in lock.packages
    ]
    environ = {**os.environ, "ENVKIT_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    environ.pop("ENVKIT_CACHE", None)
    bench = Bench(
        folder=folder,
        url=url,
        lock=ours,
        rows=rows,
        platform=lock.platforms[0],
        size=sum(path.stat().st_size for path in files.values()),
        environ=environ,
    )
    bench.clear()
    bench.envkit()
    shutil.copytree(bench.prefix, bench.model, symlinks=True)
    count = sum(len(names) for _folder, _folders, names in os.walk(bench.model))
    print(f"{len(rows)} archives, {bench.size / MEGABYTE:.0f} MB, {count} files; {os.cpu_count()} CPUs")
    return bench


def run(bench: Bench, rounds: int, speed: float) -> None:
    cold: dict[str, Callable[[], float]] = {"envkit": bench.envkit, "rattler": bench.rattler, "uv": bench.uv}
    warm = dict(cold)
    cold["cp -r"] = functools.partial(bench.copied, "-r")
    warm["cp -al"] = functools.partial(bench.copied, "-al")
    caches = ("home", "rattler-cache", "uv-cache")
    for number in range(rounds):
        bench.round(cold, "cold", *caches)
        for contender in (bench.envkit, bench.rattler, bench.uv):
            bench.clear()
            contender()
        bench.round(warm, "warm")
        print(f"  round {number + 1} of {rounds} done", file=sys.stderr)
    for kind in ("cold", "warm"):
        bench.tell(kind, 1.15)
    nothing_to_do(bench, rounds)
    throttled(bench, speed, caches)


def nothing_to_do(bench: Bench, rounds: int) -> None:
    """What a second install costs beyond the start of the program."""
    bench.clear()
    bench.envkit()
    work = [
        bench.envkit() - bench.call(sys.executable, "-m", "envkit", "--version") for _ in range(rounds + 2)
    ]
    print(f"  nothing to do          {statistics.median(work):6.2f} s of work, promised 0.3")


def throttled(bench: Bench, speed: float, caches: tuple[str, ...]) -> None:
    least = bench.size / speed
    Handler.throttle.speed = speed
    bench.clear(*caches)
    seconds = bench.envkit()
    Handler.throttle.speed = 0
    print(
        f"  at {speed / MEGABYTE:.0f} MB/s             {seconds:6.2f} s, {seconds / least:.2f} times"
        f" the bytes alone ({least:.1f} s), promised 1.15"
    )


def promises(speed: float) -> None:
    """How long the shipped locks take to download at this speed, and which speed ten minutes need."""
    print(f"shipped locks (linux-64)     to fetch   at {speed / MEGABYTE:.0f} MB/s   for ten minutes")
    for path in sorted((ROOT / "environments").glob("*/conda-lock.yml")):
        size = download_size(read_lock(path), "linux-64")
        if size:
            print(
                f"  {path.parent.name:22} {size / MEGABYTE:8.0f} MB {size / speed:9.0f} s"
                f" {size / TEN_MINUTES / MEGABYTE:10.1f} MB/s"
            )


if __name__ == "__main__":
    main()
