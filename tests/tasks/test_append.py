"""A list in a task's state grows item by item, and each costs what it weighs."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from perdure import Perdure, durable, effect, state
from perdure._durable.progress import state_list as stating
from perdure._store import FrameRow
from perdure.errors import InvalidInput, NotStorable
from tests.durable.effects_kit import Died

ITEMS: list[Any] = [
    1, "é" * 300, {"role": "user", "content": "x" * 500}, None, [1, {"a": []}], b"bytes", (1, 2),
    datetime(2026, 1, 2, tzinfo=UTC), 2**70, {1, 2}, -5, 70_000,
]  # fmt: skip


@pytest.mark.req("R102")
async def test_lists_grow_wherever_they_are_and_whatever_is_added(url: str) -> None:
    chance = random.Random(7)
    want: dict[str, Any] = {"phase": "x", "messages": [], "deep": {"rows": [[]]}, "end": "z"}
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state=want)
        for number in range(60):
            item, path = chance.choice(ITEMS), chance.choice(["messages", ("deep", "rows", 0), "deep.new", "log"])
            made = await task.append(path, item)
            where: Any = want
            keys = path.split(".") if isinstance(path, str) else path
            for key in keys[:-1]:
                where = where[key]
            where = where[keys[-1]] if isinstance(keys[-1], int) else where.setdefault(keys[-1], [])
            where.append(item)
            assert task.state == want == made.data
            if number % 20 == 7:
                want["phase"] = str(number)
                await task.checkpoint({**task.state, "phase": str(number)}, plan={"at": number})
        record = await app.tasks.get("job")
        assert record is not None and record.state == want and record.latest is not None
        assert record.latest.plan == {"at": 47}, "what stands beside the state stays"
        assert record.latest.checksum == made.checksum, "as it was told when the item was added"
        seen = [made.data async for made in task.checkpoints()]
        assert len(seen) == 63 and len(seen[0]["messages"]) <= 1, "earlier checkpoints are as they were"


@pytest.mark.req("R102")
async def test_an_item_costs_its_own_bytes_however_long_the_list_is(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"messages": []})
        for number in range(200):
            await task.append("messages", {"role": "user", "content": f"message {number} " + "x" * 1000})
        rows = await app._store.query("read_checkpoints", uid=task.uid, after=0, limit=1000)
        stored = [FrameRow(*row).stored for row in rows]
        assert max(stored[20:]) < 400 and sum(stored) < 60_000


async def test_what_cannot_be_added_is_refused_and_nothing_changes(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"name": "x", "rows": [1]})
        for path in ("name", "name.inner", "", ("rows", 5)):
            with pytest.raises(InvalidInput):
                await task.append(path, 1)
        with pytest.raises(NotStorable) as refused:
            await task.append("rows", {"a": object()})
        assert refused.value.path == "rows[].a"
        record = await task.record()
        assert record.state == {"name": "x", "rows": [1]} and record.latest is None


# ── in durable functions ─────────────────────────────────────────────────────────────────────────

ran: list[int] = []


@effect(keyed=True)
async def work(number: int) -> int:
    ran.append(number)
    return number


@durable
async def tells() -> int:
    for number in range(3):
        await state.append("done", await work(number))
    return 3


async def test_a_durable_function_that_dies_before_it_could_record_an_item_does_not_add_it_twice(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran.clear()
    add, died = stating.append_to_state, []

    async def add_and_die(*args: Any, **how: Any) -> Any:
        made = await add(*args, **how)
        if len(died) < 2:
            died.append(made)
            raise Died
        return made

    monkeypatch.setattr(stating, "append_to_state", add_and_die)
    async with Perdure(url) as app:
        for _ in range(2):
            with pytest.raises(Died):
                await app.run("job", tells)
        assert await app.run("job", tells) == 3
        task = await app.tasks.handle("job")
        assert (await task.record()).state == {"done": [0, 1, 2]} and ran == [0, 1, 2]
