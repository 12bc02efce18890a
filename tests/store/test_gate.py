"""While a process forks, none of its SQLite connections is in use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from perdure._store.sqlite import SqliteEngine
from perdure._store.sqlite import fork_gate as gate
from perdure._store.sqlite.fork_gate import Gate
from perdure.errors import StoreForked
from tests.store.kit import UIDS, Hand
from tests.store.watched import in_thread, joined, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def engine(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteEngine]:
    monkeypatch.setattr(gate, "_inherited", set())
    engine = SqliteEngine(path)
    assert Hand(engine).create(UIDS[0])
    yield engine
    engine.close()


def is_open(engine: SqliteEngine) -> bool:
    return engine._writer is not None


def using(engine: SqliteEngine, how: str) -> AbstractContextManager[object]:
    return engine._gate.writing if how == "writing" else engine._gate


@pytest.mark.parametrize("how", ["writing", "reading"])
def test_a_fork_waits_for_whoever_uses_the_connections_and_closes_them(engine: SqliteEngine, how: str) -> None:
    with using(engine, how):
        forking = in_thread(engine._gate.shut)
        assert is_open(engine) and forking.is_alive()
    assert joined(forking)
    assert not is_open(engine)
    engine._gate.reopen()


def test_nobody_writes_or_reads_until_the_fork_is_over(engine: SqliteEngine) -> None:
    engine._gate.shut()
    writing = in_thread(lambda: Hand(engine).create(UIDS[1], "beta"))
    reading = in_thread(lambda: engine.query("read_attempts", {"uid": UIDS[0]}))
    until(lambda: len(threading.enumerate()) >= 3)
    assert not is_open(engine) and writing.is_alive() and reading.is_alive()
    engine._gate.reopen()
    assert joined(writing) and joined(reading)
    assert is_open(engine)


@pytest.mark.parametrize("how", ["writing", "reading"])
def test_what_could_not_be_closed_in_time_is_not_opened_beside_it_by_the_child(
    engine: SqliteEngine, path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PATIENCE_SECONDS", 0.01)
    with using(engine, how):
        engine._gate.shut()
        assert is_open(engine)
        engine._gate.inherit()
        beside = SqliteEngine(path)
        with pytest.raises(StoreForked):
            Hand(beside).create(UIDS[1], "beta")
        with pytest.raises(StoreForked):
            beside.query("read_attempts", {"uid": UIDS[0]})
    engine._gate.reopen()


def test_what_was_closed_may_be_opened_by_the_child(engine: SqliteEngine, path: Path) -> None:
    engine._gate.shut()
    engine._gate.inherit()
    assert not gate._inherited
    engine._gate.reopen()


def test_a_fork_in_a_signal_handler_of_a_thread_that_enters_the_gate_does_not_hang(tmp_path: Path) -> None:
    closed: list[str] = []
    gate = Gate(tmp_path / "p.db", lambda: closed.append("closed"))

    def enter_and_fork() -> None:
        with gate._mutex:  # where the handler may have interrupted it
            gate.shut()
            gate.reopen()

    thread = threading.Thread(target=enter_and_fork, daemon=True)
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive() and closed == ["closed"]
