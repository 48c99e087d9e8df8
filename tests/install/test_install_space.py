"""Disks without room: told before the first byte where that is certain, with numbers; nothing gets lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from tinychannel import PLATFORM, Channel, TinyPackage

from envkit.host import read_host
from envkit.install import plan, preview
from envkit.install.preflight import demand
from envkit.install.work import measure
from envkit.model import Status


def _may_mount():
    command = ["unshare", "-m", "true"]
    return shutil.which("unshare") and subprocess.run(command, capture_output=True).returncode == 0


mounts = pytest.mark.skipif(not _may_mount(), reason="no mount namespaces here")

# Small places for prefix, cache or both, in a mount namespace; then what the installation left there.
IN_SMALL_PLACES = """
while [ "$1" != -- ]; do mount -t tmpfs -o "$1" tmpfs "$2" || exit 99; places="$places $2"; shift 2; done
shift; "$@"; code=$?; cd /
for place in $places; do ls -A "$place"; done
exit $code
"""


def within(places, command):
    """Run a command with a tmpfs mounted at each of `places` (options, folder)."""
    mounted = [word for options, folder in places for word in (options, str(folder))]
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", IN_SMALL_PLACES, "sh", *mounted, "--", *command],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture
def bulky(channel: Channel):
    """The channel with 100 files of 4 kB besides, and a lock of it all."""
    files = {f"share/bulk/{number}": os.urandom(4000) for number in range(100)}
    channel.add(TinyPackage("bulk", files=files, noarch="generic"))
    return channel.lock()


@mounts
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("size=8k", "no room on the disk of"),
        ("size=200k", "205 kB, 4"),
        ("size=400k", "is full: 0 B free of 410 kB; the environment needs about 401 kB"),
        ("size=480k", "the disk of"),
        ("nr_inodes=1", "no inodes left of 1"),
        ("nr_inodes=2", "0 inodes free"),
        ("nr_inodes=3", "inodes free, 1"),
        ("nr_inodes=90", "inodes free, 1"),
        ("nr_inodes=180", "no inodes left of 180; the environment needs about"),
    ],
)
def test_a_full_prefix(bulky, installer, options, said):
    installer(bulky)  # so that the cache is complete, on another file system
    prefix = installer.prefix.parent.parent / "small" / "tiny"
    prefix.parent.mkdir()
    done = within([(options, prefix.parent)], installer.command(bulky, prefix))
    assert done.returncode == 3, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    told = next(line for line in lines if "the disk of" in line)
    assert said in told
    assert "ENVKIT_HOME" in lines[-1], f"something was left: {lines}"
    assert "Traceback" not in done.stderr


@mounts
@pytest.mark.parametrize("options", ["size=64k", "size=300k", "size=480k", "nr_inodes=6", "nr_inodes=100"])
def test_a_full_cache(bulky, installer, tmp_path, options):
    installer.cache = tmp_path / "small"
    installer.cache.mkdir()
    done = within([(options, installer.cache)], installer.command(bulky))
    assert done.returncode == 3, done.stdout + done.stderr
    told = next(line for line in done.stdout.splitlines() if "disk of" in line)
    assert "free" in told or "no inodes" in told
    assert "Traceback" not in done.stderr
    assert installer.beside() == []
    assert not installer.prefix.exists()


FILLED_MEANWHILE = """
import subprocess, sys, time
from contextlib import suppress
delay, filler, *command = sys.argv[1:]
child = subprocess.Popen(command)
time.sleep(float(delay))
with suppress(OSError), open(filler, "wb", buffering=0) as file:
    while True:
        file.write(bytes(4096))
