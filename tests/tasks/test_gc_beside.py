"""gc beside others: what dead processes leave behind, being killed itself, and what happens at the same moment."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground import ids
from perdure._ground.clock import MovableClock
from perdure._store import Store
from perdure._tasks import Policy, collect
from perdure.cli import main
from perdure.errors import NotFound
from tests.tasks.gc_kit import asyncio_run_elsewhere, noise, seqs_of
from tests.tasks.upkeep_kit import is_killed_at, run_python, snapshots_of, start_python, store_of

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
