"""What was sent and never heard of again: late arrivals, interrupted waits, servers that cannot serve us now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from perdure._store.postgres import PostgresEngine
from perdure.errors import StoreUnreachable
from tests.store.kit import UIDS, Hand, listing, write
from tests.support.proxy import Proxy

UID = UIDS[0]
WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def hand(proxy: Proxy) -> Iterator[Hand]:
    """A process that has a task in hand, connected through the proxy."""
    engine = PostgresEngine(proxy.url)
    hand = Hand(engine)
    hand.running(UID)
    yield hand
    engine.close()


# ── late ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R55")
def test_a_write_that_reaches_the_server_after_it_was_sent_again_is_not_done_twice(hand: Hand, proxy: Proxy) -> None:
    proxy.cut_next_commit("late")
    assert hand.signal(UID, "news") == (1,)
    proxy.deliver()
    assert hand.signal(UID, "news") == (2,)


def test_entries_that_reach_the_server_after_they_were_sent_again_change_nothing(hand: Hand, proxy: Proxy) -> None:
    proxy.cut_next_commit("late")
    assert hand.append(UID, 1, 1) == (1,)
    assert hand.release(UID, 1)
    assert hand.claim(UID) == (2,)
    proxy.deliver()
    assert [row[0] for row in hand.journal(UID)] == [1]


def test_the_first_write_of_a_process_that_arrives_late_is_not_done_twice(hand: Hand, proxy: Proxy) -> None:
    engine = PostgresEngine(proxy.url)
    engine._connector._may_prepare = False  # or COMMIT would be prepared first, and seen to pass
    assert engine.query("read_workers", {})  # connected, but it has written nothing yet
    proxy.cut_next_commit("late")
    assert Hand(engine).signal(UID, "news") == (1,)
    proxy.deliver()
    assert hand.signal(UID, "news") == (2,)
    engine.close()


def test_a_write_given_up_as_not_known_never_comes_in_behind_a_later_one(proxy: Proxy) -> None:
    engine = PostgresEngine(proxy.url, patience=0)
    hand = Hand(engine)
    hand.running(UID)
    assert hand.signal(UID, "other") == (1,)
    proxy.cut_next_commit("late")
    proxy.refuse_next(10)
    with pytest.raises(StoreUnreachable, match="it is not known"):
        hand.signal(UID, "news")
    proxy.refuse_next(0)
    assert hand.signal(UID, "other") == (2,)
    proxy.deliver()
    assert hand.signal(UID, "news") == (1,)
    engine.close()


def test_a_late_write_whose_connection_the_server_has_ended_never_arrives(
    hand: Hand, proxy: Proxy, postgres_url: str
) -> None:
    proxy.cut_next_commit("late")
    assert hand.signal(UID, "news") == (1,)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    proxy.deliver()
    assert hand.signal(UID, "news") == (2,)


# ── at any byte ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R55")
@pytest.mark.parametrize("way", ["to server", "to client"])
def test_wherever_a_connection_is_cut_every_write_is_done_once_and_answered_right(
    hand: Hand, proxy: Proxy, way: Any
) -> None:
    beat = write("beat", {"worker": "w1"})
    cuts = 0
    for number in range(1, 41):
        proxy.cut_after(way, number * 37 % 1200)
        assert hand.signal(UID, "news") == (number,)
        assert hand.engine.commit([write("append_entry", hand.entry(UID, 1, number))]) == [(number,)]
        assert hand.engine.commit([beat, beat]) == [(number * 2 - 1,), (number * 2,)]
        cuts += proxy.has_cut.is_set()
    assert len(hand.journal(UID)) == 40 and cuts > 20


# ── interrupted ──────────────────────────────────────────────────────────────────────────────────


class Enough(Exception):
    """What somebody's handler raises where we wait."""


class Stop(BaseException):
    """The same, of the kind that nobody catches."""


@contextmanager
def interrupted_while_waiting(url: str, table: str, kind: type[BaseException]) -> Iterator[None]:
    """Somebody holds the table; once a backend waits for it, a handler raises in this thread."""

    def interrupt() -> None:
        with psycopg.connect(url, autocommit=True) as admin:
            while not admin.execute(WAITING).fetchall():
                pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def stop(*_: object) -> None:
        gate.rollback()
        raise kind

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with psycopg.connect(url) as gate:
            gate.execute(f"LOCK TABLE perdure.{table}".encode())
            thread = threading.Thread(target=interrupt)
            thread.start()
            yield
            thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("kind", [Enough, Stop])
def test_a_reader_that_was_interrupted_never_gets_the_answer_of_the_question_before(
    hand: Hand, postgres_url: str, kind: type[BaseException]
) -> None:
    with interrupted_while_waiting(postgres_url, "workers", kind), pytest.raises(kind):
        hand.engine.query("read_workers", {})
    assert hand.engine.query("list_tasks", listing())[0][0] == UID
    assert [row[0] for row in hand.engine.query("read_workers", {})] == ["w1"]


def test_a_write_that_was_interrupted_and_is_given_again_is_done_once(hand: Hand, postgres_url: str) -> None:
    hand.signal(UID, "first")  # it is prepared by then
    news = [write("send_signal", a_signal(hand, "news")), write("send_signal", a_signal(hand, "other"))]
    with interrupted_while_waiting(postgres_url, "signals", Stop), pytest.raises(Stop):
        hand.engine.commit(news[:1])
    assert hand.engine.commit(news) == [(1,)]
    assert hand.engine.commit(news[1:]) == [(1,)]
    assert hand.signal(UID, "news") == (2,)


def test_an_interrupted_batch_that_is_given_again_is_done_once(hand: Hand, postgres_url: str) -> None:
    """The server waits in the first phase: nothing of it is in."""
    batch = [write("send_signal", a_signal(hand, name)) for name in ("news", "other")]
    with interrupted_while_waiting(postgres_url, "signals", Stop), pytest.raises(Stop):
        hand.engine.commit(batch)
    assert hand.engine.commit(batch) == [(1,), (1,)]
    assert hand.signal(UID, "news") == (2,)


def test_a_write_is_not_called_failed_by_a_handler_when_it_is_in(hand: Hand, postgres_url: str) -> None:
    hand.signal(UID, "first")  # it is prepared by then
    with interrupted_while_waiting(postgres_url, "signals", Enough):
        assert hand.signal(UID, "news") == (1,)
    assert hand.signal(UID, "news") == (2,)


def a_signal(hand: Hand, name: str) -> dict[str, Any]:
    return {"uid": UID, "name": name, "value": b"hello", "once": None, **hand.event("signal")}
