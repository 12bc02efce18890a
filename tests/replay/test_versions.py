"""A durable function changes while its tasks go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from perdure._durable.declare.durable_decorator import durable
from perdure._durable.declare.functions import step
from perdure._durable.declare.versions import PastEffect, function_for, known_functions, patched
from perdure._durable.effects.effect_decorator import effect
from perdure.errors import Conflict, InvalidInput, ReplayDiverged
from tests.replay.kit import play, play_again
from tests.support.fixtures import emptied_for_each_test

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


@step
async def old(n: int) -> str:
    ran.append(f"old {n}")
    return f"old {n}"


@step
async def new(n: int) -> str:
    ran.append(f"new {n}")
    return f"new {n}"


# ── patched ──────────────────────────────────────────────────────────────────────────────────────


async def before() -> list[str]:
    return [await old(0), await old(1), await old(2)]


async def after() -> list[str]:
    return [await old(0), *[await (new(n) if patched("faster") else old(n)) for n in (1, 2)]]


async def test_a_task_that_has_gone_the_old_way_goes_on_the_old_way() -> None:
    played = await play(before)
    assert (await play(after, journal=played.journal)).result() == ["old 0", "old 1", "old 2"]
    # It was on its way when the code changed: decided once, also for what comes after the frontier.
    resumed = await play(after, journal=played.journal[:2])
    assert resumed.result() == ["old 0", "old 1", "old 2"]
    assert (await play_again(after, journal=resumed.journal)).result() == resumed.result()


async def test_a_new_task_and_one_that_had_not_come_so_far_go_the_new_way() -> None:
    played = await play(before)
    assert (await play(after)).result() == ["old 0", "new 1", "new 2"]
    resumed = await play(after, journal=played.journal[:1])
    assert resumed.result() == ["old 0", "new 1", "new 2"]
    for count in range(len(resumed.journal) + 1):
        assert (await play(after, journal=resumed.journal[:count])).result() == resumed.result()


async def test_a_patch_may_be_taken_out_when_no_task_needs_it() -> None:
    async def cleaned() -> list[str]:
        return [await old(0), await new(1), await new(2)]

    played = await play(after)
    assert (await play(cleaned, journal=played.journal)).result() == played.result()


async def test_an_effect_that_may_have_happened_the_old_way_is_not_left_behind() -> None:
    from perdure._model import Entry
    from perdure._replay import digest

    async def program() -> bool:
        return patched("other")

    intent = Entry("intent", "effect", "|pay#1", digest((1,), {}))
    assert (await play(program, journal=[(1, intent)])).result() is False


async def test_without_a_task_it_is_the_new_way_and_odd_names_are_refused() -> None:
    assert patched("faster") is True
    with pytest.raises(InvalidInput):
        patched("a|b")


# ── versions ─────────────────────────────────────────────────────────────────────────────────────


class Stop:
    """Lets a first attempt get to a point, and no further."""

    def __init__(self) -> None:
        self.reached, self.is_closed = asyncio.Event(), True

    async def __call__(self) -> None:
        self.reached.set()
        if self.is_closed:
            await asyncio.get_running_loop().create_future()

    async def begin(self, app: Any, *call: Any) -> None:
        running = asyncio.create_task(app.run(*call))
        await self.reached.wait()
        running.cancel()
        await asyncio.wait([running])
        self.is_closed = False


async def test_a_task_goes_on_with_the_version_that_began_it_if_it_is_still_there(open_app: Any) -> None:
    stop = Stop()

    @durable(name="order")
    async def first(n: int) -> str:
        found = await old(n)
        await stop()
        return found

    async with open_app() as app:
        await stop.begin(app, "t", first, 1)

        @durable(name="order", version=2)
        async def second(n: int) -> str:
            return await new(n)

        assert await app.run("t", second, 1) == "old 1"
        assert await app.run("t2", second, 1) == "new 1"
        assert known_functions()["order"] is second
        assert function_for("order", 1) is first and function_for("order", 3) is None


async def _only_version_one(app: Any, stop: Stop, *, pays: bool = False) -> None:
    from perdure._durable.declare import versions

    @effect(name="pay")
    async def pay(cents: int) -> str:
        ran.append("paid")
        return "receipt"

    @durable(name="order")
    async def first(item: str, cents: int) -> str:
        if pays:
            await pay(cents)
        await old(cents)
        await stop()
        return "never"

    await stop.begin(app, "t", first, "book", 500)
    versions._known.clear()


async def test_without_a_way_the_task_pauses_and_the_versions_are_named(open_app: Any) -> None:
    stop = Stop()
    async with open_app() as app:
        await _only_version_one(app, stop)

        @durable(name="order", version=2)
        async def second(item: str, euros: int) -> str:
            return await new(euros)

        with pytest.raises(ReplayDiverged) as diverged:
            await app.run("t", second, "book", 5)
        assert (diverged.value.recorded, diverged.value.asked) == ("order version 1", "order version 2")
        assert "keep version 1 beside it, or give version 2 an upgrade=" in diverged.value.do
        record = await app.tasks.get("t")
        assert record.status == "paused" and "order version 1" in record.pause.message
        assert ran == ["old 500"]
        assert function_for("order", 1) is None, "a worker leaves it to others"


@pytest.mark.parametrize("shape", ["tuple", "dict"])
async def test_an_upgrade_makes_new_arguments_of_the_old_ones_and_starts_over(open_app: Any, shape: str) -> None:
    stop = Stop()

    def upgrade(item: str, cents: int) -> Any:
        return (item, cents // 100) if shape == "tuple" else {"item": item, "euros": cents // 100}

    async with open_app() as app:
        await _only_version_one(app, stop)

        @durable(name="order", version=2, upgrade=upgrade)
        async def second(item: str, euros: int) -> str:
            return f"{item}: {await new(euros)}"

        assert function_for("order", 1) is second, "a worker that can upgrade it may claim it"
        assert await app.run("t", second, "whatever", 0) == "book: new 5"
        assert ran == ["old 500", "new 5"]


@dataclass
class Item:
    name: str


async def test_an_upgrade_that_says_no_types_takes_those_of_the_new_version(open_app: Any) -> None:
    from perdure._durable.declare import versions

    stop = Stop()
    taken: list[Any] = []

    def upgrade(item, cents):  # type: ignore[no-untyped-def]
        taken.append((item, cents))
        return item, item.name

    async with open_app() as app:

        @durable(name="order")
        async def first(item: Item, cents: int) -> str:
            await stop()
            return "never"

        await stop.begin(app, "t", first, Item("book"), 500)
        versions._known.clear()

        @durable(name="order", version=2, upgrade=upgrade)
        async def second(item: Item, cents: str) -> str:
            return f"{item.name}: {cents}"

        assert await app.run("t", second, Item("whatever"), "") == "book: book"
        assert taken == [(Item("book"), 500)], "what does not fit the new version is as it was recorded"


async def test_an_upgrade_is_made_once_also_if_the_new_version_is_interrupted(open_app: Any) -> None:
    stop, again = Stop(), Stop()
    upgrades: list[int] = []

    def upgrade(item: str, cents: int) -> Any:
        upgrades.append(cents)
        return item, cents // 100

    async with open_app() as app:
        await _only_version_one(app, stop)

        @durable(name="order", version=2, upgrade=upgrade)
        async def second(item: str, euros: int) -> str:
            found = await new(euros)
            await again()
            return found

        await again.begin(app, "t", second, "book", 5)
        assert await app.run("t", second, "book", 5) == "new 5"
        assert upgrades == [500] and ran == ["old 500", "new 5"]


async def test_effects_of_the_old_version_are_not_forgotten(open_app: Any) -> None:
    stop = Stop()
    async with open_app() as app:
        await _only_version_one(app, stop, pays=True)

        @durable(name="order", version=2, upgrade=lambda item, cents: (item, 5))
        async def careless(item: str, euros: int) -> str:
            return await new(euros)

        with pytest.raises(ReplayDiverged) as diverged:
            await app.run("t", careless, "x", 0)
        assert "which did pay" in diverged.value.recorded and "effects=" in diverged.value.asked


async def test_an_upgrade_that_takes_them_decides_what_is_left_to_do(open_app: Any) -> None:
    stop = Stop()
    seen: list[PastEffect] = []

    def upgrade(item: str, cents: int, *, effects: Sequence[PastEffect]) -> Any:
        seen.extend(effects)
        return item, bool(effects)

    async with open_app() as app:
        await _only_version_one(app, stop, pays=True)

        @durable(name="order", version=3, upgrade=upgrade)
        async def third(item: str, is_paid: bool) -> str:
            return f"{item} {is_paid}"

        assert await app.run("t", third, "x", False) == "book True"
    [paid] = seen
    assert paid.name == "pay" and paid.value == "receipt" and paid.is_known and paid.key


def test_two_functions_that_were_given_one_name_and_version_are_refused() -> None:
    namespace: dict[str, Any] = {"durable": durable}
    source = "@durable(name='task')\nasync def task(): pass"
    exec(compile(source, "one.py", "exec"), namespace)
    exec(compile(source, "one.py", "exec"), namespace)
    with pytest.raises(Conflict, match=r"two durable functions are called 'task': in one.py:\d and two.py:\d"):
        exec(compile(source, "two.py", "exec"), namespace)
    exec(compile(source.replace("name=", "version=2, name="), "two.py", "exec"), namespace)
    with pytest.raises(InvalidInput, match="version is 0"):
        durable(version=0)(task)


async def task() -> None: ...
