"""A process that keeps the newest snapshots gives what the store has now, whoever wrote it."""

from __future__ import annotations

import pytest
from msgspec import structs

from perdure import Perdure
from perdure._tasks import keep_recent, store_of
from perdure._tasks.state import recent_snapshots, snapshots


@pytest.fixture
def chains(monkeypatch):
    """How many chains are read whole."""
    read = []
    chain = snapshots._chain

    async def noted(store, uid, seq):
        read.append(seq)
        return await chain(store, uid, seq)

    monkeypatch.setattr(snapshots, "_chain", noted)
    return read


async def test_the_next_snapshot_is_built_from_one_delta_and_is_what_others_read(shared_url, chains):
    async with Perdure(shared_url) as keeping, Perdure(shared_url) as other:
        keep_recent(store_of(keeping.tasks))
        task = await other.tasks.create("t", state={"n": 0, "text": "x" * 2000})
        for number in range(1, 40):
            if number == 20:
                await other.tasks.create("between", state={})
                await task.rollback(to=str(10))
            else:
                await task.checkpoint({"n": number, "text": "x" * 2000})
            before = len(chains)
            seen = (await keeping.tasks.get("t")).state
            kept_reads = len(chains) - before
            assert seen == (await other.tasks.get("t")).state
            assert kept_reads <= (number in (1, 20, 21)), number
    assert len(chains) > 40


async def test_a_state_that_does_not_fit_what_is_kept_is_read_from_its_chain(shared_url, chains):
    async with Perdure(shared_url) as keeping, Perdure(shared_url) as other:
        store = store_of(keeping.tasks)
        keep_recent(store)
        task = await other.tasks.create("t", state={"n": 0})
        await task.checkpoint({"n": 1, "text": "y" * 500})
        await keeping.tasks.get("t")
        recent = recent_snapshots._recent[store]
        kept = recent._kept[task.uid]
        recent._kept[task.uid] = kept._replace(snapshot=structs.replace(kept.snapshot, raw=b"something else"))
        await task.checkpoint({"n": 2, "text": "y" * 500})
        assert (await keeping.tasks.get("t")).state == {"n": 2, "text": "y" * 500}


async def test_what_is_kept_is_bounded_in_bytes(quick_url, monkeypatch):
    monkeypatch.setattr(recent_snapshots, "_MOST_BYTES", 10_000)
    monkeypatch.setattr(recent_snapshots, "_LARGEST", 4_000)
    async with Perdure(quick_url) as app:
        keep_recent(store_of(app.tasks))
        for number, size in enumerate([3000, 3000, 3000, 3000, 9000]):
            await app.tasks.create(f"t{number}", state={"text": "x" * size})
            await app.tasks.get(f"t{number}")
        recent = recent_snapshots._recent[store_of(app.tasks)]
        assert recent._bytes == sum(len(kept.snapshot.raw) for kept in recent._kept.values()) <= 10_000
        assert len(recent._kept) == 3
