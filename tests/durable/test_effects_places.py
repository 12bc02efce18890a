"""Where an effect may be called, in which kinds of functions, and what it may take and return."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure
from perdure._durable import (
    UNKNOWN,
    Retry,
    durable,
    effect,
    idempotency_headers,
    idempotency_key,
    step,
)
from perdure._durable.attempt.calls.replay_tests import always_replay
from perdure._durable.effects.declaration import key_of
from perdure._model import Pause
from perdure.errors import InvalidInput, NoTask, NotStorable, ResultNotStorable
from tests.durable.effects_kit import Died, World, ended, until_paused

AT_ONCE = Retry(3, wait=timedelta(0))


class Declined(Exception):
    """The target said no."""


def test_no_two_calls_have_one_key() -> None:
    calls = [
        ("u", 1, "|a#1", b"=1", 0),
        ("u", 1, "|a#1", b"=1", 1),
        ("u", 1, "|a#1=", b"1", 0),
        ("u", 1, "|a#", b"1=1", 0),
        ("u", 11, "|a#1", b"=1", 0),
        ("u", 1, "1|a#1", b"=1", 0),
        ("v", 1, "|a#1", b"=1", 0),
    ]
    assert len({key_of(*call) for call in calls}) == len(calls)
    assert key_of(*calls[0]) == key_of(*calls[0])


# ── where an effect may be called ────────────────────────────────────────────────────────────────


async def test_without_a_task_an_effect_does_not_run_but_plain_does(quick_url: str) -> None:
    world = World()

    @effect
    async def charge() -> str:
        return world.do("charge", "")

    @effect
    def mail() -> str:
        return world.do("mail", "")

    with pytest.raises(NoTask, match="charge"):
        await charge()
    with pytest.raises(NoTask, match="mail"):
        mail()
    with pytest.raises(NoTask):
        idempotency_key()
    assert world.done == []
    assert (await charge.plain(), mail.plain()) == ("receipt of charge", "receipt of mail")


async def test_an_effect_inside_an_effect_is_refused_and_does_not_run(quick_url: str) -> None:
    world = World()

    @effect
    async def inner() -> None:
        world.do("inner", idempotency_key())

    @effect(failed_on=[InvalidInput])
    async def outer() -> None:
        await inner()

    @durable
    async def both() -> None:
        await outer()

    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput, match="inner is called inside another effect"):
            await app.run("t", both)
    assert world.done == []


@pytest.mark.req("R64")
async def test_an_effect_inside_a_step_has_its_own_intent_and_is_done_once_when_the_step_is_run_again(url: str) -> None:
    world, runs = World(), []

    @effect
    async def charge(order: str) -> str:
        return world.do(order, idempotency_key())

    @step(retry=AT_ONCE)
    async def work() -> list[str]:
        runs.append("run")
        receipts = [await charge("a"), await charge("a")]
        if len(runs) == 1:
            raise ValueError("once more")
        if len(runs) == 2:
            raise Died
        return receipts

    @durable
    async def job() -> list[str]:
        found = await work()
        await work()
        return found

    async with Perdure(url) as app:
        assert isinstance(await ended(app, "t", job), Died)
        assert await app.run("t", job) == ["receipt of a"] * 2
        assert await app.run("t", job) == ["receipt of a"] * 2
    assert world.done == ["a"] * 4 and len(set(world.keys)) == 4  # two calls of the step, two effects each
    assert len(runs) == 4


@pytest.mark.req("R64")
async def test_an_uncertain_effect_inside_a_step_pauses_the_task(quick_url: str) -> None:
    world = World()

    @effect
    async def charge() -> str:
        world.do("charge", idempotency_key())
        raise ConnectionError

    @step
    async def work() -> str:
        return await charge()

    @durable
    async def job() -> str:
        return await work()

    async with Perdure(quick_url) as app:
        assert isinstance(await until_paused(app, "t", job), Pause)
        await app.effects.settle("t", "done", value="r")
        assert await app.run("t", job) == "r"
    assert world.done == ["charge"]


async def test_plain_functions_and_methods_are_effects_too(quick_url: str) -> None:
    world = World()

    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        @effect
        async def sell(self, what: str) -> str:
            return world.do(f"{self.name} sells {what}", idempotency_key())

        @effect
        def pack(self, what: str) -> str:
            return world.do(f"{self.name} packs {what}", idempotency_headers()["Idempotency-Key"])

    @effect
    def ring() -> str:
        return world.do("ring", idempotency_key())

    @durable
    async def sale() -> list[str]:
        shop = Shop("s")
        found = [await shop.sell("tea"), shop.pack("tea"), ring()]
        if len(world.done) == 3:
            world.done.append("died")
            raise Died
        return found

    async with Perdure(quick_url) as app:
        await ended(app, "t", sale)
        assert len(await app.run("t", sale)) == 3
        assert [one.call for one in await app.effects.of("t")] == ["Shop.sell('tea')", "Shop.pack('tea')", "ring()"]
    assert world.done == ["s sells tea", "s packs tea", "ring", "died"]
    assert await Shop("x").sell.plain("y") == "receipt of x sells y"


@pytest.mark.req("R64")
@pytest.mark.parametrize("how", ["death", "exception"])
async def test_a_plain_effect_is_settled_like_an_async_one(quick_url: str, how: str) -> None:
    world = World()

    async def look() -> Any:
        await asyncio.sleep(0)
        return UNKNOWN

    @effect(verify=look)
    def charge() -> str:
        world.do("charge", idempotency_key())
        raise Died if how == "death" else ConnectionError

    @durable
    async def checkout() -> str:
        return charge()

    async with Perdure(quick_url) as app:
        if how == "death":
            await ended(app, "t", checkout)
        assert isinstance(await until_paused(app, "t", checkout), Pause)
        await app.effects.settle("t", "done", value="r")
        assert await app.run("t", checkout) == "r"
    assert world.done == ["charge"]


@pytest.mark.req("R64")
async def test_an_uncertain_effect_of_a_plain_durable_function_pauses_it(quick_url: str) -> None:
    world = World()

    @effect
    def charge(order: str) -> str:
        world.do(order, idempotency_key())
        raise ConnectionError

    @durable
    def checkout() -> str:
        return charge("a")

    async with Perdure(quick_url) as app:
        assert isinstance(await until_paused(app, "t", checkout), Pause)
        await app.effects.settle("t", "done", value="r")
        assert await app.run("t", checkout) == "r"
    assert world.done == ["a"]


async def test_effects_are_done_once_when_every_result_is_replayed_at_once(quick_url: str) -> None:
    world = World()

    @effect
    async def charge(order: str) -> str:
        return world.do(order, idempotency_key())

    @effect
    def mail(order: str) -> str:
        return world.do(f"mail {order}", idempotency_key())

    @durable
    async def checkout() -> list[str]:
        both = await asyncio.gather(charge("a"), charge("b"))
        return [*both, mail("c"), await charge("d")]

    async with Perdure(quick_url) as app:
        with always_replay():
            assert len(await app.run("t", checkout)) == 4
    assert sorted(world.done) == ["a", "b", "d", "mail c"]


async def test_a_plain_durable_function_may_call_effects(quick_url: str) -> None:
    world = World()

    @effect(failed_on=[Declined], retry=AT_ONCE)
    def charge(order: str) -> str:
        if len(world.done) == 1:
            world.do("declined", idempotency_key())
            raise Declined
        return world.do(order, idempotency_key())

    @durable
    def checkout() -> list[str]:
        return [charge("a"), charge("b")]

    async with Perdure(quick_url) as app:
        assert await app.run("t", checkout) == ["receipt of a", "receipt of b"]
        assert await app.run("t", checkout) == ["receipt of a", "receipt of b"]
    assert world.done == ["a", "declined", "b"]


# ── results ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R64")
async def test_a_result_that_cannot_be_stored_leaves_the_effect_done(quick_url: str) -> None:
    world = World()

    @effect
    async def charge() -> Any:
        world.do("charge", idempotency_key())
        return {"receipt": {"socket": object()}}

    @durable
    async def checkout() -> str:
        try:
            await charge()
        except ResultNotStorable as error:
            return f"{error.name} {error.path}"
        raise AssertionError

    async with Perdure(quick_url) as app:
        assert await app.run("t", checkout) == "charge receipt.socket"
        (record,) = await app.effects.of("t")
        assert record.state == "done" and "receipt.socket" in record.error

        @durable(name="checkout")
        async def again() -> str:
            return await checkout.function()

        assert await app.run("t2", again) == "charge receipt.socket"
    assert world.done == ["charge"] * 2


async def test_arguments_that_an_undo_could_not_be_given_are_refused_before_anything_runs(quick_url: str) -> None:
    world = World()

    @effect(undo=lambda *_: None, identity=lambda order, _: order)
    async def charge(order: str, client: object) -> None:
        world.do(order, idempotency_key())

    @durable
    async def checkout() -> None:
        await charge("o", object())

    async with Perdure(quick_url) as app:
        with pytest.raises(NotStorable, match="client"):
            await app.run("t", checkout)
        assert await app.effects.of("t") == []
    assert world.done == []
