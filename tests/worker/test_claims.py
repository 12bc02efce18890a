"""A worker claims many tasks together, with the ends of those before them, and shares with others what it sees."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, pause, step
from perdure._durable.lifecycle import preparation as prepare
from perdure._ground.clock import MovableClock
from perdure._store import Write
from perdure._tasks import look_after
from perdure._worker.claims.claim_order import ClaimOrder, Turn
from tests.worker.kit import quick, until

MANY = 40


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"memory://{tmp_path.name}" if request.param == "memory" else f"sqlite://{tmp_path}/store/p.db"


@contextmanager
def watched(app: Perdure) -> Iterator[tuple[list[list[str]], list[str]]]:
    """The verbs of each transaction, and the names of all queries."""
    engine: Any = app._store.engine
    commit, query = engine.commit, engine.query
    batches: list[list[str]] = []
    queries: list[str] = []

    def committing(writes: Sequence[Write]) -> Any:
        rows = commit(writes)
        batches.append([write.verb for write in writes[: len(rows)]])
        return rows

    def querying(name: str, params: Any) -> Any:
        queries.append(name)
        return query(name, params)

    engine.commit, engine.query = committing, querying
    try:
        yield batches, queries
    finally:
        del engine.commit, engine.query


async def queued(app: Perdure, *verbs: str) -> None:
    """Until all of these are in the committer's queue."""
    await until(lambda: set(verbs) <= {write.verb for write in list(app._store.committer._queue)})


@pytest.mark.req("R54")
async def test_all_that_a_worker_has_room_for_is_found_and_claimed_together(address: str) -> None:
    async with Perdure(address) as app:
        handles = await asyncio.gather(*(app.start(f"task-{number}", quick, number) for number in range(MANY)))
        with watched(app) as (batches, queries):
            async with app.worker(concurrency=MANY):
                assert [await handle.result() for handle in handles] == list(range(MANY))
        claims = [Counter(batch)["claim_free"] for batch in batches]
        assert sum(claims) == MANY
        assert max(claims) > MANY / 2, "in one transaction, but for a few that may have been taken before them"
        known = Counter(queries)
        assert not known["get_call"] and not known["read_journal"], "what a task begins with came with its turn"


@pytest.mark.req("R54")
async def test_a_task_whose_end_is_on_its_way_to_disk_takes_no_room(address: str) -> None:
    """So the next one is claimed by the transaction that ends it."""
    stopped = ExitStack()

    @durable(name="returns while nothing is committed")
    async def returns() -> None:
        stopped.enter_context(app._store.committer.stopped())

    async with Perdure(address) as app:
        first, second = await app.start("first", returns), await app.start("second", quick, 2)
        with watched(app) as (batches, _):
            async with app.worker(concurrency=1):
                with stopped:
                    await queued(app, "complete_function", "claim_free")
                await first.result()
                assert await second.result() == 2
        together = next(batch for batch in batches if "complete_function" in batch)
        assert "claim_free" in together


@durable
async def naps(number: int) -> int:
    found = await plus_one(number)
    await pause.wait(hours=1)
    return await plus_one(found)


@step(flush=True)
async def plus_one(number: int) -> int:
    return number + 1


@pytest.mark.req("R31")
async def test_what_many_tasks_that_go_on_together_have_on_record_is_read_together(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one whose journal is longer than what is read together."""
    monkeypatch.setattr(prepare, "_MOST_TOGETHER", MANY - 2)
    clock = MovableClock(tmp_path / "clock")
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    async with Perdure(address) as app:
        handles = await asyncio.gather(*(app.start(f"nap-{number}", naps, number) for number in range(MANY)))
        async with app.worker(concurrency=MANY):
            for handle in handles:
                await app.tasks.wait_for(handle.id, status="paused")
        clock.advance(hours=2)
        for handle in handles:
            await look_after(app._store, handle._uid)
        with watched(app) as (_, queries):
            async with app.worker(concurrency=MANY):
                assert [await handle.result() for handle in handles] == [number + 2 for number in range(MANY)]
        known = Counter(queries)
        assert known["calls_of"] <= 5
        assert known["read_chain"] <= known["read_journal"] < MANY / 2, "by themselves only those that were left out"


def turn(number: int) -> Turn:
    return Turn(f"uid-{number}", f"task-{number}", "quick", 1, 0, "running", "default", "", b"", 0)


async def test_two_workers_take_different_tasks_of_those_they_see(tmp_path: Path) -> None:
    async with Perdure(f"memory://{tmp_path.name}") as app:
        me = app._store.presence.worker
        taken: list[list[Turn]] = []
        for known in ({me, " first"}, {me, "~ last"}):  # as one of the two sees it, and as the other
            turns = ClaimOrder(app.tasks, ["default"], lambda known=known: known)  # type: ignore[misc]
            turns._ahead.extend(turn(number) for number in range(500))
            taken.append(turns.choose(100))
        assert [len(chosen) for chosen in taken] == [100, 100]
        assert not set(taken[0]) & set(taken[1])


async def test_a_worker_takes_the_share_of_another_that_does_not(tmp_path: Path) -> None:
    async with Perdure(f"memory://{tmp_path.name}") as app:
        turns = ClaimOrder(app.tasks, ["default"], lambda: {app._store.presence.worker, "another"})
        everything = [turn(number) for number in range(150)]
        turns._ahead.extend(everything)
        chosen = [one for _ in range(4) for one in turns.choose(50)]
        assert set(chosen) == set(everything) and not turns


async def test_room_for_a_few_is_filled_strictly_in_order(tmp_path: Path) -> None:
    async with Perdure(f"memory://{tmp_path.name}") as app:
        turns = ClaimOrder(app.tasks, ["default"], lambda: {app._store.presence.worker, "another"})
        turns._ahead.extend(turn(number) for number in range(50))
        assert turns.choose(3) == [turn(0), turn(1), turn(2)]


@pytest.mark.req("R54")
async def test_a_worker_that_leaves_while_it_claims_keeps_nothing(address: str) -> None:
    async with Perdure(address) as app:
        for number in range(3):
            await app.start(f"task-{number}", quick, number)
        worker = app.worker()
        await app._store.presence.register()
        with app._store.committer.stopped():
            await worker.__aenter__()
            await queued(app, "claim_free")
            await worker.__aexit__(None, None, None)
        app._store.committer.flush()
        assert not app._store.presence.held and not app._store.presence.taking
        for number in range(3):
            handle = await app.handle(f"task-{number}", quick)
            assert (await app._store.query("read_holder", uid=handle._uid))[0][1] is None, "nobody has it"
        async with app.worker():
            assert await (await app.handle("task-1", quick)).result() == 1
