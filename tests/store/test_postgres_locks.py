"""Batches of different processes over the same tasks never wait for each other in a circle."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import perdure
from perdure._store import Again, Row, Write
from perdure._store.postgres import PostgresEngine, batch
from perdure._store.postgres import batch_plan as plan
from perdure._store.postgres import writer as writing
from perdure._store.sql import Queries
from perdure.errors import StoreBusy
from tests.store.kit import UIDS, Hand, event, write

STORE = Path(perdure.__file__).parent / "_store"
STATEMENTS = Queries(STORE / "postgres" / "statements")
A, B, GATE_1, GATE_2 = UIDS[:4]


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────


def of(verb: str, key: str, **params: Any) -> Write:
    return Write(None, verb, {"uid": key, "worker": "w", **params}, key=key)  # type: ignore[arg-type]


def entry(key: str, position: int) -> Write:
    return of("append_entry", key, line=1, position=position)


def test_both_engines_know_the_same_verbs_and_queries() -> None:
    assert Queries(STORE / "postgres" / "queries").names() == Queries(STORE / "sqlite" / "queries").names()


def test_each_is_one_statement_and_the_rows_a_verb_touches_are_listed() -> None:
    queries = Queries(STORE / "postgres" / "queries")
    assert [name for name in queries.names() if len(queries[name]) != 1] == []
    changing = ("INSERT INTO", "UPDATE perdure", "DELETE FROM")
    verbs = [name for name in queries.names() if any(word in queries[name][0] for word in changing)]
    assert verbs == sorted(batch.TOUCHES)


def test_writes_are_run_by_key_and_each_key_keeps_its_own_order() -> None:
    writes = [entry("b", 1), entry("a", 1), entry("b", 2), entry("a", 2)]
    assert batch.arrange(writes) == [1, 3, 0, 2]


def test_claims_and_forgetting_a_worker_are_transactions_apart() -> None:
    verbs = ("append_entry", "create_task", "claim", "claim", "checkpoint", "forget_worker", "beat")
    rest: Sequence[Write] = [of(verb, f"t{n}") for n, verb in enumerate(verbs)]
    taken = []
    while rest:
        taken.append([write.verb for write in batch.prefix(rest)])
        rest = rest[len(taken[-1]) :]
    assert taken == [["append_entry", "create_task"], ["claim", "claim"], ["checkpoint"], ["forget_worker"], ["beat"]]


def test_a_long_queue_is_committed_in_parts() -> None:
    queue = [of("checkpoint", f"t{n}") for n in range(2000)]
    assert 1 < len(batch.prefix(queue)) < 1000
    assert len(batch.prefix([entry("t", n) for n in range(2000)])) == 2000


def test_one_position_is_met_once_in_a_statement() -> None:
    runs = batch.runs([entry("t", 1), entry("t", 2), entry("t", 1), entry("t", 3)])
    assert [[write.params["position"] for write in run] for run in runs] == [[1, 2], [1, 3]]


def test_leases_are_locked_in_one_mode_the_strongest() -> None:
    shared = batch.locks([entry("a", 1), of("checkpoint", "b")])
    assert (sorted(shared.leases), shared.changes_leases, shared.tasks) == (["a", "b"], False, ["b"])
    changed = batch.locks([entry("a", 1), of("release", "b")])
    assert (sorted(changed.leases), changed.changes_leases) == (["a", "b"], True)


def test_a_single_row_needs_no_order() -> None:
    assert not batch.locks([entry("a", 1), entry("a", 2)]).are_needed
    assert batch.locks([entry("a", 1), entry("b", 1)]).are_needed
    assert batch.locks([of("prune", "a")]).are_needed
    assert batch.locks([of("forget_worker", "a")]).are_needed
    assert batch.locks([of("restart_task", "new", old="old")]).tasks == ["old"]


# ── doing ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def engines(postgres_url: str) -> Iterator[list[PostgresEngine]]:
    """Two processes at one store, with finished tasks in it."""
    two = [PostgresEngine(postgres_url) for _ in range(2)]
    hand = Hand(two[0])
    for number, uid in enumerate(UIDS):
        assert hand.create(uid, f"task-{number}") and hand.move(uid, "cancel")
    yield two
    for engine in two:
        engine.close()


def touching(*uids: str) -> list[Write]:
    """A batch that changes these tasks in this order."""
    return [write("archive", {"uid": uid, "archived_at": 1, **event("archived", 1)}) for uid in uids]


def crossing(engines: list[PostgresEngine], postgres_url: str) -> list[Future[list[Row | None]]]:
    """Two batches that meet for certain: each is stopped at a gate when it has, if it can, its first task."""
    with (
        psycopg.connect(postgres_url) as gates,
        psycopg.connect(postgres_url, autocommit=True) as looking,
        ThreadPoolExecutor() as pool,
    ):
        gates.execute("SELECT 1 FROM perdure.tasks WHERE uid = ANY(%s) FOR UPDATE", ([GATE_1, GATE_2],))
        batches = touching(A, GATE_1, B), touching(B, GATE_2, A)
        done = [pool.submit(engine.commit, batch) for engine, batch in zip(engines, batches, strict=True)]
        while looking.execute("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted").fetchone() != (2,):
            pass
        gates.commit()
    return done


def test_batches_in_opposite_orders_do_not_meet_in_a_circle(engines: list[PostgresEngine], postgres_url: str) -> None:
    for future in crossing(engines, postgres_url):
        assert None not in future.result()
    assert Hand(engines[0]).task(A).version == Hand(engines[0]).task(B).version == 4


def test_without_locks_in_order_one_of_them_is_told_to_try_again(
    engines: list[PostgresEngine], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "arrange", lambda writes: list(range(len(writes))))
    monkeypatch.setattr(batch, "locks", lambda writes: batch.Locks([], [], []))
    done = crossing(engines, postgres_url)
    (refused,) = [error for future in done if (error := future.exception()) is not None]
    assert isinstance(refused, Again)
    assert [future.exception() for future in done].count(None) == 1
    assert Hand(engines[0]).task(A).version == Hand(engines[0]).task(B).version == 3


def test_many_batches_in_any_order_all_get_through(engines: list[PostgresEngine]) -> None:
    start = threading.Barrier(2)

    def go(engine: PostgresEngine, uids: Sequence[str]) -> None:
        start.wait()
        for turn in range(40):
            engine.commit(touching(*uids[turn % 3 :], *uids[: turn % 3]))

    with ThreadPoolExecutor() as pool:
        list(pool.map(go, engines, (UIDS, UIDS[::-1])))
    assert {Hand(engines[0]).task(uid).version for uid in UIDS} == {2 + 80}


def test_processes_that_create_the_same_tasks_in_opposite_orders_all_get_through(postgres_url: str) -> None:
    engines = [PostgresEngine(postgres_url) for _ in range(2)]
    start = threading.Barrier(2)

    def go(engine: PostgresEngine, who: str) -> int:
        hand = Hand(engine)
        start.wait()
        made = 0
        for turn in range(20):
            ids = [f"{turn}-{n}" for n in range(10)][:: 1 if who == "a" else -1]
            new = [{**hand._new(id), "uid": f"{who}{id}"} for id in ids]
            writes = [Write(None, "create_task", one, key=f"main\0{one['id']}") for one in new]  # type: ignore[arg-type]
            made += sum(row is not None for row in engine.commit(writes))
        return made

    with ThreadPoolExecutor() as pool:
        assert sum(pool.map(go, engines, "ab")) == 200
    for engine in engines:
        engine.close()


def test_answers_come_in_the_order_of_the_writes(engines: list[PostgresEngine]) -> None:
    uids = [*UIDS[::-1], "nobody", *UIDS]
    answers = engines[0].commit(touching(*uids))
    assert answers == [*[(3,)] * len(UIDS), None, *[(4,)] * len(UIDS)]


def test_a_row_that_nobody_lets_go_of_is_reported_and_the_engine_works_on(
    engines: list[PostgresEngine], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(plan.SETTINGS, "lock_ms", "20")
    with psycopg.connect(postgres_url) as holding:
        holding.execute("SELECT 1 FROM perdure.tasks WHERE uid = %s FOR UPDATE", (A,))
        with pytest.raises(StoreBusy):
            engines[0].commit(touching(A, B))
    assert engines[0].commit(touching(A, B)) == [(3,), (3,)]


def test_half_of_a_batch_does_not_keep_its_rows_locked_for_ever(
    engines: list[PostgresEngine], postgres_url: str
) -> None:
    """Its sender was stopped in between. The server waits for the rest, and does not call that idle."""
    stopped = psycopg.connect(postgres_url, autocommit=True)
    try:
        if stopped.info.server_version < 170_000:
            pytest.skip("PostgreSQL knows no transaction_timeout before 17")
        given = {**plan.SETTINGS, "transaction_ms": "200", "committer": "stopped", "batch": "1"}
        begin = re.sub(r"%\((\w+)\)s", lambda name: f"'{given[name[1]]}'", STATEMENTS["begin_batch"][0])
        lock = f"SELECT 1 FROM perdure.tasks WHERE uid = '{A}' FOR UPDATE"
        stopped.pgconn.enter_pipeline_mode()
        for text in ("BEGIN", begin, lock):
            stopped.pgconn.send_query_params(text.encode(), None)
        stopped.pgconn.send_flush_request()
        for _ in range(3):
            found = stopped.pgconn.get_result()
            assert found is not None and not found.error_message
            assert stopped.pgconn.get_result() is None

        assert engines[0].commit(touching(A)) == [(3,)]
    finally:
        stopped.close()


@pytest.mark.req("R110")
def test_a_server_that_gives_up_too_soon_had_its_clock_set_and_is_asked_again(
    engines: list[PostgresEngine], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(plan.SETTINGS, "lock_ms", "20")
    monkeypatch.setattr(writing, "_soonest", lambda: 60.0)
    with psycopg.connect(postgres_url) as holding:
        holding.execute("SELECT 1 FROM perdure.tasks WHERE uid = %s FOR UPDATE", (A,))
        with pytest.raises(Again):
            engines[0].commit(touching(A, B))
    assert engines[0].commit(touching(A, B)) == [(3,), (3,)]


def test_a_worker_is_not_forgotten_while_its_claim_is_under_way(postgres_url: str) -> None:
    engine = PostgresEngine(postgres_url)
    hand = Hand(engine)
    hand.register()
    hand.create(A)
    with (
        psycopg.connect(postgres_url) as holding,
        psycopg.connect(postgres_url, autocommit=True) as looking,
        ThreadPoolExecutor() as pool,
    ):
        holding.execute("SELECT 1 FROM perdure.workers FOR KEY SHARE")
        holding.execute("UPDATE perdure.leases SET worker = 'w1'")
        forgetting = pool.submit(hand.do, "forget_worker", worker="w1")
        while looking.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is None:
            pass
        holding.commit()
        assert forgetting.result() is None
    engine.close()


@pytest.mark.req("R55")
@pytest.mark.parametrize("many", [2, 6])
@pytest.mark.parametrize("row", ["tasks WHERE uid", "leases WHERE task_uid"])
def test_a_free_lease_whose_rows_are_locked_is_left_to_who_has_locked_them(
    postgres_url: str, many: int, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is waited for: the other claims of the batch, and whatever else is in it, are in at once."""
    monkeypatch.setitem(plan.SETTINGS, "lock_ms", "1")
    engine = PostgresEngine(postgres_url)
    hand = Hand(engine)
    hand.register()
    for number in range(many):
        hand.create(UIDS[number], f"t{number}")
    who = {"worker": "w1", "host": "here", "pid": 7, "user": "ada", "seen_epoch": 0}
    claims = [
        write("claim_free", {"uid": UIDS[n], **event("attempt started", 900), **who}, key=f"t{n}") for n in range(many)
    ]
    beat = write("beat", {"worker": "w1"}, key="worker w1")
    with psycopg.connect(postgres_url) as holding:
        holding.execute(f"SELECT 1 FROM perdure.{row} = %s FOR SHARE".encode(), (UIDS[1],))
        answers = engine.commit([*claims, beat])
    assert [bool(row) for row in answers] == [number != 1 for number in range(many)] + [True]
    assert [bool(row) for row in engine.commit(claims)] == [number == 1 for number in range(many)]
    engine.close()


def test_a_claim_of_free_leases_locks_the_row_of_its_worker() -> None:
    params = {"uid": A, "worker": "w1"}
    found = batch.locks([write("claim_free", params, key="a")])
    assert found.are_needed and found.workers == ["w1"] and not found.changes_workers
