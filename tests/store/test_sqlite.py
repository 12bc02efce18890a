"""The SQLite engine in particular: whose file it is, where it may be, and what happens when it breaks."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure._store import Committer, Write
from perdure._store.sqlite import SqliteEngine
from perdure._store.sqlite import engine as engine_module
from perdure._store.sqlite import location as place
from perdure.errors import StoreBusy, StoreDamaged, StoreFull, StoreRefused, StoreUnavailable
from tests.store.kit import UIDS, Hand, commit_all, dump, frame, write
from tests.store.test_many_functions import complete, one_by_one, start
from tests.store.watched import Attempt, in_thread, joined

UID = UIDS[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def engine(path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(path)
    yield engine
    engine.close()


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def file_of_another_program(path: Path) -> None:
    # Not by the standard library's sqlite3: two copies of SQLite in one process undo each other's locks.
    theirs = apsw.Connection(str(path))
    theirs.execute("CREATE TABLE notes (text TEXT)")
    theirs.close()


# ── whose file it is ─────────────────────────────────────────────────────────────────────────────


def test_the_file_of_another_program_is_refused_and_left_as_it_is(path: Path) -> None:
    file_of_another_program(path)
    before = fingerprint(path)
    engine = SqliteEngine(path)
    for act in (lambda: Hand(engine).create(UID), lambda: dump(engine)):
        with pytest.raises(StoreUnavailable, match="another program") as refused:
            act()
        assert refused.value.do
    engine.close()
    assert fingerprint(path) == before


def test_a_refused_file_can_be_tried_again_and_again(path: Path) -> None:
    file_of_another_program(path)
    engine = SqliteEngine(path)
    open_before: set[str] = set()
    for turn in range(4):
        with pytest.raises(StoreUnavailable):
            Hand(engine).create(UID)
        now = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_there(fd)}
        ours = {name for name in now if str(path) in name}
        if turn:
            assert ours == open_before, "nothing stays open each time"
        open_before = ours
    path.unlink()
    assert Hand(engine).create(UID)
    engine.close()


def _is_there(fd: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{fd}")


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    engine = SqliteEngine(path)
    assert Hand(engine).create(UID)
    engine.close()


def test_what_is_no_database_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)
    before = fingerprint(path)
    engine = SqliteEngine(path)
    with pytest.raises(StoreDamaged):
        Hand(engine).create(UID)
    with pytest.raises(StoreDamaged):
        dump(engine)
    engine.close()
    assert fingerprint(path) == before


def test_a_store_says_whose_it_is(engine: SqliteEngine, path: Path) -> None:
    Hand(engine).create(UID)
    engine.close()
    assert path.read_bytes()[68:72] == b"perd"


def test_reading_makes_no_file(engine: SqliteEngine, path: Path) -> None:
    assert dump(engine) == {}
    assert not path.exists() and list(path.parent.iterdir()) == []


# ── where it may be ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "9p", "fuse.sshfs"])
def test_a_network_file_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(place, "_file_system", lambda folder: kind)
    engine = SqliteEngine(path)
    with pytest.raises(StoreRefused, match=kind):
        Hand(engine).create(UID)
    assert list(path.parent.iterdir()) == []


def test_the_kind_of_file_system_is_looked_up_by_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path.stat().st_dev
    numbers = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"21 1 259:99 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
        f"36 21 {numbers} / /mnt/share rw,noatime shared:2 master:1 - nfs4 server:/share rw,vers=4.2\n"
        f"37 21 0:77 / /proc rw - proc proc rw\n"
    )
    real = open

    def open_ours(name: Any, *rest: Any, **more: Any) -> Any:
        return real(mounts if name == "/proc/self/mountinfo" else name, *rest, **more)

    monkeypatch.setattr("builtins.open", open_ours)
    assert place._file_system(tmp_path / "not" / "yet" / "there") == "nfs4"


@pytest.mark.parametrize("kind", ["nfs4", "virtiofs", "vboxsf", "9p", "fuse", "fuse.sshfs", "fuse.anything"])
def test_a_file_system_with_locks_of_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(place, "_file_system", lambda folder: kind)
    with pytest.raises(StoreRefused, match=kind):
        place.check_folder(tmp_path)


def test_rootless_containers_have_a_local_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_file_system", lambda folder: "fuse.fuse-overlayfs")
    place.check_folder(tmp_path)


def test_the_files_for_turns_lie_beside_the_store_and_not_beside_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    Hand(SqliteEngine(tmp_path / "real" / "store.db")).create(UID)
    (tmp_path / "links" / "store.db").symlink_to(tmp_path / "real" / "store.db")
    Hand(SqliteEngine(tmp_path / "links" / "store.db"), "w2").create("u007", id="beta")
    assert [found.name for found in (tmp_path / "links").iterdir()] == ["store.db"]
    assert {"store.db.turn", "store.db.next"} <= {found.name for found in (tmp_path / "real").iterdir()}


def test_this_folder_is_on_a_file_system_that_is_known(tmp_path: Path) -> None:
    assert place._file_system(tmp_path) not in place._NETWORK


def test_a_sqlite_that_loses_its_log_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(StoreRefused, match=r"3\.51\.2"):
        SqliteEngine(path)
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.3")
    SqliteEngine(path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="cannot make"):
        Hand(SqliteEngine(tmp_path / "file" / "folder" / "store.db")).create(UID)


def test_what_is_there_and_cannot_be_used_is_told_in_our_words(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot use .*: Is a directory") as told:
        Hand(SqliteEngine(tmp_path)).create(UID)
    assert told.value.kept.startswith("all that was acknowledged")
    with pytest.raises(StoreUnavailable, match=r"cannot use .*: File name too long"):
        SqliteEngine(tmp_path / ("long" * 100)).query("read_switches", {"namespace": "default"})


def test_a_lock_that_cannot_be_opened_is_told_in_our_words(path: Path) -> None:
    path.with_name(path.name + ".turn").mkdir()
    with pytest.raises(StoreUnavailable, match=r"cannot use .*: Is a directory"):
        Hand(SqliteEngine(path)).create(UID)


# ── damage ───────────────────────────────────────────────────────────────────────────────────────


def damaged(path: Path) -> None:
    """Overwrite every page but the first: the schema can be read, the tables cannot."""
    engine = SqliteEngine(path)
    hand = Hand(engine)
    epoch = hand.running()
    for parent in range(20):
        hand.checkpoint(UID, epoch, **frame(parent, content=os.urandom(3000)))
    engine.close()
    pages = path.read_bytes()
    size = int.from_bytes(pages[16:18], "big")
    path.write_bytes(pages[:size] + b"\xee" * (len(pages) - size))


@pytest.mark.req("R95")
def test_a_damaged_page_is_told_as_damage_and_the_file_stays(path: Path) -> None:
    damaged(path)
    before = fingerprint(path)
    engine = SqliteEngine(path)
    with pytest.raises(StoreDamaged, match="damaged"):
        dump(engine)
    with pytest.raises(StoreDamaged):
        Hand(engine).create(UIDS[1], "beta")
    engine.close()
    assert fingerprint(path) == before


# ── no space ─────────────────────────────────────────────────────────────────────────────────────


class SmallDisk(apsw.VFS):
    """The usual file system, until it has no space left."""

    def __init__(self) -> None:
        self.is_full = False
        super().__init__("small disk", "")

    def xOpen(self, name: Any, flags: list[int]) -> SmallDiskFile:
        return SmallDiskFile(self, name, flags)


class SmallDiskFile(apsw.VFSFile):
    def __init__(self, disk: SmallDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._disk.is_full:
            raise apsw.FullError("no space left on device")
        super().xWrite(data, offset)


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    disk = SmallDisk()
    yield disk
    disk.unregister()


@pytest.mark.req("R23")
def test_without_space_nothing_is_lost_and_writing_works_again_when_there_is_some(path: Path, disk: SmallDisk) -> None:
    engine = SqliteEngine(path, vfs="small disk")
    hand = Hand(engine)
    epoch = hand.running()
    hand.append(UID, epoch, 0)
    before = dump(engine)
    disk.is_full = True
    for _ in range(3):
        with pytest.raises(StoreFull) as full:
            hand.append(UID, epoch, 1)
        assert "space" in full.value.do
    assert dump(engine) == before
    disk.is_full = False
    assert hand.append(UID, epoch, 1) == (1,)
    engine.close()
    again = SqliteEngine(path)
    assert [position for position, _ in Hand(again).journal(UID)] == [0, 1]
    assert again.damage() == []
    again.close()


def test_a_file_at_its_largest_takes_no_more_but_keeps_what_it_has(engine: SqliteEngine) -> None:
    hand = Hand(engine)
    epoch = hand.running()
    writer = engine._writer
    assert writer is not None
    ((pages,),) = writer.execute("PRAGMA page_count").fetchall()
    writer.execute(f"PRAGMA max_page_count = {pages + 4}").fetchall()

    def fill() -> None:
        while hand.checkpoint(UID, epoch, **frame(hand.task(UID).seq, content=os.urandom(2000))):
            pass

    with pytest.raises(StoreFull):
        fill()
    stored = hand.task(UID).state_seq
    assert stored == hand.task(UID).seq == max(hand.frames(UID)) > 0
    writer.execute("PRAGMA max_page_count = 1000000").fetchall()
    assert hand.checkpoint(UID, epoch, **frame(stored, content=os.urandom(2000)))


def test_a_committer_goes_on_after_the_disk_was_full(path: Path, disk: SmallDisk) -> None:
    engine = SqliteEngine(path, vfs="small disk")
    committer = Committer(engine)
    attempt = Attempt(committer, engine)
    disk.is_full = True
    with pytest.raises(StoreFull):
        attempt.entry(0, ordered=False).block()
    disk.is_full = False
    assert attempt.entry(0).block() == (0,)
    committer.close()
    engine.close()


# ── turns and batches ────────────────────────────────────────────────────────────────────────────


def test_a_transaction_ends_early_rather_than_keep_others_waiting(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time at all for a batch, each write is a transaction of its own, in order."""
    monkeypatch.setattr(engine_module, "BATCH_SECONDS", -1.0)
    committer = Committer(engine)
    attempt = Attempt(committer, engine)
    for one in (attempt.entry(0), Write(committer, "beat", {"worker": "nobody"}, key="nobody"), attempt.entry(1)):
        committer.enqueue(one)
    committer.flush()
    assert attempt.positions() == [0, 1] and committer.batches == 3
    committer.close()


