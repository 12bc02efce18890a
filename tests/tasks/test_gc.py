"""gc removes what nobody needs, beside tasks that go on, and leaves a whole store wherever it is killed."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Config, Perdure, Task
from perdure._ground import ids
from perdure._ground.clock import MovableClock
from perdure._store import Store
from perdure._tasks import Policy, collect
from perdure.cli import main
from perdure.errors import NotFound
from tests.tasks.upkeep_kit import flip_a_byte, is_killed_at, run_python, snapshots_of, sql, start_python, store_of

HOUR = timedelta(hours=1)


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that no compression makes smaller."""
    return random.Random(seed).randbytes(size)


async def seqs_of(task: Task) -> list[int]:
    return [checkpoint.seq async for checkpoint in task.checkpoints()]


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


def asyncio_run_elsewhere(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    thread.join()


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


# ── what dead processes leave behind ─────────────────────────────────────────────────────────────


async def send_chunk(store: Store, uid: str) -> str:
    owner = ids.new_uid(store.clock.now_ms())
    await store.verb("put_chunk", uid, {"owner": owner, "n": 0, "chunk_body": b"x" * 1000}, key=uid)
    return owner


async def test_chunks_whose_row_never_came_go_after_an_hour(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        store = store_of(app)
        task = await app.tasks.open("t", state={"large": noise(2_000_000)})
        await send_chunk(store, task.uid)
        await send_chunk(store, ids.new_uid(store.clock.now_ms()))  # its task was never made
        clock.advance(minutes=59)
        assert (await collect(store)).chunks == 0
        clock.advance(minutes=2)
        assert (await collect(store, dry_run=True)).chunks == 2
        report = await collect(store)
        assert (report.chunks, report.bytes) == (2, 2000)
        assert (await task.record()).state == {"large": noise(2_000_000)}


@pytest.mark.req("R105")
async def test_chunks_that_a_living_holder_may_still_name_stay(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        store = store_of(app)
        task = await app.tasks.open("t", state={})
        await send_chunk(store, task.uid)
        clock.advance(minutes=1)
        async with task.attempt():
            clock.advance(minutes=1)
            await send_chunk(store, task.uid)
            clock.advance(hours=9)
            assert (await collect(store)).chunks == 1, "only the one from before this attempt"
        assert (await collect(store)).chunks == 1


FINISH_AND_DIE = """
import asyncio, os, signal
from perdure import Perdure

async def main():
    app = Perdure(os.environ["URL"])
    task = await app.tasks.open("t", state={})
    await task.checkpoint({"n": 1})
    if os.environ["END"]:
        await task.complete()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize("end, gone", [("completed", 1), ("", 0)])
async def test_the_row_of_a_dead_process_goes_unless_it_holds_a_lease(shared_url: str, end: str, gone: int) -> None:
    assert run_python(FINISH_AND_DIE, URL=shared_url, END=end).returncode == -signal.SIGKILL
    async with Perdure(shared_url) as app:
        await (await app.tasks.open("other", state={})).complete()  # our own row stays: we may take a lease again
        workers = len(await store_of(app).query("read_workers"))
        assert workers == 2
        assert (await collect(store_of(app))).workers == gone
        assert len(await store_of(app).query("read_workers")) == workers - gone


# ── beside others, and killed ────────────────────────────────────────────────────────────────────

GC_IN_A_LOOP = """
import asyncio, os
from perdure import Perdure
from perdure._tasks import Policy, collect

async def main():
    async with Perdure(os.environ["URL"]) as app:
        rounds = 0
        while True:
            report = await collect(app._store, Policy(keep_last=2))
            assert not report.held_back, report.held_back
            rounds += 1
            print(rounds, report.checkpoints, report.rebased, flush=True)

asyncio.run(main())
"""


@pytest.mark.req("R105")
async def test_a_run_goes_on_while_another_process_collects_without_pause(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("t", state={"n": 0})
        collector = start_python(GC_IN_A_LOOP, URL=shared_url)
        try:
            assert collector.stdout is not None and collector.stdout.readline()
            for n in range(1, 101):
                state = {"n": n, "same": "x" * 2000, "large": noise(1_200_000, n) if n % 25 == 0 else b""}
                made = await task.checkpoint(state)
                record = await app.tasks.get("t")
                assert record is not None and record.state == state and not record.damaged
                if n % 10 == 0:
                    with_luck = await seqs_of(task)
                    assert with_luck[-1] == made.seq
            assert collector.poll() is None, "gc itself failed"
        finally:
            collector.kill()
            rounds = collector.communicate()[0].splitlines()
        assert len(rounds) > 3
        assert None not in (await snapshots_of(task)).values()


PLACES = [
    ("gc.before_rebase", 1),
    ("gc.before_rebase", 2),
    ("gc.after_rebase", 1),
    ("gc.prune", 1),
    ("gc.prune", 8),
    ("committer.before_commit", 2),
    ("committer.before_commit", 3),
    ("committer.after_commit", 2),
    ("committer.after_commit", 3),
    ("gc.delete", 1),
]


@pytest.mark.req("R102", "R105")
async def test_wherever_gc_is_killed_every_checkpoint_left_reads_as_before(shared_url: str) -> None:
    policy = Policy(keep_last=5, finished_for=timedelta(0))

    async def collect_once() -> None:
        async with Perdure(shared_url) as app:
            await collect(store_of(app), policy)

    last = 0
    for place, count in PLACES:
        async with Perdure(shared_url) as app:
            task = await app.tasks.open("t", state={})
            for n in range(16):
                await task.checkpoint({"n": n, "same": noise(2000)})
            await (await app.tasks.open("done", state={})).complete()
            last = (await task.checkpoint({"same": noise(2000)})).seq
            await task.pin(str(last - 10))
            before = await snapshots_of(task)
        assert is_killed_at(place, count, collect_once), place
        async with Perdure(shared_url) as app:
            task = await app.tasks.handle("t")
            after = await snapshots_of(task)
            assert {0, last - 10, *range(last - 4, last + 1)} <= after.keys()
            assert all(before[seq] == after[seq] for seq in after)
    await collect_once()
    async with Perdure(shared_url) as app:
        assert [*range(last - 4, last + 1)] == (await seqs_of(await app.tasks.handle("t")))[-5:]
        assert await app.tasks.get("done") is None


# ── what others do at the same moment ────────────────────────────────────────────────────────────


def just_before(store: Store, verb: str, act: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have something else happen after everything was read and right before the verb is sent."""
    send = store.verb
    happened: list[bool] = []

    def sent(name: str, *args: Any, **how: Any) -> Any:
        if name == verb and not happened:
            happened.append(True)
            asyncio_run_elsewhere(act)
        return send(name, *args, **how)

    monkeypatch.setattr(store, "verb", sent)


async def test_a_checkpoint_pinned_at_the_last_moment_stays(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(5):
            await task.checkpoint({"n": n})
        just_before(store_of(app), "prune", lambda: task.pin("2"), monkeypatch)
        await collect(store_of(app), Policy(keep_last=1))
        assert 2 in await seqs_of(task) and None not in (await snapshots_of(task)).values()


async def test_a_pin_that_comes_too_late_says_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(5):
            await task.checkpoint({"n": n})
        just_before(store_of(app), "pin", lambda: collect(store_of(app), Policy(keep_last=1)), monkeypatch)
        with pytest.raises(NotFound):
            await task.pin("2")


@pytest.mark.req("R105")
async def test_a_rollback_to_what_gc_has_just_taken_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(5):
            await task.checkpoint({"n": n})
        just_before(store_of(app), "rollback", lambda: collect(store_of(app), Policy(keep_last=1)), monkeypatch)
        with pytest.raises(NotFound):
            await task.rollback("2")
        assert (await task.record()).state == {"n": 4}


@pytest.mark.req("R105")
async def test_the_state_never_falls_back_to_what_gc_has_just_taken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={"n": -1})
        for n in range(5):
            await task.checkpoint({"n": n})
        just_before(store_of(app), "invalidate", lambda: collect(store_of(app), Policy(keep_last=1)), monkeypatch)
        await task.invalidate_if(lambda checkpoint: checkpoint.data["n"] >= 3)
        record = await task.record()
        assert record.state == {"n": -1} and not record.damaged


# ── the command ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R104", "R148")
def test_perdure_gc_says_what_would_go_and_then_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.db"
    monkeypatch.setenv("PERDURE_URL", str(path))

    async def work() -> None:
        async with Perdure() as app:
            task = await app.tasks.open("t", state={})
            for n in range(200):
                await task.checkpoint({"data": noise(20_000, n)})

    asyncio.run(work())
    size = path.stat().st_size
    assert main(["gc", "--keep-last", "10", "--dry-run", "--json"]) == 0
    would = json.loads(capsys.readouterr().out)
    assert would["checkpoints"] == 190 and would["dry_run"] and path.stat().st_size == size
    assert main(["gc", "--keep-last", "10"]) == 0
    assert "190 checkpoints" in capsys.readouterr().out
    assert path.stat().st_size < size / 5
    assert main(["gc", "--keep-bytes", "lots"]) == 2
    assert main(["gc", "--keep-last", "0"]) == 2
