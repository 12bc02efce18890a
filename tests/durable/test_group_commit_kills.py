"""Steps ride to disk together. Wherever the process is killed, what others can see never depends on one that did not.

The program does a few short steps, then something visible: an effect, a child, a question, its result. Short steps
are not waited for; so the only thing that keeps the promise is the order of what is written.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause, step
from perdure._durable.journal.journal_reader import read_entries
from perdure._ground.bridge import Nap
from perdure.effects import DID_NOT_HAPPEN, Happened
from tests.durable.kept_kit import World, fresh_home, go_on, kill
from tests.support.processes import Link, Nursery
from tests.torture.kills import Home

EACH = 5  # steps before each thing that others can see


@step
async def short(folder: str, round: str, number: int) -> int:
    World(Path(folder)).note(f"step {round} {number}")
    return number


def was_done(folder: str, round: str) -> Any:
    return Happened(None) if f"effect {round}" in World(Path(folder)).notes() else DID_NOT_HAPPEN


@effect(verify=was_done)
async def touch(folder: str, round: str) -> None:
    World(Path(folder)).note(f"effect {round}")


@durable(name="group commit: child")
async def child(folder: str, round: str) -> str:
    return round


async def some(folder: str, round: str) -> None:
    for number in range(EACH):
        await short(folder, round, number)


@durable(name="group commit: program")
async def program(folder: str) -> str:
    await some(folder, "a")
    await touch(folder, "a")
    await some(folder, "b")
    handle = await _app.start("child", child, folder, "b")
    await some(folder, "c")
    await touch(folder, "c")
    await some(folder, "d")
    answer = await pause.input("go on?", str)
    await some(folder, "e")
    return f"{handle.id} {answer}"


_app: Perdure


async def run(home: Home, folder: Path) -> Any:
    """Carry it on to its end, answering its question on the way."""
    global _app
    async with Perdure(home.url, namespace=home.namespace) as _app:
        work = asyncio.ensure_future(_app.run("job", program, str(folder)))
        while not work.done():
            record = await _app.tasks.get("job")
            if record is not None and record.is_paused:
                await (await _app.tasks.handle("job")).answer("yes")
            await Nap(0.005)
        return await work


async def seen(_: Link, home: Home) -> dict[str, Any]:
    """What another process finds in the store."""
    async with Perdure(home.url, namespace=home.namespace) as app:
        record = await app.tasks.get("job")
        if record is None:
            return {"steps": 0, "child": False, "asked": False, "done": False}
        entries = await read_entries(app._store, record.uid, 1)
        pauses = await app._store.query("read_pauses", uid=record.uid)
        return {
            "steps": sum(entry.op == "step" for _, entry in entries),
            "child": await app.tasks.get("child") is not None,
            "asked": bool(pauses),
            "done": record.status == "completed",
        }


PLACES = [
    *(("journal.recorded", count) for count in (1, 4, 6, 7, 9, 13, 14, 20, 22, 26, 27, 31)),
    *(("committer.before_commit", count) for count in (3, 4, 5, 6, 7, 8)),
    *(("committer.after_commit", count) for count in (3, 5, 7)),
    *((f"effect.{place}", count) for place in ("before_intent", "intended", "done", "recorded") for count in (1, 2)),
]


@pytest.mark.req("R64")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("part", range(4))
def test_nothing_visible_depends_on_a_step_that_is_not_on_disk(
    request: Any, tmp_path: Path, children: Nursery, engine: str, part: int
) -> None:
    for place, count in PLACES[part::4]:
        folder = tmp_path / f"{place}-{count}"
        folder.mkdir()
        home, world = fresh_home(request, engine, folder), World(folder)
        kill(children, run, home, folder, at=place, count=count)
        before, found = world.notes(), children.run(seen, home)
        # Where the order of writes says that so many steps are on disk, they are.
        visible = {"effect a": 1, "effect c": 3}
        due = max([0, *(rounds for name, rounds in visible.items() if name in before)])
        due = max(due, 2 * found["child"], 4 * found["asked"], 5 * found["done"])
        assert found["steps"] >= due * EACH, (place, count, found, before)
        assert go_on(children, run, home, folder) == "child yes", (place, count)
        after = world.notes()[len(before) :]
        # And what is on disk is not done again; effects never are.
        again = {line for line in after if line.startswith("step")} & set(before)
        assert len(again) <= len([line for line in before if line.startswith("step")]) - found["steps"], (place, count)
        assert sorted(line for line in world.notes() if line.startswith("effect")) == ["effect a", "effect c"]
