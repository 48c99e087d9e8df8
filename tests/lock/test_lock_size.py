"""What a lock has to download, noted by whoever made it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from envkit.lock import download_size, read_lock, size_notes
from envkit.matrix import read_matrix

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "environments").glob("*/conda-lock.yml"))


def test_archives_of_unknown_size_count_as_nothing() -> None:
    notes = size_notes({"linux-64": [3, 4], "osx-arm64": [3, None], "win-64": [None], "linux-aarch64": []})
    assert notes == {"envkit-bytes-linux-64": "7", "envkit-bytes-osx-arm64": "3"}


@pytest.mark.parametrize("noted", [None, 7, "", "seven", "-1", "1e9", "٣"])
def test_a_note_that_is_no_number_counts_as_none(noted: object) -> None:
    lock = read_lock(LOCKS[0])
    changed = replace(lock, metadata={"custom_metadata": {"envkit-bytes-linux-64": noted}})
    assert download_size(changed, "linux-64") is None


def test_every_committed_lock_says_how_much_it_is() -> None:
    variants = read_matrix(ROOT / "environments" / "matrix.yaml").variants
    assert LOCKS
    for path in LOCKS:
        lock = read_lock(path)
        (variant,) = [variant for variant in variants if variant.name == path.parent.name]
        for platform in variant.platforms:
            size = download_size(lock, platform)
            assert size is not None and 100e6 < size < 10e9, (path, platform)
