"""A connection may be lost at any moment, and every verb is still done exactly once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from perdure._store import Write
from perdure._store.postgres import PostgresEngine
from perdure.errors import StoreUnavailable, StoreUnreachable
from tests.store.kit import UIDS, Hand, write
from tests.support.proxy import Proxy

UID = UIDS[0]
BEAT = {"worker": "w1"}


@pytest.fixture
def open_one(proxy: Proxy) -> Iterator[Callable[..., PostgresEngine]]:
    opened: list[PostgresEngine] = []

    def one(**options: Any) -> PostgresEngine:
        opened.append(PostgresEngine(proxy.url, **options))
        return opened[-1]

    yield one
    for engine in opened:
        engine.close()


@pytest.fixture
def hand(open_one: Callable[..., PostgresEngine]) -> Hand:
    """A process that has a task in hand, connected through the proxy."""
    hand = Hand(open_one())
    hand.running(UID)
    return hand


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A way to the same database that nobody cuts."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def a_batch(hand: Hand) -> list[Write]:
    """Verbs of which none may be done twice, and what they answer when done once."""
    entries = [write("append_entry", hand.entry(UID, 1, position)) for position in (1, 2)]
    return [write("beat", BEAT), *entries, write("beat", BEAT)]


ONCE = [(1,), (1,), (2,), (2,)]


def assert_once(hand: Hand) -> None:
    assert [row[1] for row in hand.engine.query("read_workers", {})] == [2]
    assert [row[0] for row in hand.journal(UID)] == [1, 2]


def until_waiting(admin: psycopg.Connection[Any], count: int = 1) -> list[int]:
    """The backends of this database that wait for a lock, once there are that many."""
    asked = """SELECT pid FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock' ORDER BY backend_start"""
    while len(found := admin.execute(asked).fetchall()) < count:
        pass
    return [pid for (pid,) in found]


# ── at COMMIT ────────────────────────────────────────────────────────────────────────────────────


def test_a_commit_that_never_arrived_is_sent_again(hand: Hand, proxy: Proxy) -> None:
    proxy.cut_next_commit("before")
    assert hand.engine.commit(a_batch(hand)) == ONCE
    assert proxy.has_cut.is_set()
    assert_once(hand)


def test_a_commit_whose_answer_was_lost_is_acknowledged_and_not_repeated(hand: Hand, proxy: Proxy) -> None:
    proxy.cut_next_commit("after")
    assert hand.engine.commit(a_batch(hand)) == ONCE
    assert proxy.has_cut.is_set()
    assert_once(hand)


def test_a_commit_that_arrives_after_we_have_reconnected_is_waited_for(
    hand: Hand, proxy: Proxy, admin: psycopg.Connection[Any]
) -> None:
    proxy.cut_next_commit("late")
    with ThreadPoolExecutor() as pool:
        committing = pool.submit(hand.engine.commit, a_batch(hand))
        until_waiting(admin)  # reconnected, and asking for the batch that may still come in
        assert not committing.done()
        proxy.deliver()
        assert committing.result() == ONCE
    assert_once(hand)


def test_the_first_batch_of_a_process_is_waited_for_too(
    open_one: Callable[..., PostgresEngine], hand: Hand, proxy: Proxy, admin: psycopg.Connection[Any]
) -> None:
    engine = open_one()
    assert engine.query("read_workers", {})  # connected, but it has written nothing yet
    proxy.cut_next_commit("late")
    with ThreadPoolExecutor() as pool:
        committing = pool.submit(engine.commit, a_batch(hand))
        until_waiting(admin)
        proxy.deliver()
        assert committing.result() == ONCE
    assert_once(hand)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_several_losses_in_a_row_change_nothing(hand: Hand, proxy: Proxy, moment: Any) -> None:
    proxy.cut_next_commit(moment)
    proxy.refuse_next(4)
    assert hand.engine.commit(a_batch(hand)) == ONCE
    assert_once(hand)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_refused_verb_stays_refused_after_a_loss(hand: Hand, proxy: Proxy, moment: Any) -> None:
    proxy.cut_next_commit(moment)
    stale = write("append_entry", hand.entry(UID, 0, 1))
    assert hand.engine.commit([stale, write("beat", BEAT)]) == [None, (1,)]
    assert hand.journal(UID) == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_claim_cut_off_is_made_once(hand: Hand, proxy: Proxy, moment: Any) -> None:
    proxy.cut_next_commit(moment)
    assert hand.claim(UID) == (2,)
    assert [row[0] for row in hand.engine.query("read_attempts", {"uid": UID})] == [1, 2]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_tables_are_made_once_whatever_happens_to_the_connection(
    open_one: Callable[..., PostgresEngine], proxy: Proxy, moment: Any
) -> None:
    engine = open_one()
    assert engine.query("read_workers", {}) == []
    proxy.cut_next_commit(moment)  # that of the migration
    assert Hand(engine).register() == ("w1",)


