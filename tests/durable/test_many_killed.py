"""Many tasks at once ride to disk in large batches. Wherever the process is killed, each of them is whole."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, step
from perdure._durable.journal.journal_reader import read_entries
from tests.durable.kept_kit import World, carry_on, fresh_home, go_on
from tests.support.processes import ChildDied, Link, Nursery
from tests.torture.kills import Home

TASKS = 192  # in batches of many


@step
async def noted(folder: str, number: int) -> int:
    World(Path(folder)).note(number)
    return number


@durable(name="many killed: one of them")
async def one(folder: str, number: int) -> int:
    return await noted(folder, number)


async def run(home: Home, folder: Path) -> list[int]:
    async with Perdure(home.url, namespace=home.namespace) as app:
        # The first one alone: the others begin by its draft.
        await app.run("first", one, str(folder), -1)
        return await asyncio.gather(*(app.run(f"t{number}", one, str(folder), number) for number in range(TASKS)))


async def seen(_: Link, home: Home) -> dict[int, tuple[str, int]]:
    """Which tasks another process finds in the store: how they stand, and how many steps they have behind them."""
    found = {}
    async with Perdure(home.url, namespace=home.namespace) as app:
        for number in range(TASKS):
            record = await app.tasks.get(f"t{number}")
            if record is not None:
                found[number] = record.status, len(await read_entries(app._store, record.uid, 1))
        assert app._store.engine.damage() == []
    return found


@pytest.mark.req("R1", "R55")
@pytest.mark.parametrize(
    "engine, count", [*(("sqlite", n) for n in range(5, 15)), *(("postgres", n) for n in (3, 4, 5, 6))]
)
def test_killed_between_the_statements_of_a_batch_each_task_is_whole(
    request: Any, tmp_path: Path, children: Nursery, engine: str, count: int
) -> None:
    """In how many batches they go is a matter of moments: the last places may not be reached."""
    home, world = fresh_home(request, engine, tmp_path), World(tmp_path)
    with contextlib.suppress(ChildDied):
        children.start(carry_on, run, home, tmp_path, f"{engine}.before_commit", count).heard()
        assert count > 5, "it was to die"
    found = children.run(seen, home)
    assert all(steps == 1 for status, steps in found.values() if status == "completed"), found
    assert go_on(children, run, home, tmp_path) == list(range(TASKS))
    often = Counter(map(int, world.notes()))
    assert set(often) == {-1, *range(TASKS)}
    again = {number for number, times in often.items() if times > 1}
    assert not again & {number for number, (_, steps) in found.items() if steps}, "it was on disk, and was run again"
    assert max(often.values()) <= 2
