"""An effect is never repeated silently: what is definite, what is uncertain, and what settles it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure
from perdure._durable import (
    DID_NOT_HAPPEN,
    UNKNOWN,
    DidNotHappen,
    Happened,
    Retry,
    durable,
    effect,
    idempotency_headers,
    idempotency_key,
    step,
)
from perdure._durable import retry as retrying
from perdure._durable.testing_mode import always_replay
from perdure._model import Pause
from perdure.errors import Conflict, EffectUncertain, InvalidInput, NoTask, NotFound, NotStorable, ResultNotStorable
from tests.durable.effects_kit import Died, Naps, World, until_paused, wait_until

AT_ONCE = Retry(3, wait=timedelta(0))


class Declined(Exception):
    """The target said no."""


async def ended(app: Perdure, id: str, function: Any, *args: Any) -> Any:
    """Its result, or the exception it ended with."""
    try:
        return await app.run(id, function, *args)
    except BaseException as error:
        return error


# ── intent, run, outcome ─────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R59", "R63")
async def test_an_effect_that_was_done_is_not_done_again(url: str) -> None:
    world = World()

    @effect
    async def charge(order: str, cents: int) -> str:
        return world.do(f"{order} {cents}", idempotency_key())

    @durable
    async def checkout(order: str) -> list[str]:
        receipts = [await charge(order, 500), await charge(order, 500), await charge(order, 700)]
        if world.done and len(world.done) < 4:
            world.done.append("died")
            raise Died
        return receipts

    async with Perdure(url) as app:
        assert isinstance(await ended(app, "t", checkout, "o-1"), Died)
        assert await app.run("t", checkout, "o-1") == ["receipt of o-1 500"] * 2 + ["receipt of o-1 700"]
    assert world.done == ["o-1 500", "o-1 500", "o-1 700", "died"]
    assert len(set(world.keys)) == 3


@pytest.mark.req("R64")
async def test_the_intent_is_on_disk_before_the_body_runs(url: str) -> None:
    seen: list[Any] = []

    async with Perdure(url) as app:

        @effect
        async def charge(order: str) -> None:
            seen.extend(await app.effects.of("t"))

        @durable
        async def checkout() -> None:
            await charge("o-1")

        await app.run("t", checkout)
        assert [(one.call, one.state, one.ended_at) for one in seen] == [("charge('o-1')", "uncertain", None)]
        (after,) = await app.effects.of("t")
        assert (after.state, after.key, after.tries, after.digest) == ("done", seen[0].key, 1, seen[0].digest)
        assert after.ended_at is not None and after.ended_at >= after.began_at


@pytest.mark.req("R64")
@pytest.mark.parametrize("how", ["death", "exception", "time-out", "cancelled inside"])
async def test_an_outcome_that_nobody_knows_is_asked_for_and_nothing_is_run_again(url: str, how: str) -> None:
    world = World()

    @effect(timeout=timedelta(milliseconds=20) if how == "time-out" else timedelta(minutes=1), failed_on=[TimeoutError])
    async def charge(order: str, cents: int) -> str:
        world.do(order, idempotency_key())
        if how == "death":
            raise Died
        if how == "exception":
            raise ConnectionError("the line is dead")
        if how == "cancelled inside":
            raise asyncio.CancelledError
        await asyncio.Event().wait()
        raise AssertionError

    @durable
    async def checkout() -> str:
        return await charge("o-1", cents=500)

    async with Perdure(url) as app:
        if how == "death":
            assert isinstance(await ended(app, "t", checkout), Died)
        pause = await until_paused(app, "t", checkout)
        assert isinstance(pause, Pause)
        assert (pause.reason, pause.message) == ("human_input", "outcome unknown: charge('o-1', cents=500)")
        (waiting,) = await app.effects.list()
        assert (waiting.task_id, waiting.call, waiting.key) == ("t", "charge('o-1', cents=500)", world.keys[0])
        assert waiting.since <= pause.since and waiting.is_waited_for
        (record,) = await app.effects.of("t")
        assert record.state == "uncertain"

        await app.effects.settle("t", "done", value="by hand", by="ada")
        assert await app.run("t", checkout) == "by hand"
        assert await app.effects.list() == []
        (record,) = await app.effects.of("t")
        assert (record.state, record.settled) == ("done", "person")
    assert world.done == ["o-1"]


@pytest.mark.req("R64")
@pytest.mark.parametrize("choice", ["done", "retry", "fail"])
async def test_a_person_settles_it(url: str, choice: Any) -> None:
    world = World()

    @effect
    async def charge() -> str:
        world.do("charge", idempotency_key())
        if len(world.done) == 1:
            raise Died
        return "second"

    @durable
    async def checkout() -> str:
        return await charge()

    async with Perdure(url) as app:
        await ended(app, "t", checkout)
        await until_paused(app, "t", checkout)
        await app.effects.settle("t", choice, value="by hand" if choice == "done" else None)
        found = await ended(app, "t", checkout)
        if choice == "done":
            assert found == "by hand"
        elif choice == "retry":
            assert found == "second" and len(set(world.keys)) == 1
        else:
            assert isinstance(found, EffectUncertain)
    assert len(world.done) == (2 if choice == "retry" else 1)


async def test_a_value_that_does_not_fit_is_asked_for_again(quick_url: str) -> None:
    @effect
    async def count() -> int:
        raise ConnectionError

    @durable
    async def counting() -> int:
        return await count()

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", counting)
        await app.effects.settle("t", "done", value="many")
        await until_paused(app, "t", counting)
        (waiting,) = await app.effects.list()
        assert "does not fit" in waiting.why
        await app.effects.settle("t", "done", value=7)
        assert await app.run("t", counting) == 7


async def test_an_effect_that_failed_and_took_its_task_with_it_stays_in_the_ledger(url: str) -> None:
    is_up: list[bool] = []

    @effect(failed_on=[ConnectionRefusedError], retry=Retry(3, wait=timedelta(0)))
    async def send() -> str:
        if not is_up:
            raise ConnectionRefusedError("down")
        return "sent"

    @durable(name="sending to one that is down")
    async def sending() -> str:
        return await send()

    async with Perdure(url) as app:
        with pytest.raises(ConnectionRefusedError):
            await app.run("t", sending)
        (record,) = await app.effects.of("t")
        assert (record.state, record.tries, record.error) == ("failed", 3, "ConnectionRefusedError: down")
        is_up.append(True)
        await (await app.tasks.handle("t")).resume()
        assert await app.run("t", sending) == "sent"
        (record,) = await app.effects.of("t")
        assert (record.state, record.error) == ("done", "")


@pytest.mark.req("R64")
async def test_done_settles_it_whether_or_not_anybody_knows_its_result(url: str) -> None:
    @effect
    async def count() -> int:
        raise ConnectionError

    @durable(name="counting what is done")
    async def counting() -> str:
        found = await count()
        return f"counted {found}"

    async with Perdure(url) as app:
        await until_paused(app, "t", counting)
        await app.effects.settle("t", "done")
        assert await until_paused(app, "t", counting) == "counted None"
        assert await app.run("t", counting) == "counted None"
        (record,) = await app.effects.of("t")
        assert (record.state, record.settled) == ("done", "person")


async def test_the_first_answer_stands_and_a_wrong_one_changes_nothing(quick_url: str) -> None:
    @effect
    async def charge() -> str:
        raise ConnectionError

    @durable
    async def checkout() -> str:
        return await charge()

    async with Perdure(quick_url) as app:
        with pytest.raises(NotFound):
            await app.effects.settle("nobody", "done")
        await until_paused(app, "t", checkout)
        with pytest.raises(InvalidInput, match="'perhaps' is no answer"):
            await app.effects.settle("t", "perhaps")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="takes no value"):
            await app.effects.settle("t", "fail", value=1)
        with pytest.raises(NotFound):
            await app.effects.settle("t", "done", key="prd-other")
        (waiting,) = await app.effects.list()
        await app.effects.settle("t", "done", value="x", key=waiting.key)
        with pytest.raises((Conflict, NotFound)):
            await app.effects.settle("t", "fail")


# ── what is definite ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R64", "R68")
@pytest.mark.parametrize("error", [DidNotHappen("no"), Declined("no money")])
async def test_a_definite_failure_reaches_the_code_and_asks_nobody(quick_url: str, error: Exception) -> None:
    world = World()

    @effect(failed_on=[Declined])
    async def charge() -> str:
        world.do("charge", idempotency_key())
        raise error

    @durable
    async def checkout() -> str:
        try:
            return await charge()
        except type(error) as raised:
            return str(raised)

    async with Perdure(quick_url) as app:
        assert await app.run("t", checkout) == str(error)
        (record,) = await app.effects.of("t")
        assert record.state == "failed"
    assert world.done == ["charge"]


@pytest.mark.req("R68", "R63")
@pytest.mark.parametrize("new_key", [False, True])
async def test_definite_failures_are_tried_again_with_the_same_key_unless_a_new_one_is_asked_for(
    quick_url: str, new_key: bool
) -> None:
    world = World()

    @effect(failed_on=[Declined], retry=Retry(3, wait=timedelta(0), new_key=new_key))
    async def charge() -> int:
        world.do("charge", idempotency_key())
        if len(world.done) < 3:
            raise Declined
        return len(world.done)

    @durable
    async def checkout() -> int:
        return await charge()

    async with Perdure(quick_url) as app:
        assert await app.run("t", checkout) == 3
        (record,) = await app.effects.of("t")
        assert (record.tries, record.state, record.key) == (3, "done", world.keys[-1])
    assert len(set(world.keys)) == (3 if new_key else 1)


@pytest.mark.req("R64", "R68")
async def test_an_uncertain_end_is_not_tried_again_by_a_retry(quick_url: str) -> None:
    world = World()

    @effect(retry=AT_ONCE)
    async def charge() -> None:
        world.do("charge", idempotency_key())
        raise ConnectionError

    @durable
    async def checkout() -> None:
        await charge()

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", checkout)
    assert world.done == ["charge"]


@pytest.mark.req("R68")
async def test_tries_and_the_wait_between_them_outlive_the_process(
    quick_url: str, clock: Any, monkeypatch: Any
) -> None:
    world = World()

    @effect(failed_on=[Declined], retry=Retry(2, wait=timedelta(hours=1), cap=timedelta(hours=1)))
    async def charge() -> None:
        world.do("charge", idempotency_key())
        raise Declined

    @durable
    async def checkout() -> None:
        await charge()

    async with Perdure(quick_url) as app:
        await app.tasks.open("other")  # so that the store is there
        work = asyncio.create_task(ended(app, "t", checkout))
        await wait_until(lambda: _has_failed(app))
        work.cancel()  # in the middle of its wait
        assert isinstance(await work, asyncio.CancelledError)

        naps, work = Naps(monkeypatch, retrying), asyncio.create_task(ended(app, "t", checkout))
        assert await naps.waits_on(work)
        clock.advance(minutes=59)
        assert await naps.waits_on(work) and world.done == ["charge"]
        clock.advance(minutes=2)
        assert isinstance(await work, Declined)  # the second try was the last
    assert world.done == ["charge", "charge"] and len(set(world.keys)) == 1


async def _has_failed(app: Perdure) -> bool:
    return await app.tasks.get("t") is not None and [one.state for one in await app.effects.of("t")] == ["failed"]


# ── settling without a person ────────────────────────────────────────────────────────────────────


@pytest.mark.req("R64")
@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize("how", ["death", "exception"])
@pytest.mark.parametrize("found", ["happened", "not", "unknown", "fails", "nonsense"])
async def test_a_probe_settles_it(quick_url: str, how: str, found: str, kind: str) -> None:
    world = World()
    asked: list[Any] = []

    def look(order: str, cents: int) -> Any:
        asked.append((order, cents, idempotency_key()))
        if found == "fails":
            raise OSError("the target is away")
        return {"happened": Happened("found"), "not": DID_NOT_HAPPEN, "unknown": UNKNOWN, "nonsense": None}[found]

    async def look_async(order: str, cents: int) -> Any:
        await asyncio.sleep(0)
        return look(order, cents)

    @effect(verify=look_async if kind == "async" else look)
    async def charge(order: str, cents: int) -> str:
        world.do(order, idempotency_key())
        if len(world.done) == 1:
            raise Died if how == "death" else ConnectionError("gone")
        return "again"

    @durable
    async def checkout() -> str:
        return await charge("o", 5)

    async with Perdure(quick_url) as app:
        if how == "death":
            await ended(app, "t", checkout)
        outcome = (await _result_or_pause(app, checkout))[0]
        assert asked[0] == ("o", 5, world.keys[0])
        if found == "happened":
            assert outcome == "found" and len(world.done) == 1
            assert [one.settled for one in await app.effects.of("t")] == ["verify"]
        elif found == "not" and how == "death":
            assert outcome == "again" and len(set(world.keys)) == 1
        elif found == "not":
            assert isinstance(outcome, ConnectionError) and len(world.done) == 1
        else:
            assert isinstance(outcome, Pause) and len(world.done) == 1
            why = (await app.effects.list())[0].why
            assert {"unknown": "", "fails": "the target is away", "nonsense": "answered None"}[found] in why


async def _result_or_pause(app: Perdure, function: Any) -> tuple[Any]:
    try:
        return (await until_paused(app, "t", function),)
    except Exception as error:
        return (error,)


@pytest.mark.req("R64")
async def test_what_a_person_has_said_stands_even_if_the_probe_says_otherwise_later(quick_url: str) -> None:
    world, verdicts = World(), [UNKNOWN, DID_NOT_HAPPEN]

    @effect(verify=lambda: verdicts.pop(0))
    async def charge() -> str:
        world.do("charge", idempotency_key())
        raise ConnectionError

    @durable
    async def checkout() -> str:
        return await charge()

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", checkout)
        await app.effects.settle("t", "done", value="I saw it there")
        assert await app.run("t", checkout) == "I saw it there"
    assert world.done == ["charge"]


@pytest.mark.req("R64")
@pytest.mark.parametrize("how", ["death", "exception"])
async def test_a_keyed_effect_is_sent_again_with_the_same_key(url: str, how: str) -> None:
    world = World()

    @effect(keyed=True, retry=AT_ONCE)
    async def charge() -> str:
        key = idempotency_key()
        if key not in world.keys:  # what the target does with a key that it knows
            world.done.append("charge")
        world.keys.append(key)
        if len(world.keys) == 1:
            raise Died if how == "death" else ConnectionError
        return "receipt"

    @durable
    async def checkout() -> str:
        return await charge()

    async with Perdure(url) as app:
        if how == "death":
            await ended(app, "t", checkout)
        assert await app.run("t", checkout) == "receipt"
    assert world.done == ["charge"] and len(world.keys) == 2


@pytest.mark.req("R64")
async def test_a_keyed_effect_that_never_answers_is_asked_about_in_the_end(quick_url: str) -> None:
    world = World()

    @effect(keyed=True, retry=AT_ONCE)
    async def charge() -> None:
        world.do("sent", idempotency_key())
        raise ConnectionError

    @durable
    async def checkout() -> None:
        await charge()

    async with Perdure(quick_url) as app:
        assert isinstance(await until_paused(app, "t", checkout), Pause)
    assert len(world.keys) == 3 and len(set(world.keys)) == 1


@pytest.mark.req("R64")
async def test_an_effect_may_fail_instead_of_asking_and_stays_in_the_inbox(url: str) -> None:
    @effect(on_uncertain="fail")
    async def charge() -> None:
        raise ConnectionError("gone")

    @durable
    async def checkout(waits: bool) -> str:
        try:
            await charge()
        except EffectUncertain as error:
            await asyncio.sleep(0)
            return f"{error.name}: {error.why}"
        raise AssertionError

    async with Perdure(url) as app:
        assert await app.run("t", checkout, True) == "charge: ConnectionError: gone"
        (record,) = await app.effects.of("t")
        assert record.state == "uncertain"
        # The task has completed without it; what became of it can still be said.
        (waiting,) = await app.effects.list()
        assert (waiting.key, waiting.is_waited_for) == (record.key, False)
        with pytest.raises(InvalidInput):
            await app.effects.settle("t", "retry")
        await app.effects.settle("t", "fail")
        assert await app.effects.list() == []
        assert [one.state for one in await app.effects.of("t")] == ["failed"]


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
