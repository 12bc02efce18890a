"""A write-ahead log with a flipped bit: what was acknowledged is read, or the store is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perdure._ground import ids
from perdure._store.sqlite import SqliteEngine
from perdure.errors import StoreDamaged
from tests.store.kit import UIDS, Hand
from tests.torture.flips import log_places

COMMITS = 12


@pytest.fixture
def left_behind(tmp_path: Path) -> Path:
    """The files of a store whose process was killed after its last commit."""
    engine = SqliteEngine(tmp_path / "live" / "store.db")
    hand = Hand(engine)
    for number in range(COMMITS // 2):
        hand.create(UIDS[number], id=f"task-{number}")
        hand.create(f"x{number}", id=f"other-{number}")
    shutil.copytree(tmp_path / "live", tmp_path / "left")
    engine.close()
    return tmp_path / "left"


@pytest.fixture
def left_in_this_boot(left_behind: Path) -> Path:
    """The same, by a process that has its row in the store."""
    engine = SqliteEngine(left_behind / "store.db")
    hand = Hand(engine)
    hand.register(boot_id=ids.boot_id())
    hand.create("last", id="last")
    shutil.copytree(left_behind, left_behind.with_name("again"))
    engine.close()
    return left_behind.with_name("again")


def opened(folder: Path) -> int | None:
    """How many tasks the store has; None when it is refused."""
    engine = SqliteEngine(folder / "store.db")
    try:
        return len(engine.query("list_all", {"namespace": None, "after": "", "limit": 1000}))
    except StoreDamaged:
        return None
    finally:
        engine.close()


@pytest.mark.req("R95", "R23")
def test_a_flipped_bit_in_the_log_never_makes_acknowledged_writes_vanish_silently(
    left_behind: Path, tmp_path: Path
) -> None:
    log = (left_behind / "store.db-wal").read_bytes()
    refused = 0
    for place in log_places(log)[::4]:  # all of them: tests/torture/flips.py
        copy = tmp_path / "copy"
        shutil.copytree(left_behind, copy)
        spoiled = bytearray(log)
        spoiled[place.byte] ^= 1 << place.bit
        (copy / "store.db-wal").write_bytes(spoiled)
        tasks = opened(copy)
        if tasks is None:
            refused += 1
            assert (copy / "store.db-wal").read_bytes() == spoiled, "a refused store keeps its log"
            assert opened(copy) is None, "and is refused again"
        else:
            least = COMMITS - 1 if place.is_in_last else COMMITS
            assert tasks >= least, place
        shutil.rmtree(copy)
    assert refused > 20


def test_a_log_that_is_whole_or_torn_in_its_last_transaction_is_opened(left_behind: Path, tmp_path: Path) -> None:
    log = (left_behind / "store.db-wal").read_bytes()
    for cut in (0, 1, 24, 25, 2000, 4120):
        copy = tmp_path / f"cut-{cut}"
        shutil.copytree(left_behind, copy)
        (copy / "store.db-wal").write_bytes(log[: len(log) - cut])
        assert opened(copy) == (COMMITS if cut == 0 else COMMITS - 1)


@pytest.mark.req("R95", "R23")
def test_while_the_machine_has_run_all_the_time_not_even_the_last_transaction_vanishes_silently(
    left_in_this_boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = (left_in_this_boot / "store.db-wal").read_bytes()
    places = [place for place in log_places(log) if place.is_in_last]
    after_a_cut: set[int | None] = set()
    for place in places:
        copy = tmp_path / "copy"
        shutil.copytree(left_in_this_boot, copy)
        spoiled = bytearray(log)
        spoiled[place.byte] ^= 1 << place.bit
        (copy / "store.db-wal").write_bytes(spoiled)
        assert opened(copy) in (None, COMMITS + 1), place
        with monkeypatch.context() as later:
            later.setattr(ids, "boot_id", lambda: "after a power cut")
            after_a_cut.add(opened(copy))
        shutil.rmtree(copy)
    assert COMMITS in after_a_cut, "then it may have been torn, and the store is opened without it"


def test_what_a_killed_process_has_written_of_a_transaction_is_left_out(
    left_in_this_boot: Path, tmp_path: Path
) -> None:
    log = (left_in_this_boot / "store.db-wal").read_bytes()
    for cut in (1, 24, 4096, 4119, 4120, 4121, 2 * 4120):
        copy = tmp_path / f"cut-{cut}"
        shutil.copytree(left_in_this_boot, copy)
        (copy / "store.db-wal").write_bytes(log[: len(log) - cut])
        assert opened(copy) == COMMITS
