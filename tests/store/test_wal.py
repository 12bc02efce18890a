"""A write-ahead log with a flipped bit: what was acknowledged is read, or the store is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure._ground import ids
from perdure._store.sqlite import SqliteEngine
from perdure._store.sqlite.log_check import what_is_missing
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
def test_what_a_torn_transaction_left_behind_a_shorter_torn_one_is_not_taken_for_a_lost_end(
    left_behind: Path, tmp_path: Path
) -> None:
    """Power was lost in a long transaction, and again in a shorter one that was written over its first frames."""
    logs = []
    for name, rows in (("long", 60), ("short", 1)):
        copy = tmp_path / name
        shutil.copytree(left_behind, copy)
        connection = apsw.Connection(str(copy / "store.db"))
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        with connection:
            for number in range(rows):
                connection.execute(f"CREATE TABLE {name}_{number} (a)")
        connection.close()
        logs.append((copy / "store.db-wal").read_bytes())
    before, (long, short) = (left_behind / "store.db-wal").read_bytes(), logs
    assert len(before) < len(short) < len(long)
    torn = bytearray(short + long[len(short) :])
    torn[len(before) + 100] ^= 1  # in the first frame of both
    (left_behind / "store.db-wal").write_bytes(torn)
    assert opened(left_behind) == COMMITS


@pytest.mark.req("R95", "R24")
def test_a_store_is_opened_while_another_connection_commits(tmp_path: Path) -> None:
    """Its frames are in the log before SQLite counts them: until they are synced, they look like a missing end."""
    path = tmp_path / "store.db"
    found: list[str] = []
    is_open = False

    def look() -> None:
        if not is_open:
            return
        beside = apsw.Connection(str(path))
        found.append(what_is_missing(path, beside))
        beside.close()

    vfs = SyncHook("sync-hook", look)
    try:
        engine = SqliteEngine(path, vfs=vfs.name)
        hand = Hand(engine)
        hand.register(boot_id=ids.boot_id())
        is_open = True
        hand.create("first", id="first")
        is_open = False
        engine.close()
    finally:
        vfs.unregister()
    assert found and set(found) == {""}


class SyncHook(apsw.VFS):
    """Calls a function when a commit has written its frames and has not synced them yet."""

    def __init__(self, name: str, look: Callable[[], None]) -> None:
        self.name, self._look = name, look
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> Any:
        return _HookedFile(name, flags, self._look)


class _HookedFile(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], look: Callable[[], None]) -> None:
        self._look = look if flags[0] & apsw.SQLITE_OPEN_WAL else None
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:
        if self._look is not None:
            self._look()
        super().xSync(flags)
