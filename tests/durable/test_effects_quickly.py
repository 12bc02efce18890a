"""What an effect does not ask for each time, as most need not know it: those that need to are told."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from perdure import Perdure
from perdure._durable import durable, effect, idempotency_key, is_at_work
from perdure._durable.attempt.calls.current_task import running_effect
from perdure._durable.attempt.scopes import current
from perdure._durable.effects import settlement
from perdure._durable.effects.effect_walk import Walk
from perdure._durable.effects.settlement import may_settle
from perdure._durable.inspect.where_report import where
from perdure._model import Entry
from perdure.errors import LeaseLost
from tests.durable.effects_kit import Naps, World, ended
from tests.durable.test_effects_scopes import overtake


@pytest.mark.req("R64")
async def test_a_long_stop_is_noticed_where_no_crash_point_is_armed(
    quick_url: str, clock: Any, monkeypatch: Any
) -> None:
    world, intend, intents = World(), Walk._intend, []

    def slowly(walk: Walk, now: int) -> Any:
        intents.append(now)
        write = intend(walk, now)
        if len(intents) == 1:
            clock.advance(minutes=1)
        return write

    monkeypatch.setattr(Walk, "_intend", slowly)

    @effect
    async def charge() -> None:
        world.do("charge", idempotency_key())

    @durable
    async def checkout() -> None:
        await charge()

    async with Perdure(quick_url) as app:
        await app.run("t", checkout)
    assert world.done == ["charge"]
    assert len(intents) == 2 and intents[1] - intents[0] == 60_000


@pytest.mark.req("R64")
async def test_an_attempt_that_was_closed_right_after_its_intent_does_not_run_the_body(
    quick_url: str, monkeypatch: Any
) -> None:
    world = World()

    @effect
    async def charge() -> None:
        world.do("charge", idempotency_key())

    @durable
    async def checkout() -> None:
        scope = current.get()
        assert scope is not None
        fence = scope.attempt.fence

        def closing(batch: Any) -> Any:
            rows = commit(batch)
            fence.close(LeaseLost("t", "another attempt has it"))
            return rows

        monkeypatch.setattr(app._store.engine, "commit", closing)
        await charge()

    async with Perdure(quick_url) as app:
        commit = app._store.engine.commit
        with pytest.raises(LeaseLost, match="another attempt has it"):
            await app.run("t", checkout)
        monkeypatch.undo()
    assert world.done == []


async def test_a_call_is_shown_as_it_was_made_however_short_it_is(quick_url: str) -> None:
    @effect
    async def touch(one: Any, other: Any) -> None: ...

    @effect
    async def touch_again(one: int, other: int = 2) -> None: ...

    @effect(identity=lambda one: 7)
    async def touch_some(one: str) -> None: ...

    @effect
    async def look(number: int) -> list[str]:
        return [frame.call for frame in (await where(app.tasks, "t")).frames]

    @durable
    async def chain() -> list[str]:
        await touch(1, "it's")
        await touch(None, b"x")
        await touch((1, 2), other={"a": 1.0})
        await touch(1, "long " * 100)
        await touch_again(1, 2)
        await touch_some("a")
        return await look(5)

    async with Perdure(quick_url) as app:
        assert await app.run("t", chain) == ["look(5)"]
        made = [record.call for record in await app.effects.of("t")]
    assert made == [
        """touch(1, "it's")""",
        "touch(None, b'x')",
        "touch((1, 2), other={'a': 1.0})",
        f"touch({repr((1, 'long ' * 100))[1:201]})",
        "touch_again(1, 2)",
        "touch_some('a')",
        "look(5)",
    ]


@pytest.mark.req("R64")
async def test_another_attempt_of_this_process_leaves_an_effect_alone_that_is_still_under_way(
    quick_url: str, monkeypatch: Any
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    walks: list[Any] = []

    @effect
    async def charge() -> None:
        walks.append(running_effect.get())
        begun.set()
        await go_on.wait()

    @durable
    async def checkout() -> None:
        await charge()

    async with Perdure(quick_url) as app:
        first = asyncio.create_task(ended(app, "t", checkout))
        await begun.wait()
        (walk,) = walks
        uid = walk.attempt.uid
        await overtake(app, "t")
        other: Any = SimpleNamespace(uid=uid, store=app._store, fence=SimpleNamespace(check=lambda: None))
        intent = Entry("intent", "effect", walk.path, b"", at=0, epoch=walk.attempt.epoch, note={"not_after": 2**45})
        naps, settled = Naps(monkeypatch, settlement), asyncio.create_task(may_settle(other, walk.path, intent))
        assert is_at_work(uid)
        assert await naps.waits_on(settled)
        go_on.set()
        assert isinstance(await first, LeaseLost)
        await settled
        assert not is_at_work(uid)