@pytest.mark.parametrize("many", [5, 100, 500])
def test_many_tasks_are_begun_and_ended_by_few_statements(engine: SqliteEngine, many: int) -> None:
    """However many they are, the interpreter's lock is asked for a few times: else they would hold up the loop that
    they are of. What is one statement is not even begun and committed by statements of its own."""
    Hand(engine).register()
    ids = [f"{number:04d}" for number in range(many)]
    starts = [start(0, id, uid=id, worker="w1", namespace="main") for id in ids]
    ends = [complete(0, uid=id) for id in ids]
    entries = [write("append_entry", Hand(engine).entry(id, 1, 1)) for id in ids]
    seen: list[str] = []

    def see(cursor: object, statement: str, bindings: object) -> bool:
        seen.append(statement)
        return True

    engine._open_writer().exec_trace = see
    assert engine.commit(starts) == [(id,) for id in ids]
    assert engine.commit([*entries, *ends]) == [(1,)] * many + [(id,) for id in ids]
    assert len(seen) == 1 + 4, seen


@pytest.mark.req("R1")
def test_tasks_end_with_their_chains_whole_though_another_process_has_added_to_one(
    engine: SqliteEngine, path: Path
) -> None:
    Hand(engine).register()
    writes = [start(number, f"t{number}", worker="w1") for number in range(8)]
    oracle, elsewhere = one_by_one(writes), SqliteEngine(path)
    assert all(engine.commit(writes))
    for each in (oracle, elsewhere):
        assert Hand(each).claim(UIDS[3], at=1_500)
    elsewhere.close()
    ends = [complete(number, epoch=2 if number == 3 else 1) for number in range(8)]
    assert engine.commit(ends) == commit_all(oracle, ends) == [(uid,) for uid in UIDS]
    assert dump(engine) == dump(oracle)


