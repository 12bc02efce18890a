"""Reducers: the log of events is the truth, and the stored state is its fold."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, effect, idempotency_key, step
from perdure.automation import Do, Reducer
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.errors import Conflict, InvalidInput, InvalidTransition
from tests.durable.effects_kit import World, wait_until
from tests.durable.kept_kit import World as Folder
from tests.durable.kept_kit import fresh_home, go_on, kill
from tests.support.fixtures import emptied_for_each_test
from tests.support.processes import Nursery
from tests.torture.kills import Home

world = World()


_nothing_happened = emptied_for_each_test(world.done)


@dataclass
class Order:
    items: dict[str, int] = field(default_factory=dict)
    paid: str = ""
    is_closed: bool = False


@dataclass
class Event:
    kind: str
    item: str = ""


@step
async def weigh(item: str) -> int:
    return len(item)


@effect
async def charge(items: int) -> str:
    return world.do(f"{items} items", idempotency_key())


def reduce(order: Order, event: Event) -> tuple[Order, list[Do]]:
    if event.kind == "add":
        count = order.items.get(event.item, 0) + 1
        return replace(order, items={**order.items, event.item: count}), [Do(weigh, event.item)]
    if event.kind == "buy":
        return order, [Do(charge, sum(order.items.values()), then=lambda receipt: Event("paid", receipt))]
    if event.kind == "paid":
        return replace(order, paid=event.item), []
    return replace(order, is_closed=True), []


orders = Reducer("order", reduce, Order(), Event, is_over=lambda order: order.is_closed)


async def fed(app: Perdure, id: str, *events: Event) -> None:
    for event in events:
        await orders.send(app, id, event)


MANY = [Event("add", f"i{n % 3}") for n in range(11)] + [Event("buy"), Event("add", "last"), Event("close")]


@pytest.mark.req("R133")
async def test_the_stored_state_is_the_fold_of_the_log_and_any_part_can_be_folded_again(url: str) -> None:
    async with Perdure(url) as app:
        handle = await app.start("o-1", orders.function)
        await fed(app, "o-1", *MANY)
        last = await app.run("o-1", orders.function)
        assert last == await handle.result()
        assert last.is_closed and last.paid == "receipt of 11 items" and world.done == ["11 items"]
        log = await orders.events(app, "o-1")
        assert [event.kind for event in log] == ["add"] * 11 + ["buy", "paid", "add", "close"]
        assert orders.fold(log) == last
        record = await app.tasks.get("o-1")
        assert record is not None and Order(**record.state) == last
        task = await app.tasks.handle("o-1")
        stored = [Order(**cp.data) async for cp in task.checkpoints()]
        # One checkpoint per event, but for "buy", whose own event comes before the next one is taken.
        folded = [await orders.state_at(app, "o-1", n) for n in range(1, len(log) + 1)]
        assert stored == [state for n, state in enumerate(folded, 1) if n != 12]
        assert folded[12] == orders.fold(log[:13])
        with pytest.raises(InvalidInput, match="has taken 15 events"):
            await orders.state_at(app, "o-1", 16)
        with pytest.raises(InvalidTransition):
            await orders.send(app, "o-1", Event("add", "late"))


@pytest.mark.req("R133")
async def test_events_wake_a_machine_that_holds_no_process(quick_url: str) -> None:
    async with Perdure(quick_url) as app, app.worker():
        await app.start("o-1", orders.function)
        await app.tasks.wait_for("o-1", status="paused")
        await fed(app, "o-1", Event("add", "pen"), Event("buy"))

        async def is_paid() -> bool:
            return [event.kind for event in await orders.events(app, "o-1")][-1:] == ["paid"]

        await wait_until(is_paid)
        await fed(app, "o-1", Event("close"))
        assert (await (await app.handle("o-1", orders.function)).result()).items == {"pen": 1}
        assert world.done == ["1 items"]


async def test_a_reducer_that_gives_something_else_fails_and_keeps_the_state_before(quick_url: str) -> None:
    def wrong(order: Order, event: Event) -> Any:
        return order

    broken = Reducer("broken", wrong, Order(), Event)
    async with Perdure(quick_url) as app:
        work = asyncio.ensure_future(app.run("b", broken.function))
        await wait_until(lambda: _exists(app, "b"))
        await broken.send(app, "b", Event("add"))
        with pytest.raises(InvalidInput, match="not a state and a list of calls"):
            await work


async def _exists(app: Perdure, id: str) -> bool:
    return await app.tasks.get(id) is not None


def test_two_reducers_of_one_name_are_refused() -> None:
    code = compile("def reduce(state, event): return state, []", "another.py", "exec")
    space: dict[str, Any] = {}
    exec(code, space)
    with pytest.raises(Conflict, match="two reducers are called 'order'"):
        Reducer("order", space["reduce"], Order(), Event)


# ── killed ───────────────────────────────────────────────────────────────────────────────────────


def was_noted(folder: str, text: str) -> Any:
    return Happened(None) if text in Folder(Path(folder)).notes() else DID_NOT_HAPPEN


@effect(verify=was_noted)
async def note(folder: str, text: str) -> None:
    Folder(Path(folder)).note(text)


def count(total: int, event: str) -> tuple[int, list[Do]]:
    folder, _, word = event.partition("|")
    return total + len(word), [Do(note, folder, word)]


counting = Reducer("counting", count, 0, str, is_over=lambda total: total >= 10)


async def run_counting(home: Home, folder: Path) -> Any:
    async with Perdure(home.url, namespace=home.namespace) as app:
        task = await app.start("c", counting.function)
        for word in ("aa", "bbb", "cccc", "d"):
            await (await task.task()).signal("event", f"{folder}|{word}", once=word)
        total = await app.run("c", counting.function)
        return total, len(await counting.events(app, "c")), counting.fold(await counting.events(app, "c"))


@pytest.mark.req("R133")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_killed_between_events_nothing_is_lost_and_nothing_done_twice(
    request: Any, tmp_path: Path, children: Nursery, engine: str
) -> None:
    home = fresh_home(request, engine, tmp_path)
    kill(children, run_counting, home, tmp_path, at="effect.recorded", count=3)
    assert go_on(children, run_counting, home, tmp_path) == (10, 4, 10)
    assert sorted(Folder(tmp_path).notes()) == ["aa", "bbb", "cccc", "d"]


async def test_what_is_no_event_is_refused_where_it_is_sent_and_the_machine_goes_on(quick_url: str) -> None:
    async with Perdure(quick_url) as app, app.worker():
        handle = await app.start("order", orders.function)
        odd: Any = {"kind": 5}
        with pytest.raises(InvalidInput, match="is not an event of the reducer 'order'"):
            await orders.send(app, "order", odd)
        await orders.send(app, "order", Event("close"))
        assert (await handle.result()).is_closed
