"""Every verb finds its rows by their keys, even when its plan was made while there were hardly any.

A prepared statement keeps its plan. One made for tables of a few rows may well read them from end to
end, and would go on doing so when they have grown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import perdure
from perdure._store.postgres import PostgresEngine, batch
from perdure._store.postgres import batch_plan as planning
from perdure._store.sql import Queries
from tests.store.conftest import empty
from tests.store.kit import UIDS, Hand, write

HERE = Path(perdure.__file__).parent / "_store" / "postgres"
VERBS, STATEMENTS = Queries(HERE / "queries"), Queries(HERE / "statements")
BY_KEY = sorted(batch.TOUCHES)
# What is read on the way of an attempt; listings and upkeep may read more.
BY_KEY += ["get_task", "get_task_by_uid", "get_call", "read_attempts", "read_journal", "read_checkpoints", "read_chain"]
BY_KEY += ["read_chunks", "read_events", "read_pauses"]


@pytest.fixture(scope="module")
def planner(postgres_store: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection as the engine has it, to a store with a few tasks, of which the planner knows."""
    empty(postgres_store)
    engine = PostgresEngine(postgres_store)
    hand = Hand(engine)
    for number in range(3):
        epoch = hand.running(UIDS[number], f"task-{number}")
        hand.append(UIDS[number], epoch, 1)
        hand.checkpoint(UIDS[number], epoch, 0)
    engine.shrink()
    with engine._reader() as reader:
        if reader.connection.info.server_version < 160_000:
            pytest.skip("EXPLAIN (GENERIC_PLAN) needs PostgreSQL 16")
        yield reader.connection
    engine.close()


def plan(connection: psycopg.Connection[Any], statement: str) -> str:
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", statement)
    explain = f"EXPLAIN (GENERIC_PLAN, COSTS OFF) {numbered}".encode()
    # Not by execute(): parameters without values are for EXPLAIN alone.
    result = connection.pgconn.exec_(explain)
    assert not result.error_message, (statement, result.error_message)
    return "\n".join((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))


def full_readings(found: str) -> list[str]:
    """The parts of a plan that go through a whole table or index. How what they find is joined is the planner's choice,
    which changes with what it happens to know of so few rows."""
    lines = found.splitlines()
    bad = [line for line in lines if "Seq Scan" in line]
    for number, line in enumerate(lines):
        is_index = re.search(r"Index (Only )?Scan", line) and "Bitmap" not in line
        if is_index and not any("Index Cond" in after for after in lines[number + 1 : number + 2]):
            bad.append(line)
    return bad


@pytest.mark.parametrize("name", BY_KEY)
def test_rows_are_found_by_their_keys(planner: psycopg.Connection[Any], name: str) -> None:
    found = plan(planner, VERBS[name][0])
    assert full_readings(found) == [], found


@pytest.mark.parametrize(
    "name", ["share_one", "lock_one", "append_surely", "append_all", "append_entries", "start_functions"]
)
def test_what_a_batch_is_sent_as_finds_rows_by_their_keys(planner: psycopg.Connection[Any], name: str) -> None:
    found = plan(planner, STATEMENTS[name][0])
    assert full_readings(found) == [], found


@pytest.mark.parametrize("name", [name for name in sorted(batch.TOUCHES) if planning.is_noted(write(name, {}))])
def test_a_write_that_notes_its_answer_finds_rows_by_their_keys(planner: psycopg.Connection[Any], name: str) -> None:
    statement, _ = planning.alone(write(name, {}), "us")
    found = plan(planner, statement.text.decode())
    assert full_readings(found) == [], found
    assert "committers_pkey" in found, found


def test_the_plans_of_what_is_written_are_kept(postgres_url: str) -> None:
    engine = PostgresEngine(postgres_url)
    Hand(engine).register()
    wire = engine._writer._wire
    assert wire is not None
    assert wire.connection.execute("SHOW plan_cache_mode").fetchone() == ("force_generic_plan",)
    engine.close()


def test_many_ends_look_up_each_row_by_its_key(planner: psycopg.Connection[Any]) -> None:
    """What was given is joined to what was changed, in memory; the tables themselves are never gone through."""
    found = plan(planner, STATEMENTS["complete_functions"][0])
    assert "Seq Scan" not in found and "leases_pkey" in found, found
    assert found.count("= ANY ((InitPlan") >= 3, found  # of tasks, leases and attempts: only rows that were given


@pytest.mark.parametrize("name", ["append_entries", "append_all"])
def test_many_entries_look_up_each_lease_by_its_task(planner: psycopg.Connection[Any], name: str) -> None:
    found = plan(planner, STATEMENTS[name][0])
    assert full_readings(found) == [] and "leases_pkey" in found and "leases_by_worker" not in found, found


@pytest.mark.parametrize("name", ["append_entry", "checkpoint", "mark_progress", "move_task", "release", "claim"])
def test_a_lease_is_found_by_its_task_and_not_by_its_worker(planner: psycopg.Connection[Any], name: str) -> None:
    assert "leases_by_worker" not in plan(planner, VERBS[name][0])


@pytest.mark.parametrize("name", ["lock_tasks", "lock_leases", "share_leases", "lock_workers", "share_workers"])
def test_rows_are_locked_by_their_keys(planner: psycopg.Connection[Any], name: str) -> None:
    found = plan(planner, STATEMENTS[name][0])
    assert full_readings(found) == [], found
