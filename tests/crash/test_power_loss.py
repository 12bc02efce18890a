"""The machine loses power: what was acknowledged is there, and the file is whole."""

from __future__ import annotations

import random

import pytest

from tests.support.powerloss import SECTOR, Disk
from tests.torture import powerloss

SEEDS = 50  # a test


@pytest.mark.req("R11", "R23")
@pytest.mark.parametrize("first", range(0, 500, SEEDS))
def test_power_is_lost_and_nothing_acknowledged_is(first: int) -> None:
    for seed in range(first, first + SEEDS):
        powerloss.run(seed)


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_this_disk_does_lose_what_was_not_synced(synchronous: str) -> None:
    """Without the sync at each commit the same seeds fail: the harness can see a loss."""
    assert any(_loses(seed, synchronous) for seed in range(SEEDS))


def _loses(seed: int, synchronous: str) -> bool:
    try:
        powerloss.run(seed, synchronous=synchronous)
    except AssertionError:
        return True
    return False


def test_what_was_synced_survives_and_what_was_not_may_be_torn() -> None:
    disk = Disk({"file": b"old" * 1000})
    disk.trace += [("write", "file", 0, b"synced"), ("sync", "file"), ("write", "file", 0, b"x" * 4 * SECTOR)]
    found = {disk.cut(3, random.Random(seed))["file"] for seed in range(100)}
    synced = (b"synced" + (b"old" * 1000)[6:])[: 4 * SECTOR]
    for content in found:
        for at in range(0, 4 * SECTOR, SECTOR):
            assert content[at : at + SECTOR] in (synced[at : at + SECTOR], b"x" * SECTOR)
    assert len(found) > 4
    assert disk.cut(2, random.Random(1))["file"].startswith(b"synced")


def test_a_file_that_was_removed_may_come_back_until_its_folder_is_synced() -> None:
    disk = Disk({"log": b"old"})
    disk.trace += [("delete", "log"), ("sync folder",)]
    assert any("log" in disk.cut(1, random.Random(seed)) for seed in range(20))
    assert not any("log" in disk.cut(2, random.Random(seed)) for seed in range(20))