def test_when_patience_ends_after_a_commit_it_is_said_that_nobody_knows(
    open_one: Callable[..., PostgresEngine], proxy: Proxy
) -> None:
    engine = open_one(patience=0)
    hand = Hand(engine)
    hand.running(UID)
    proxy.cut_next_commit("after")
    proxy.refuse_next(10)
    with pytest.raises(StoreUnreachable, match="it is not known"):
        engine.commit(a_batch(hand))
    proxy.refuse_next(0)
    assert_once(hand)


# ── before it ────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_ends_our_connections_between_two_calls_is_not_noticed(
    hand: Hand, admin: psycopg.Connection[Any]
) -> None:
    ours = "datname = current_database() AND pid <> pg_backend_pid()"
    admin.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}".encode())
    assert len(hand.engine.query("read_workers", {})) == 1
    assert hand.engine.commit(a_batch(hand)) == ONCE
    assert_once(hand)


def test_a_backend_killed_in_the_middle_of_a_batch_is_ridden_out(
    hand: Hand, admin: psycopg.Connection[Any], postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as gate, ThreadPoolExecutor() as pool:
        gate.execute("SELECT 1 FROM perdure.leases FOR UPDATE")
        committing = pool.submit(hand.engine.commit, a_batch(hand))
        (stuck,) = until_waiting(admin)
        admin.execute("SELECT pg_terminate_backend(%s)", (stuck,))
        while until_waiting(admin) == [stuck]:
            pass
        gate.commit()
        assert committing.result() == ONCE
    assert_once(hand)


def test_a_network_cut_in_the_middle_of_a_batch_is_ridden_out(
    hand: Hand, proxy: Proxy, admin: psycopg.Connection[Any], postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as gate, ThreadPoolExecutor() as pool:
        gate.execute("SELECT 1 FROM perdure.leases FOR UPDATE")
        committing = pool.submit(hand.engine.commit, a_batch(hand))
        until_waiting(admin)
        proxy.cut()
        # The old backend still waits for its lock; the new one waits for the old one to end.
        until_waiting(admin, 2)
        gate.commit()
        assert committing.result() == ONCE
    assert_once(hand)


def test_a_server_that_is_away_for_a_while_is_waited_for(hand: Hand, proxy: Proxy) -> None:
    proxy.cut()
    proxy.refuse_next(5)
    assert hand.engine.commit(a_batch(hand)) == ONCE
    proxy.cut()
    proxy.refuse_next(5)
    assert_once(hand)


def test_when_patience_ends_before_a_commit_nothing_was_written(
    open_one: Callable[..., PostgresEngine], proxy: Proxy
) -> None:
    hand = Hand(open_one(patience=0))
    hand.running(UID)
    proxy.cut()
    proxy.refuse_next(10)
    with pytest.raises(StoreUnreachable, match="changed nothing"):
        hand.engine.commit(a_batch(hand))
    with pytest.raises(StoreUnreachable):
        hand.journal(UID)
    proxy.refuse_next(0)
    assert hand.engine.commit(a_batch(hand)) == ONCE


def test_a_server_that_was_never_there_is_reported_at_once(proxy: Proxy) -> None:
    engine = PostgresEngine(proxy.url)
    proxy.refuse_next(1)  # a second try would get through
    with pytest.raises(StoreUnreachable):
        engine.query("read_workers", {})
    assert engine.query("read_workers", {}) == []
    engine.close()


# ── what is no loss ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "odd", [{"entry": b"x", "line": 1 << 70}, {"worker": "nul\0"}, {"worker": "half \ud800"}, {"line": "one"}]
)
def test_a_value_the_server_cannot_take_fails_alone(hand: Hand, odd: dict[str, Any]) -> None:
    with pytest.raises(StoreUnavailable):
        hand.append(UID, 1, 1, **odd)
    many = [write("append_entry", {**hand.entry(UID, 1, position), **odd}) for position in range(10)]
    with pytest.raises(StoreUnavailable):
        hand.engine.commit(many)
    assert hand.engine.commit(a_batch(hand)) == ONCE
    assert_once(hand)


def test_a_verb_without_its_parameters_fails_alone(hand: Hand) -> None:
    with pytest.raises(StoreUnavailable):
        hand.do("append_entry", uid=UID)
    assert hand.engine.commit(a_batch(hand)) == ONCE


def test_prepared_statements_that_a_pooler_has_lost_are_given_up(postgres_url: str) -> None:
    engine = PostgresEngine(postgres_url)
    hand = Hand(engine)
    hand.running(UID)
    behind = engine._writer._wire
    assert behind is not None and behind._is_preparing
    behind.connection.pgconn.exec_(b"DEALLOCATE ALL")
    assert engine.commit(a_batch(hand)) == ONCE
    assert engine._writer._wire is not None and not engine._writer._wire._is_preparing
    assert_once(hand)
    engine.close()


def test_the_child_of_a_fork_leaves_the_connections_of_its_parent_alone(hand: Hand, admin: Any) -> None:
    backends = "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE datname = current_database()"
    before = admin.execute(backends).fetchone()
    child = os.fork()
    if child == 0:
        try:
            hand.engine.mark_forked()
            hand.engine.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert hand.engine.commit(a_batch(hand)) == ONCE
    assert_once(hand)
    assert admin.execute(backends).fetchone() == before