def test_a_disk_that_is_full_in_the_middle_of_a_large_batch_leaves_nothing_of_it_half_done(
    engine: SqliteEngine,
) -> None:
    """Entries that were in without their ends would be sent again, and be taken for somebody else's."""
    hand, committer = Hand(engine), Committer(engine)
    hand.register()
    ids = [f"{number:04d}" for number in range(100)]
    assert all(engine.commit([start(0, id, uid=id, worker="w1", namespace="main") for id in ids]))
    writes = [write("append_entry", hand.entry(id, 1, 1)) for id in ids] + [complete(0, uid=id) for id in ids]
    refusals = [apsw.FullError("no space")]

    def be_full(cursor: object, statement: str, bindings: object) -> bool:
        if "ending" in statement and refusals:
            raise refusals.pop()
        return True

    engine._open_writer().exec_trace = be_full
    for one in writes:
        committer.enqueue(one)
    committer.flush()
    committer.close()
    assert not refusals
    assert [one.outcome() for one in writes] == [(1,)] * 100 + [(id,) for id in ids]


def test_who_waits_too_long_for_a_turn_is_told_and_has_written_nothing(
    path: Path, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Hand(engine).create(UID)
    monkeypatch.setattr(engine_module, "PATIENCE_SECONDS", 0.0)
    impatient = SqliteEngine(path)
    with engine._turnstile, pytest.raises(StoreBusy):
        Hand(impatient).create(UIDS[1], "beta")
    assert Hand(impatient).create(UIDS[1], "beta")
    impatient.close()


def test_readers_do_not_wait_for_a_writer(engine: SqliteEngine, path: Path) -> None:
    hand = Hand(engine)
    hand.create(UID)
    before = dump(engine)
    writer = engine._writer
    assert writer is not None
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE tasks SET name = 'half-way'")
    seen: list[object] = []
    reading = in_thread(lambda: seen.append(dump(engine)))
    assert joined(reading) and seen == [before]
    writer.execute("ROLLBACK")


def test_many_threads_may_read_at_once(engine: SqliteEngine) -> None:
    Hand(engine).running()
    want, found = dump(engine), []
    start = threading.Barrier(6)

    def read() -> None:
        start.wait()
        found.append([dump(engine) for _ in range(5)])

    threads = [in_thread(read) for _ in range(6)]
    assert all(joined(thread) for thread in threads)
    assert found == [[want] * 5] * 6


def test_every_commit_is_synced(engine: SqliteEngine) -> None:
    """A commit that returned is on disk: WAL with synchronous=FULL, and no mapped memory."""
    Hand(engine).create(UID)
    writer = engine._writer
    assert writer is not None
    found = {name: writer.execute(f"PRAGMA {name}").fetchall() for name in ("journal_mode", "synchronous")}
    assert found == {"journal_mode": [("wal",)], "synchronous": [(2,)]}
    assert writer.execute("PRAGMA mmap_size").fetchall() in ([], [(0,)])


def test_a_store_that_may_not_be_looked_at_is_not_taken_for_none(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / ("long" * 100) / "p.db")
    with pytest.raises(StoreUnavailable, match="File name too long"):
        engine.query("read_workers", {})
