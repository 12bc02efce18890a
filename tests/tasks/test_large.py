"""States too large for one row: all of their parts are there, or nothing is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground.secrets import crypto
from perdure._tasks import Policy, collect, rotate
from perdure.errors import StoreFull
from tests.tasks.upkeep_kit import snapshots_of, store_of

LARGE = 2_500_000


def large() -> dict[str, bytes]:
    return {"picture": os.urandom(LARGE)}


@contextmanager
def no_space_for_parts(app: Perdure, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A disk that takes a row, and no large part."""
    engine = store_of(app).engine
    commit = engine.commit

    def refuse(writes: Any) -> Any:
        if any(write.verb == "put_chunk" for write in writes):
            raise StoreFull(engine.place)
        return commit(writes)

    with monkeypatch.context() as patch:
        patch.setattr(type(engine), "commit", lambda _, writes: refuse(writes))
        yield


@pytest.mark.req("R11", "R23")
async def test_a_large_state_without_space_for_its_parts_is_refused_and_the_one_before_stays(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={"n": 0})
        await task.checkpoint({"n": 1})
        with no_space_for_parts(app, monkeypatch):
            with pytest.raises(StoreFull):
                await task.checkpoint(large())
            with pytest.raises(StoreFull):
                await task.pause("wait", reason="human_input", checkpoint=large())
            with pytest.raises(StoreFull):
                await app.tasks.create("other", state=large())
        record = await app.tasks.get("t")
        assert record is not None and (record.status, record.state, record.damaged) == ("running", {"n": 1}, [])
        assert [one.seq async for one in task.checkpoints()] == [1]
        assert await app.tasks.get("other") is None
        kept = large()
        await task.checkpoint(kept)
        record = await app.tasks.get("t")
        assert record is not None and record.state == kept


@pytest.mark.req("R102", "R105", "R142")
async def test_neither_gc_nor_a_new_key_replaces_a_large_state_by_one_whose_parts_are_missing(
    shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = crypto.generate("one")
    kept = large()
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("t", state={})
        await task.checkpoint(kept)
        for n in range(3):
            await task.checkpoint({**kept, "n": n})
        before = await snapshots_of(task)
    async with Perdure(shared_url, key=key) as app:
        task = await app.tasks.open("t")
        with no_space_for_parts(app, monkeypatch):
            with pytest.raises(StoreFull):
                await collect(store_of(app), Policy(keep_last=1))
            with pytest.raises(StoreFull):
                await rotate(store_of(app))
        assert await snapshots_of(task) == before
        await rotate(store_of(app))
        await collect(store_of(app), Policy(keep_last=1))
        record = await app.tasks.get("t")
        assert record is not None and record.state == {**kept, "n": 2}