code = child.wait()
import os
os.unlink(filler)
again = subprocess.run(command).returncode
print("codes", code, again, flush=True)
"""


@mounts
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 11))])
def test_a_disk_that_fills_up_meanwhile(bulky, installer, tmp_path, seed):
    """Cache and prefix on one disk; whatever the moment, the next run with room ends well."""
    place = tmp_path / "small"
    place.mkdir()
    installer.cache = place / "cache"
    prefix = place / "envs" / "tiny"
    command = installer.command(bulky, prefix)
    delay = 0.15 * seed
    filling = [sys.executable, "-c", FILLED_MEANWHILE, str(delay), str(place / "filler"), *command]
    check = (
        'test -z "$(ls -A "$2" | grep stage)" && grep -q hello "$1/bin/../lib/"*/site-packages/greeting.py'
    )
    done = within(
        [("size=20m", place)],
        ["sh", "-c", f'p=$1; e=$2; shift 2; "$@" && set -- "$p" "$e" && {check}', "sh", str(prefix),
         str(prefix.parent), *filling],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    codes = next(line for line in done.stdout.splitlines() if line.startswith("codes")).split()[1:]
    assert codes[0] in ("0", "3"), done.stdout + done.stderr
    assert codes[1] == "0", done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if codes[0] == "3":
        assert "disk of" in done.stdout


def test_what_is_needed_is_counted(bulky, installer, tmp_path):
    wanted = plan(bulky)
    cold = measure(wanted, cache=tmp_path / "nothing")
    assert cold.fetch == ()  # the channel is a folder
    assert len(cold.unpack) == len(wanted.conda)
    assert all(part.bytes for part in cold.unpack)
    installer(bulky)
    warm = measure(wanted, cache=installer.cache)
    assert warm.unpack == ()
    sizes = {part.package.name: part for part in warm.link}
    assert (sizes["bulk"].bytes, sizes["bulk"].files, sizes["bulk"].rewritten) == (400_000, 100, 0)
    assert sizes["python"].rewritten > 0
    (one,) = demand(warm, installer.prefix, installer.cache)
    assert one.least == sizes["python"].rewritten, "hard links take nothing"


def test_downloads_are_counted_and_what_was_begun_is_taken_off(channel, tmp_path):
    far = replace(channel.packages[0], url="https://conda.anaconda.org/conda-forge/noarch/x-1-0.conda")
    wanted = plan(channel.lock(far))
    (part,) = measure(wanted, cache=tmp_path, sizes={far.sha256: 1000}).fetch
    assert part.bytes == 1000
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / f"{far.sha256}.partial").write_bytes(bytes(300))
    (part,) = measure(wanted, cache=tmp_path, sizes={far.sha256: 1000}).fetch
    assert part.bytes == 700
    (part,) = measure(wanted, cache=tmp_path).fetch
    assert part.bytes is None


def test_what_is_likely_warns_and_what_is_certain_fails(channel, tmp_path):
    state = os.statvfs(tmp_path)
    free = state.f_bavail * state.f_frsize
    far = replace(channel.packages[0], url="https://conda.anaconda.org/conda-forge/noarch/x-1-0.conda")
    lock = channel.lock(far)

    def space(size):
        found = preview(
            lock,
            tmp_path / "e",
            name="e",
            cache=tmp_path / "cache",
            sizes={far.sha256: size},
            host=read_host(),
        )
        return found.preflight.checks[0], found.possible

    assert space(1000)[0].status is Status.OK
    check, possible = space(free // 2)
    assert (check.status, possible) == (Status.WARN, True)
    check, possible = space(free * 2)
    assert (check.status, possible) == (Status.FAIL, False)
    assert "needed at least" in check.summary
    assert check.hint


def test_the_lock_says_how_much_it_is(channel, tmp_path):
    """The format has no sizes of packages; what is known is the sum, and what the packages here are of it."""
    far = [
        replace(package, url=f"https://conda.anaconda.org/conda-forge/noarch/{package.file_name}")
        for package in channel.packages
    ]
    lock = replace(channel.lock(*far), metadata={"custom_metadata": {f"envkit-bytes-{PLATFORM}": "4000000"}})
    host = read_host()
    found = preview(lock, tmp_path / "e", name="e", cache=tmp_path / "c", host=host)
    assert (found.work.unsized, found.work.is_sure) == (4_000_000, True)
    assert found.preflight.checks[0].data["least"] == 4_000_000
    (tmp_path / "c" / "downloads").mkdir(parents=True)
    (tmp_path / "c" / "downloads" / f"{far[0].sha256}.conda").write_bytes(bytes(10))
    found = preview(lock, tmp_path / "e", name="e", cache=tmp_path / "c", host=host)
    assert len(found.work.fetch) == len(far) - 1
    assert (found.work.unsized, found.work.is_sure) == (3_000_000, False)
    assert found.preflight.checks[0].data["least"] == 10
