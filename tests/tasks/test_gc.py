"""gc removes what nobody needs, beside tasks that go on, and leaves a whole store wherever it is killed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._model import Plan
from perdure._store import Store
from perdure._tasks import Policy, Shelf, collect
from perdure.types import Config, Task
from tests.tasks.gc_kit import HOUR, asyncio_run_elsewhere, noise, seqs_of
from tests.tasks.upkeep_kit import flip_a_byte, snapshots_of, sql, store_of

# ── checkpoints ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R101", "R105")
async def test_of_500_checkpoints_the_last_50_and_the_pinned_stay(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("long", state={"n": 0, "log": "x" * 500})
        for n in range(1, 501):
            await task.checkpoint({"n": n, "log": f"{n} " * 200}, label="release" if n == 123 else "")
        await task.pin("77")
        before = await snapshots_of(task)
        report = await collect(store_of(app), Policy(keep_last=50))
        assert await seqs_of(task) == [77, 123, *range(451, 501)]
        assert report.checkpoints == 448 and not report.held_back
        assert {seq: before[seq] for seq in await snapshots_of(task)} == await snapshots_of(task)
        await task.checkpoint({"n": 501})
        assert (await app.tasks.handle("long")).state == {"n": 501}


@pytest.mark.req("R104", "R101")
async def test_the_file_shrinks_with_what_went(tmp_path: Path) -> None:
    async with Perdure(tmp_path / "p.db") as app:
        task = await app.tasks.open("large", state={})
        for n in range(500):
            await task.checkpoint({"n": n, "data": noise(16_000, n)})
        engine: Any = store_of(app).engine
        before = engine.bytes_used()
        report = await collect(store_of(app), Policy(keep_last=50), shrink=True)
        assert engine.bytes_used() <= 0.2 * before
        assert report.file_bytes == before - engine.bytes_used()
        assert report.bytes > 450 * 16_000
        await task.checkpoint({"n": 500})
        assert (await task.record()).state == {"n": 500}


@pytest.mark.req("R100")
async def test_checkpoints_expire_and_the_newest_does_not(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(5):
            await task.checkpoint({"n": n})
        clock.advance(seconds=2)
        await collect(store_of(app), Policy(keep_for=timedelta(seconds=1)))
        assert await seqs_of(task) == [5]
        assert (await task.record()).state == {"n": 4}


async def test_a_task_s_own_config_decides_before_the_policy(url: str) -> None:
    async with Perdure(url) as app:
        few = await app.tasks.create("few", state={}, config=Config(keep_last=2))
        many = await app.tasks.create("many", state={}, config=Config(keep_last=9))
        for n in range(8):
            await few.checkpoint({"n": n})
            await many.checkpoint({"n": n})
        await collect(store_of(app), Policy(keep_last=4))
        assert await seqs_of(few) == [7, 8]
        assert await seqs_of(many) == [*range(1, 9)]


async def test_without_a_policy_only_what_a_config_says_goes(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        plain = await app.tasks.open("plain", state={})
        own = await app.tasks.create("own", state={}, config=Config(keep_for=HOUR))
        for n in range(4):
            await plain.checkpoint({"n": n})
            await own.checkpoint({"n": n})
        await plain.complete()
        clock.advance(days=1000)
        report = await collect(store_of(app))
        assert (await seqs_of(plain), await seqs_of(own)) == ([1, 2, 3, 4], [4])
        assert report.checkpoints == 3 and report.tasks == 0


async def test_a_dry_run_says_what_would_go_and_changes_nothing(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(9):
            await task.checkpoint({"n": n, "same": "x" * 400})
        done = await app.tasks.open("done", state={})
        await done.complete()
        clock.advance(hours=2)
        policy = Policy(keep_last=3, finished_for=HOUR)
        would = await collect(store_of(app), policy, dry_run=True)
        assert await seqs_of(task) == [*range(1, 10)] and await app.tasks.get("done") is not None
        did = await collect(store_of(app), policy)
        assert (would.pruned, would.deleted, would.rebased) == (did.pruned, did.deleted, did.rebased)
        assert would.dry_run and not did.dry_run


@pytest.mark.req("R102")
async def test_a_large_state_with_small_changes_grows_by_the_changes_and_is_pruned_whole(tmp_path: Path) -> None:
    async with Perdure(tmp_path / "p.db") as app:
        state = {"log": noise(1_000_000).hex()[:1_000_000], "news": ""}
        task = await app.tasks.open("t", state=state)
        for n in range(100):
            state["news"] = noise(512, n).hex()
            await task.checkpoint(state)
        engine: Any = store_of(app).engine
        assert engine.bytes_used() < 8_000_000
        before = await snapshots_of(task)
        await collect(store_of(app), Policy(keep_last=10))
        after = await snapshots_of(task)
        assert [*after] == [0, *range(91, 101)]
        assert all(before[seq] == after[seq] for seq in after)


async def test_large_frames_go_with_their_chunks(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(4):
            # Half of it is new each time: a delta too large for one row, and a keyframe larger still.
            await task.checkpoint({"a": noise(1_300_000), "b": noise(1_200_000, n)})
        before = await snapshots_of(task)
        report = await collect(store_of(app), Policy(keep_last=2))
        assert report.rebased == 1
        after = await snapshots_of(task)
        assert [*after] == [0, 3, 4] and all(before[seq] == after[seq] for seq in after)
        named = {row[1] for row in await _owners(store_of(app), task)}
        assert await store_of(app).query("read_orphans", before="~") == [] and len(named) == 2


async def _owners(store: Store, task: Task) -> list[tuple[int, bytes]]:
    return [(row[0], row[-1]) for row in await store.query("read_outline", uid=task.uid) if row[-1]]


@pytest.mark.req("R105")
async def test_who_reads_a_large_state_while_gc_rewrites_it_reads_it_whole(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url) as app:
        store = store_of(app)
        task = await app.tasks.open("t", state={})
        for n in range(3):
            await task.checkpoint({"a": noise(1_300_000), "b": noise(1_200_000, n)})
        query = store.query
        rewritten: list[bool] = []

        def after_the_rows(name: str, **params: Any) -> Any:
            if name == "read_chunks" and not rewritten:
                rewritten.append(True)
                # The reader has its rows and asks for the first chunk; meanwhile its chain becomes one keyframe.
                asyncio_run_elsewhere(lambda: collect(store, Policy(keep_last=1)))
            return query(name, **params)

        monkeypatch.setattr(store, "query", after_the_rows)
        record = await task.record()
        assert rewritten and not record.damaged and record.latest is not None and record.latest.seq == 3


@pytest.mark.req("R105", "R95")
async def test_a_task_whose_state_is_damaged_loses_nothing(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(6):
            await task.checkpoint({"n": n})
        flip_a_byte(shared_url, task.uid, 6)
        report = await collect(store_of(app), Policy(keep_last=1))
        assert report.checkpoints == 0
        assert [held.task_id for held in report.held_back] == ["t"] and "damaged" in report.held_back[0].why
        assert (await app.tasks.handle("t")).state == {"n": 4}


async def test_what_a_damaged_checkpoint_builds_on_stays_for_inspection(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        store = store_of(app)
        task = await app.tasks.open("t", state={})
        for n in range(8):
            # The fifth resembles nothing before it, so the state does not build on what is going to be damaged.
            await task.checkpoint({"n": n, "same": noise(3000, n > 4)})
        await task.pin("4")
        flip_a_byte(shared_url, task.uid, 4)
        chain = [row[0] for row in await store.query("read_chain", uid=task.uid, target=4)]
        assert len(chain) > 1
        report = await collect(store, Policy(keep_last=1))
        assert [row[0] for row in await store.query("read_chain", uid=task.uid, target=4)] == chain
        assert len(report.held_back) == 1 and 7 in report.pruned[0].seqs


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R104", "R144")
async def test_finished_tasks_past_their_time_go_and_leave_a_tombstone(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        for name in ("old", "failed", "running", "paused"):
            await (await app.tasks.open(name, state={})).checkpoint({"x": 1})
        await (await app.tasks.handle("old")).complete()
        await (await app.tasks.handle("failed")).fail("no")
        await (await app.tasks.handle("paused")).pause("wait", reason="checkpoint")
        clock.advance(hours=2)
        await (await app.tasks.open("young", state={})).complete()
        report = await collect(store_of(app), Policy(finished_for=HOUR))
        assert {deleted.task_id for deleted in report.deleted} == {"old", "failed"}
        assert {record.id for record in await app.tasks.list()} == {"running", "paused", "young"}
        tombstones = await store_of(app).query("read_tombstones", namespace="default")
        assert {row[2] for row in tombstones} == {"old", "failed"}


async def test_archived_tasks_can_have_a_time_of_their_own(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        for name in ("seen", "archived"):
            await (await app.tasks.open(name, state={})).complete()
        clock.advance(days=9)
        await (await app.tasks.handle("archived")).archive()
        policy = Policy(archived_for=timedelta(days=1))
        assert (await collect(store_of(app), policy)).tasks == 0
        clock.advance(days=1)
        assert [deleted.task_id for deleted in (await collect(store_of(app), policy)).deleted] == ["archived"]


@pytest.mark.req("R105")
async def test_a_finished_task_that_another_waits_for_stays(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        for name in ("needed", "awaited", "free"):
            await (await app.tasks.open(name, state={})).complete()
        await app.tasks.create("later", state={}, depends_on=["needed", "not-yet"])
        waiting = await app.tasks.open("waiting", state={})
        await waiting.pause("for the other", reason="external_dependency", task="awaited")
        clock.advance(hours=2)
        report = await collect(store_of(app), Policy(finished_for=HOUR))
        assert [deleted.task_id for deleted in report.deleted] == ["free"]


@pytest.mark.req("R105")
async def test_each_task_that_one_of_several_questions_waits_for_stays(shared_url: str) -> None:
    """A function may wait for several tasks at once; the pause of its own task names one of them at most."""
    async with Perdure(shared_url) as app:
        waiting = await app.tasks.open("waiting", state={})
        for name in ("first", "second", "free"):
            await (await app.tasks.open(name, state={})).complete()
        columns = "task_uid, path, reason, topic, question, asked_at"
        for name in ("first", "second"):
            insert = f"INSERT INTO {{pauses}} ({columns}) VALUES (?, ?, 'external_dependency', ?, ?, 0)"
            sql(shared_url, insert, waiting.uid, f"|{name}", f"~task {name}", b"")
        policy = Policy(finished_for=timedelta(0))
        assert [deleted.task_id for deleted in (await collect(store_of(app), policy)).deleted] == ["free"]


@pytest.mark.req("R105")
async def test_a_run_whose_end_its_schedule_has_not_seen_stays(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        for name in ("tick", "free"):
            await (await app.tasks.open(name, state={})).complete()
        plan = Plan(function="f", version=1, arguments=b"", queue="q", priority=0, open=["tick"])
        await Shelf(store_of(app), "schedule", Plan).add("daily", plan)
        report = await collect(store_of(app), Policy(finished_for=timedelta(0)))
        assert [deleted.task_id for deleted in report.deleted] == ["free"]


@pytest.mark.req("R105")
async def test_a_finished_child_stays_while_its_parent_goes_on(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        parent = await app.tasks.open("parent", state={})
        for name in ("child", "stranger"):
            task = await app.tasks.open(name, state={})
            await task.complete()
            columns = "task_uid, function, version, arguments, queue, priority, parent_uid"
            of = parent.uid if name == "child" else None
            insert = f"INSERT INTO {{calls}} ({columns}) VALUES (?, 'f', 1, ?, 'q', 0, ?)"
            sql(shared_url, insert, task.uid, b"", of)
        policy = Policy(finished_for=timedelta(0))
        assert [deleted.task_id for deleted in (await collect(store_of(app), policy)).deleted] == ["stranger"]
        await parent.cancel()
        assert len((await collect(store_of(app), policy)).deleted) == 2


async def test_history_goes_with_its_own_age(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        await (await app.tasks.open("t", state={})).complete()
        clock.advance(hours=2)
        again = await app.tasks.open("t", state={"again": True}, again=True)
        await collect(store_of(app), Policy(finished_for=HOUR))
        assert [record.uid for record in await app.tasks.history("t")] == [again.uid]


async def test_other_namespaces_are_left_alone(url: str) -> None:
    async with Perdure(url) as ours, Perdure(url, namespace="theirs") as theirs:
        task = await theirs.tasks.open("t", state={})
        await task.checkpoint({})
        await task.complete()
        report = await collect(store_of(ours), Policy(keep_last=1, finished_for=timedelta(0)))
        assert (report.tasks, report.checkpoints) == (0, 0)
