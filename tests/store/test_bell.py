"""A ring goes to every process that listens, says of what kind the change was, and is lost without harm."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import psycopg
import pytest

from perdure._store import MOVED, WORK, Bell, Committer, Engine, Kinds, Write, kinds_of
from perdure._store.postgres import PostgresEngine
from perdure._store.postgres import notifications as postgres_line
from perdure._store.sqlite import SqliteEngine
from tests.store.kit import Hand
from tests.store.watched import FOREVER, Watched, in_thread, until

SWITCH = {"namespace": "main", "id": "", "is_on": 0, "why": "", "at": 1, "author": "{}"}


def a_write(verb: str, row: Any = (1,), **params: Any) -> Write:
    write = Write(Committer(Watched()), verb, params, key="k")
    write.row = row
    return write


def test_what_is_worth_a_ring() -> None:
    assert kinds_of([a_write("append_entry"), a_write("checkpoint"), a_write("beat")]) == frozenset()
    assert kinds_of([a_write("append_entry"), a_write("claim")]) == kinds_of([a_write("add_value")]) == {"changed"}
    assert kinds_of([a_write("append_entry"), a_write("move_task")]) == {WORK, MOVED}
    assert kinds_of([a_write("suspend"), a_write("release")]) == {WORK, MOVED}
    assert kinds_of([a_write("start_function", worker=None)]) == {WORK, "changed"}


def test_what_was_refused_is_no_news_and_what_begins_in_its_own_process_is_no_work() -> None:
    assert kinds_of([a_write("move_task", row=None)]) == frozenset()
    assert kinds_of([a_write("move_task", row=None), a_write("start_function", worker="w1")]) == {"changed"}


# ── from process to process ──────────────────────────────────────────────────────────────────────


class Ear:
    """What a process with its own engine hears."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.bell = engine, Bell(engine, Committer(engine))
        self._rings: SimpleQueue[Kinds] = SimpleQueue()

    @contextmanager
    def open(self) -> Iterator[Ear]:
        with self.bell.subscribed(self._rings.put):
            until(lambda: self.bell.is_heard)
            yield self
        self.bell.close()

    def hears(self, kinds: set[str]) -> None:
        while not kinds <= self._rings.get(timeout=FOREVER):
            pass

    def forget(self) -> None:
        """What it has heard so far: a line that has just been opened rings for everything."""
        while not self._rings.empty():
            self._rings.get()


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Engine]]:
    engines: list[Engine] = []

    def one() -> Engine:
        if request.param == "sqlite":
            engines.append(SqliteEngine(tmp_path / "store.db"))
        else:
            engines.append(PostgresEngine(request.getfixturevalue("postgres_url")))
        Hand(engines[-1]).register()
        return engines[-1]

    yield one
    for engine in engines:
        engine.close()


def test_a_write_of_one_process_is_heard_by_another(opened: Callable[[], Engine]) -> None:
    here, there = opened(), opened()
    committer = Committer(here)
    bell = Bell(here, committer)
    with Ear(there).open() as ear:
        ear.hears({WORK, MOVED})
        ear.forget()
        Write(committer, "set_switch", SWITCH, key="switch").block()
        ear.hears({WORK})
    bell.close()
    committer.close()


def test_nobody_hears_himself_on_postgresql(postgres_url: str) -> None:
    engine = PostgresEngine(postgres_url)
    line = engine.line()
    assert line.hear() == {WORK, MOVED, "changed"}  # whatever was rung before one could hear
    line.tell(frozenset({WORK}))
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_notify('perdure', 'stranger moved nonsense')")
        heard: set[str] = set()
        while not heard:
            heard |= line.hear()
    assert heard == {MOVED}
    line.hang_up()
    engine.close()


def test_a_line_that_was_cut_is_opened_again_and_rings_for_all_that_was_missed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_line, "_REST_SECONDS", 0.01)
    engine = PostgresEngine(postgres_url)
    with Ear(engine).open() as ear:
        ear.hears({WORK, MOVED})
        ear.forget()
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query ILIKE 'LISTEN%' AND datname = current_database()"
            )
        ear.hears({WORK, MOVED})
        until(lambda: ear.bell.is_heard)
    engine.close()


def test_behind_a_pooler_nobody_counts_on_being_rung(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_line, "is_direct", lambda connection: False)
    monkeypatch.setattr(postgres_line, "_REST_SECONDS", 0.01)
    engine = PostgresEngine(postgres_url)
    line = engine.line()
    assert line.hear() == frozenset() and not line.is_open
    engine.close()


def test_what_is_to_be_told_is_told_before_the_store_is_closed(postgres_url: str) -> None:
    engine = PostgresEngine(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("LISTEN perdure")
        bell = Bell(engine, Committer(engine))
        bell._committed([a_write("move_task")])
        bell.close()
        said = next(other.notifies(timeout=FOREVER)).payload
    assert said.split()[1:] == ["moved", "work"]
    engine.close()


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_ring_between_a_look_and_the_wait_is_not_lost() -> None:
    bell = Bell(Watched(), Committer(Watched()))
    before = bell.moves
    bell._committed([a_write("suspend")])
    await bell.moved_since(before, 3600.0)  # or this would take a quarter of a second, and the next an hour
    assert bell.moves == before + 1


def test_blocking_code_is_woken_by_a_ring_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure._store.bell._PATIENT", 3600.0)
    bell = Bell(Watched(), Committer(Watched()))
    before, woken = bell.moves, threading.Event()

    def wait() -> None:
        bell.moved_since(before, 3600.0).block()
        woken.set()

    in_thread(wait)
    bell._committed([a_write("suspend")])
    assert woken.wait(FOREVER)
