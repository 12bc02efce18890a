"""What gc may delete, against a model: no finished task that something open still names, by whatever way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta

import pytest

from perdure import Perdure, durable, pause
from perdure._model import Plan
from perdure._tasks import Policy, collect
from perdure._tasks.values.named_values import Shelf
from tests.durable.effects_kit import until_paused
from tests.tasks.upkeep_kit import store_of

AT_ONCE = Policy(finished_for=timedelta(0))
apps: list[Perdure] = []


@durable(name="gc model: child")
async def child(name: str) -> str:
    return f"{name} is done"


@durable(name="gc model: parent")
async def parent(names: Sequence[str]) -> list[str]:
    handles = [await apps[-1].start(name, child, name) for name in names]
    await pause.approval("go on?")
    return [await handle.result() for handle in handles]


@durable(name="gc model: waiter")
async def waiter(name: str) -> object:
    await pause.approval("go on?")
    return await pause.task(name)


async def start_a_parent(app: Perdure, id: str, names: Sequence[str]) -> None:
    """A parent that has started its children and waits for a person; the children have ended."""
    apps.append(app)
    await until_paused(app, id, parent, names)
    for name in names:
        await app.run(name, child, name)


@pytest.mark.req("R105")
async def test_a_fork_that_waits_keeps_the_children_that_its_original_has_started(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        await start_a_parent(app, "parent", ["one", "two"])
        original = await app.tasks.handle("parent")
        fork = await original.fork("fork")
        await original.cancel()
        report = await collect(store_of(app), AT_ONCE)
        assert [deleted.task_id for deleted in report.deleted] == ["parent"]
        await until_paused(app, "fork", parent, ["one", "two"])
        await fork.approve(by="ada")
        assert await app.run("fork", parent, ["one", "two"]) == ["one is done", "two is done"]
        deleted = (await collect(store_of(app), AT_ONCE)).deleted
        assert {one.task_id for one in deleted} == {"one", "two", "fork"}


@pytest.mark.req("R105")
@pytest.mark.parametrize("seed", range(8))
async def test_exactly_what_nothing_open_names_is_deleted(url: str, seed: int) -> None:
    rng = random.Random(seed)
    async with Perdure(url) as app:
        finished = [f"done-{number}" for number in range(6)]
        kept: set[str] = set()
        families: dict[str, list[str]] = {}
        for number in range(4):  # parents, some with a fork; of either, the original may end
            id, names = f"parent-{number}", [f"child-{number}-{n}" for n in range(rng.randrange(1, 3))]
            await start_a_parent(app, id, names)
            families[id] = names
        for name in finished:
            await (await app.tasks.open(name, state={})).complete()
        finished += [name for names in families.values() for name in names]
        for id, names in families.items():
            task = await app.tasks.handle(id)
            alive = {id}
            if rng.random() < 0.6:
                await task.fork(f"{id}-fork")
                alive.add(f"{id}-fork")
            for one in sorted(alive):
                if rng.random() < 0.5:
                    await (await app.tasks.handle(one)).cancel()
                    finished.append(one)
                    alive.discard(one)
            if alive:
                kept.update(names)
        for number, name in enumerate(rng.sample(finished[:6], 4)):
            kept.add(name)
            match rng.randrange(4):
                case 0:
                    await app.tasks.create(f"later-{number}", state={}, depends_on=[name, "never"])
                case 1:
                    other = await app.tasks.open(f"waits-{number}", state={})
                    await other.pause("for the other", reason="external_dependency", task=name)
                case 2:
                    plan = Plan(function="f", version=1, arguments=b"", queue="q", priority=0, open=[name])
                    await Shelf(store_of(app), "schedule", Plan).add(f"daily-{number}", plan)
                case _:
                    kept.discard(name)  # what its code will ask for, once a person has answered, nobody can know
                    await until_paused(app, f"waits-{number}", waiter, name)
        report = await collect(store_of(app), AT_ONCE)
        assert {deleted.task_id for deleted in report.deleted} == set(finished) - kept
