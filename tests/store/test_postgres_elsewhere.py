"""The server is not what it was when we connected: a standby, another form of the tables, a pooler in between."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from perdure._store.memory import MemoryEngine
from perdure._store.postgres import PostgresEngine
from perdure.errors import StoreUnavailable, StoreUnreachable
from tests.sessions.cluster import Cluster
from tests.store.kit import UIDS, Hand, dump, listing, write
from tests.store.test_postgres_alone import a_life
from tests.support.pgbouncer import SERVERS, PgBouncer, pgbouncer_to
from tests.support.waiting import look_again_here
from tests.torture.failovers import Pair, servers

UID = UIDS[0]


@pytest.fixture
def hand(postgres_url: str) -> Iterator[Hand]:
    engine = PostgresEngine(postgres_url)
    hand = Hand(engine)
    hand.running(UID)
    yield hand
    engine.close()


# ── prepared statements ──────────────────────────────────────────────────────────────────────────


def test_a_batch_that_is_taken_back_leaves_what_is_prepared(hand: Hand) -> None:
    engine = hand.engine
    assert isinstance(engine, PostgresEngine)
    wire = engine._writer._wire
    refused = write("append_entry", hand.entry(UID, 7, 1), ordered=True)
    assert engine.commit([refused, write("beat", {"worker": "w1"})]) == [None]
    assert engine.commit([write("beat", {"worker": "w1"})]) == [(1,)]
    assert engine._writer._wire is wire and wire is not None and wire._is_preparing


def test_a_column_that_got_another_type_is_read_anew(hand: Hand, postgres_url: str) -> None:
    assert hand.engine.query("list_tasks", listing())[0][0] == UID
    with psycopg.connect(postgres_url) as other:
        other.execute("ALTER TABLE perdure.tasks ALTER COLUMN version TYPE int")
    assert hand.engine.query("list_tasks", listing())[0][0] == UID


# ── the tables ───────────────────────────────────────────────────────────────────────────────────


def test_a_store_put_back_in_an_earlier_form_is_brought_up_again(hand: Hand, postgres_url: str) -> None:
    assert hand.signal(UID, "news") == (1,)
    with psycopg.connect(postgres_url) as other:
        other.execute("ALTER TABLE perdure.committers DROP COLUMN answer")
        other.execute("DELETE FROM perdure.migrations WHERE name = '0009_answers'")
    with pytest.raises(StoreUnavailable, match="answer"):
        hand.signal(UID, "news")
    assert hand.signal(UID, "news") == (2,)


# ── a pooler ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def bouncer(postgres_url: str) -> Iterator[PgBouncer]:
    with pgbouncer_to(postgres_url) as between:
        yield between


@pytest.mark.req("R55")
def test_every_verb_works_behind_a_pooler_in_transaction_mode(bouncer: PgBouncer) -> None:
    engine, model = PostgresEngine(bouncer.url), MemoryEngine("")
    try:
        assert a_life(Hand(engine)) == a_life(Hand(model))
        batch = [write("append_entry", Hand(model).entry(UID, 1, position)) for position in range(20)]
        assert engine.commit(batch) == model.commit(batch)
        assert dump(engine) == dump(model)
    finally:
        engine.close()
    with psycopg.connect(bouncer.url, autocommit=True, prepare_threshold=None) as other:
        served = {other.execute("SELECT pg_backend_pid()").fetchone() for _ in range(2 * SERVERS)}
    assert len(served) == SERVERS  # each transaction went to another server connection


# ── a standby ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R55")
def test_a_standby_is_no_server_until_it_is_promoted() -> None:
    primary = Cluster()
    standby = None
    engine = None
    try:
        standby = primary.standby()
        where = f"host={standby.socket},{primary.socket}&port={standby.port},{primary.port}"
        engine = PostgresEngine(f"postgresql://postgres@/postgres?{where}", patience=0)
        hand = Hand(engine)
        hand.running(UID)
        assert hand.progress(UID, 1) is not None
        _follow(primary, standby)
        primary.stop(signal.SIGQUIT)
        two = [write("beat", {"worker": "w1"}), write("beat", {"worker": "w1"})]
        with pytest.raises(StoreUnreachable):
            engine.query("read_workers", {})
        with pytest.raises(StoreUnreachable):
            engine.commit(two)
        standby.promote()
        assert engine.commit(two) == [(1,), (2,)]
    finally:
        if engine is not None:
            engine.close()
        if standby is not None:
            standby.remove()
        primary.remove()


@pytest.fixture
def pair() -> Iterator[Pair]:
    with servers() as two:
        yield two


@pytest.mark.req("R55")
def test_a_former_primary_that_comes_back_is_not_written_to(pair: Pair) -> None:
    former, heir = pair.primary, pair.standby
    engine = PostgresEngine(pair.url, patience=0)
    alone = PostgresEngine(f"postgresql://postgres@/postgres?host={former.socket}&port={former.port}", patience=0)
    try:
        hand = Hand(engine)
        hand.running(UID)
        former.kill()
        heir.promote()
        with contextlib.suppress(StoreUnreachable):  # its first call finds out that the connection is gone
            engine.query("read_workers", {})
        assert hand.append(UID, 1, 1) is not None
        former.start()  # libpq would take it: it is named first, and calls itself a primary
        _until_it_answers(former)
        engine._writer.hang_up()
        assert hand.append(UID, 1, 2) is not None
        assert _entries(heir) == 2
        alone._connector._timeline = engine._connector._timeline
        with pytest.raises(StoreUnreachable, match="is a former primary: it is on timeline 1"):
            alone.query("read_workers", {})
    finally:
        engine.close()
        alone.close()


@pytest.mark.req("R55")
def test_a_commit_that_its_server_did_not_replicate_is_not_acknowledged(pair: Pair) -> None:
    """PostgreSQL commits without its standby when the wait is cancelled, and says so in a notice only."""
    engine = PostgresEngine(pair.url, patience=0)
    try:
        hand = Hand(engine)
        hand.running(UID)
        pair.standby.stop(signal.SIGQUIT)
        with ThreadPoolExecutor() as pool, psycopg.connect(pair.primary.admin(), autocommit=True) as other:
            writing = pool.submit(hand.progress, UID, 1)
            while not writing.done():  # whatever waits for the standby is told to wait no longer
                other.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
                look_again_here()
            with pytest.raises(StoreUnreachable, match="did not wait for its standby"):
                writing.result()
    finally:
        engine.close()


def _until_it_answers(server: Cluster) -> None:
    while True:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(server.admin()):
            return
        look_again_here()


def _entries(server: Cluster) -> int:
    with psycopg.connect(server.admin()) as connection:
        [(entries,)] = connection.execute("SELECT count(*) FROM perdure.journal").fetchall()
    return int(entries)


def _follow(primary: Cluster, standby: Cluster) -> None:
    """Return when the standby has all that the primary has."""
    with psycopg.connect(primary.admin()) as one, psycopg.connect(standby.admin(), autocommit=True) as other:
        written = one.execute("SELECT pg_current_wal_flush_lsn() - '0/0'").fetchone()
        while other.execute("SELECT pg_last_wal_replay_lsn() - '0/0' >= %s", written).fetchone() != (True,):
            pass
