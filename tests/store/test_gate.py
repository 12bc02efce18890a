"""While a process forks, none of its SQLite connections is in use."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

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
    return engine._gate.writing if how == "writing" else engine._gate.use()


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


class Alarm(Exception):
    pass


@contextmanager
def alarm_at(opcode: int, file: str) -> Iterator[None]:
    """Raise at this instruction of the code in the file, counted from the first that is carried out."""
    left = itertools.count(opcode, -1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(left) == 0:
            raise Alarm
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


@pytest.mark.req("R23")
def test_a_use_that_a_signals_handler_interrupts_anywhere_holds_up_no_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PATIENCE_SECONDS", 0.0)
    alarms: list[Alarm] = []  # with their tracebacks, which refer to what they have interrupted
    for opcode in itertools.count():
        closed: list[str] = []
        disturbed = Gate(tmp_path / "p.db", partial(closed.append, "closed"))
        with alarm_at(opcode, gate.__file__):
            try:
                with disturbed.use():
                    pass
            except Alarm as alarm:
                alarms.append(alarm)
        disturbed.shut()
        disturbed.reopen()
        assert closed == ["closed"], f"interrupted at instruction {opcode}"
        if len(alarms) == opcode:
            break
    assert len(alarms) > 20


def test_a_fork_in_a_signal_handler_of_a_thread_that_enters_the_gate_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PATIENCE_SECONDS", 0.01)
    closed: list[str] = []
    entered = Gate(tmp_path / "p.db", partial(closed.append, "closed"))
    with entered.use():  # where the handler has interrupted it
        entered.shut()
        entered.reopen()
    assert not closed
    entered.shut()
    entered.reopen()
    assert closed == ["closed"]
