"""Clocks that are wrong: nothing here may be decided by the time of day."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from test_install_killed import KINDS, check_cache

from envkit.install import is_current, read_environment, tidy

FUTURE = 4_102_444_800  # 2100-01-01
SHIFTED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
/* The wall clock jumps by what the file says, back and forth at every tenth call; the others do not. */
static long shift(void) {
    static long calls;
    return (++calls / 10) % 2 ? SHIFT : 0;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += shift();
    return code;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


def date_everything(folder: Path, moment: float) -> None:
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (moment, moment), follow_symlinks=False)


def test_everything_is_dated_in_the_future(channel, installer, tree_hash, tmp_path):
    """As after a clock that ran ahead was set right: environment, cache, what a kill left."""
    installer.cache = tmp_path / "cache"
    lock = channel.lock()
    expected = tree_hash(installer(lock).prefix)
    (installer.prefix.parent / ".tiny.envkit-lock").touch()
    (installer.prefix.parent / ".tiny.envkit-stage-4194304").mkdir()
    date_everything(installer.prefix.parent, FUTURE)
    date_everything(installer.cache, FUTURE)

    assert is_current(read_environment("tiny"), lock)
    tidy(installer.prefix)
    assert installer.beside() == []
    assert tree_hash(installer(lock).prefix) == expected
    assert installer.beside() == []
    pristine = tmp_path / "pristine"
    pristine.mkdir()
    check_cache(installer.cache, pristine, tree_hash)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
@pytest.mark.parametrize("seconds", [-86400 * 400, 86400 * 400], ids=["back", "ahead"])
def test_the_clock_jumps_while_it_works(channel, installer, tree_hash, tmp_path, seconds):
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(SHIFTED)
    options = ["-shared", "-fPIC", f"-DSHIFT={seconds}"]
    subprocess.run(["cc", *options, source, "-o", library, "-ldl"], check=True)
    installer.cache = tmp_path / "cache"
    lock = channel.lock()
    environ = os.environ | {"LD_PRELOAD": str(library)}
    years = subprocess.run(
        ["python3", "-c", "import time; print(*{int(time.time() / 8e6) for _ in range(50)})"],
        env=environ, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert len(years) == 2, "the clock does not jump"

    began = time.monotonic()
    for _ in range(2):
        done = subprocess.run(
            installer.command(lock), env=environ, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < 100
    jumped = tree_hash(installer.prefix)
    assert installer.beside() == []
    assert jumped == tree_hash(installer(lock).prefix)
    pristine = tmp_path / "pristine"
    pristine.mkdir()
    assert check_cache(installer.cache, pristine, tree_hash) == len(KINDS)
