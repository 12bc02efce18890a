"""Each operation of a task keeps its own cursor."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from perdure import Perdure
from perdure._model import Progress
from tests.support.processes import Link, nursery, say


async def mark_two(link: Link, url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("move", state={})
        await task.mark_progress("copy", cursor={"row": 40}, done=40, total=100)
        await task.mark_progress("index", cursor="b", percent=10)
        await task.mark_progress("copy", cursor={"row": 60}, done=60, total=100)
        say(link)
        await asyncio.Event().wait()


async def test_cursors_of_two_operations_outlive_a_kill_beside_each_other(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    with nursery() as children:
        child = children.start(mark_two, url)
        child.heard()
        child.kill()
    async with Perdure(url) as app:
        task = await app.tasks.handle("move")
        found = (await task.record()).progress
        assert found is not None and found.operation == "copy"
        copy, index = found.of("copy"), found.of("index")
        assert copy is not None and (copy.cursor, copy.remaining) == ({"row": 60}, 40)
        assert index is not None and (index.cursor, index.percent) == ("b", 10)
        assert found.of("vacuum") is None


async def test_the_next_attempt_adds_to_them_and_two_at_once_lose_nothing(url: str) -> None:
    async with Perdure(url) as kept_open:  # a store in memory goes with its last user
        async with Perdure(url) as app:
            task = await app.tasks.create("move", state={})
            await task.mark_progress("copy", cursor=1)
        task = await kept_open.tasks.handle("move")
        await asyncio.gather(*(task.mark_progress(f"part {n}", cursor=n) for n in range(5)))
        found = (await task.record()).progress
        assert found is not None
        marked = {name: found.of(name) for name in ("copy", *(f"part {n}" for n in range(5)))}
        cursors = {name: one.cursor for name, one in marked.items() if one is not None}
        assert cursors == {"copy": 1, **{f"part {n}": n for n in range(5)}}


async def test_the_operations_that_are_kept_are_bounded(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("move", state={})
        for number in range(130):
            await task.mark_progress(f"part {number}", cursor=number)
        found = (await task.record()).progress
        assert found is not None
        assert found.of("part 0") is None and found.of("part 128") is not None
        assert len(found.others) == 100


def test_a_mark_of_an_earlier_perdure_is_read() -> None:
    old = {"operation": "copy", "percent": 5.0, "cursor": None, "done": None, "total": None}
    found = msgspec.convert({**old, "at": "2026-01-01T00:00:00Z"}, Progress)
    assert found.others == () and found.of("copy") is found
