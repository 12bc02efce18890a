"""An uncertain effect is settled without a person: by a probe, by its key, or as a failure."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure, pause, recorded
from perdure._durable import DID_NOT_HAPPEN, UNKNOWN, Happened, Retry, durable, effect, idempotency_key, step
from perdure._model import Pause
from perdure.effects import MayHaveHappened
from perdure.errors import EffectUncertain, InvalidInput
from tests.durable.effects_kit import Died, World, ended, until_paused

AT_ONCE = Retry(3, wait=timedelta(0))


class Declined(Exception):
    """The target said no."""


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
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_what_a_probe_calls_is_no_part_of_the_function(quick_url: str, kind: str) -> None:
    world = World()

    @step
    async def read_accounts(order: str) -> list[str]:
        recorded.now()
        return list(world.done)

    async def look(order: str) -> Any:
        found = await asyncio.gather(read_accounts(order), read_accounts(order))
        return Happened(f"found {found[0][0]}")

    @step
    def read_accounts_here(order: str) -> list[str]:
        return list(world.done)

    def look_here(order: str) -> Any:
        return Happened(f"found {read_accounts_here(order)[0]} at {recorded.now().year}")

    @effect(verify=look if kind == "async" else look_here)
    async def charge(order: str) -> str:
        world.do(order, idempotency_key())
        raise Died

    @durable
    async def checkout() -> str:
        receipt = await charge("o")
        await ship(receipt)
        return receipt

    @step
    async def ship(receipt: str) -> None:
        if len(world.done) == 1:
            world.do("ship", "")
            raise Died

    async with Perdure(quick_url) as app:
        await ended(app, "t", checkout)
        await ended(app, "t", checkout)  # it is looked for, and found; and dies again
        assert (await app.run("t", checkout)).startswith("found o")
    assert world.done == ["o", "ship"]


@pytest.mark.req("R64")
async def test_a_probe_cannot_pause_the_task(quick_url: str) -> None:
    async def look() -> Any:
        return Happened(await pause.input("what came of it?", str))

    @effect(verify=look)
    async def charge() -> str:
        raise ConnectionError

    @durable
    async def checkout() -> str:
        return await charge()

    async with Perdure(quick_url) as app:
        assert isinstance(await until_paused(app, "t", checkout), Pause)
        assert "inside a step" in (await app.effects.list())[0].why


@pytest.mark.req("R64")
@pytest.mark.parametrize("way", ["resume", "cancel"])
@pytest.mark.parametrize("later", ["happened", "not"])
async def test_a_question_is_withdrawn_when_the_probe_knows_more_later(quick_url: str, way: str, later: str) -> None:
    verdicts = [UNKNOWN, Happened("found") if later == "happened" else DID_NOT_HAPPEN]
    sent: list[str] = []

    @effect(verify=lambda: verdicts.pop(0), undo=lambda receipt: None)
    async def charge() -> str:
        sent.append(idempotency_key())
        if len(sent) == 1:
            raise ConnectionError
        return "again"

    @durable
    async def checkout() -> str:
        return await charge()

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", checkout)
        assert len(await app.effects.list()) == 1
        task = await app.tasks.handle("t")
        if way == "cancel":
            await task.cancel()
        else:
            await task.resume()
            assert await app.run("t", checkout) == ("found" if later == "happened" else "again")
        assert await app.effects.list() == []


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


# ── telling the code ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_plain", [False, True])
async def test_code_that_wants_to_be_told_gets_a_value_that_says_it_may_have_happened(
    quick_url: str, is_plain: bool
) -> None:
    ran: list[str] = []

    def body(order: str) -> str:
        ran.append(order)
        raise ConnectionError("the line went dead")

    if is_plain:
        pay: Any = effect(on_uncertain="tell", name="pay")(body)
    else:

        @effect(on_uncertain="tell", name="pay")
        async def pay(order: str) -> str:
            return body(order)

    first = asyncio.Event()

    @durable
    async def agent() -> list[Any]:
        told = pay("o-1") if is_plain else await pay("o-1")
        assert isinstance(told, MayHaveHappened)
        if not first.is_set():
            first.set()
            await asyncio.get_running_loop().create_future()
        return [told.name, told.why, told.key.startswith("prd-"), str(told)]

    async with Perdure(quick_url) as app:
        running = asyncio.ensure_future(app.run("t", agent))
        await first.wait()
        running.cancel()
        await asyncio.wait([running])
        name, why, has_key, said = await app.run("t", agent)  # replayed
        assert (name, has_key, ran) == ("pay", True, ["o-1"])
        assert "the line went dead" in why and "may have happened" in said
        [open_one] = await app.effects.list()
        assert not open_one.is_waited_for


async def test_an_effect_that_was_cut_off_with_its_process_is_told_of_by_the_next_attempt(quick_url: str) -> None:
    ran: list[str] = []
    begun = asyncio.Event()

    @effect(on_uncertain="tell")
    async def pay(order: str) -> str:
        ran.append(order)
        begun.set()
        await asyncio.get_running_loop().create_future()
        return "paid"

    @durable
    async def agent() -> str:
        return str(await pay("o-1"))

    async with Perdure(quick_url) as app:
        running = asyncio.ensure_future(app.run("t", agent))
        await begun.wait()
        running.cancel()
        await asyncio.wait([running])
        assert "pay may have happened" in await app.run("t", agent)
    assert ran == ["o-1"]
