"""Effects among others: cut off by the code, beside a pause, and after another attempt has taken over."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure, pause
from perdure._durable import UNKNOWN, Happened, durable, effect, idempotency_key, step
from perdure._durable.effects import settlement
from perdure._durable.lifecycle import single_attempt
from perdure._ground.bridge import drive
from perdure._model import Pause
from perdure._tasks import questions_of
from perdure.errors import EffectUncertain, InvalidInput, LeaseLost
from tests.durable.effects_kit import Died, Naps, Places, World, ended, until_paused

# ── cut off ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R64")
async def test_a_cancelled_effect_is_cancelled_again_in_a_replay_and_stays_in_the_inbox(quick_url: str) -> None:
    world, began = World(), asyncio.Event()

    @effect
    async def charge() -> str:
        world.do("charge", idempotency_key())
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    @durable
    async def checkout() -> str:
        work = asyncio.create_task(charge())
        if not began.is_set():
            await began.wait()
        await asyncio.sleep(0)
        work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            return await pause.input("and now?", str)
        raise AssertionError

    async with Perdure(quick_url) as app:
        found = await until_paused(app, "t", checkout)
        assert isinstance(found, Pause) and found.message == "and now?"
        (waiting,) = await app.effects.list()
        assert (waiting.key, waiting.is_waited_for) == (world.keys[0], False)
        with pytest.raises(InvalidInput, match="it will not be tried again"):
            await app.effects.settle("t", "retry")
        await app.effects.settle("t", "done", value="it went through")
        assert await app.effects.list() == []
        (record,) = await app.effects.of("t")
        assert (record.state, record.settled) == ("done", "person")
    assert world.done == ["charge"]


async def test_an_effect_that_was_cancelled_before_it_ran_is_not_uncertain(quick_url: str, monkeypatch: Any) -> None:
    world, places = World(), Places(monkeypatch)

    @effect
    async def charge() -> None:
        world.do("charge", idempotency_key())

    @durable
    async def checkout() -> str:
        work = asyncio.create_task(charge())
        places.at("effect.before_intent", work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            return "cancelled"
        raise AssertionError

    async with Perdure(quick_url) as app:
        assert await app.run("t", checkout) == "cancelled"
        assert [one.state for one in await app.effects.of("t")] == ["failed"]
        assert await app.effects.list() == []
    assert world.done == []


@pytest.mark.req("R64")
async def test_an_effect_that_a_step_cut_off_is_settled_when_the_step_is_run_again(quick_url: str) -> None:
    world = World()
    limits: list[asyncio.Timeout] = []

    @effect(verify=lambda: Happened("found"))
    async def charge() -> str:
        world.do("charge", idempotency_key())
        limits[-1].reschedule(0)
        await asyncio.Event().wait()
        raise AssertionError

    @step
    async def work() -> str:
        try:
            async with asyncio.timeout(None) as limit:
                limits.append(limit)
                return await charge()
        except TimeoutError:
            if len(world.done) == 1:
                world.done.append("died")
                raise Died from None
            raise

    @durable
    async def job() -> str:
        return await work()

    async with Perdure(quick_url) as app:
        assert isinstance(await ended(app, "t", job), Died)
        assert await app.run("t", job) == "found"
    assert world.done == ["charge", "died"]


# ── beside a pause ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R64")
@pytest.mark.parametrize("where", ["body", "intent"])
async def test_an_effect_under_way_ends_and_is_recorded_before_a_pause_unwinds(quick_url: str, where: str) -> None:
    world, may_go_on = World(), asyncio.Event()

    @effect
    async def charge() -> str:
        if where == "body":
            await may_go_on.wait()
        return world.do("charge", idempotency_key())

    @durable
    async def checkout() -> str:
        async with asyncio.TaskGroup() as group:
            charged = group.create_task(charge())
            answered = group.create_task(pause.input("go on?", str))
        return f"{charged.result()}, {answered.result()}"

    async with Perdure(quick_url) as app:
        if where == "body":
            work = asyncio.create_task(until_paused(app, "t", checkout))
            while not await _open_questions(app, "t"):
                await asyncio.sleep(0)
            for _ in range(50):
                await asyncio.sleep(0)
            assert not work.done()  # the question is asked; the effect still runs
            may_go_on.set()
            found = await work
        else:
            found = await until_paused(app, "t", checkout)
        assert isinstance(found, Pause)
        assert [one.state for one in await app.effects.of("t")] == ["done"]
        assert await app.effects.list() == []
    assert world.done == ["charge"]


async def _open_questions(app: Perdure, id: str) -> list[Any]:
    record = await app.tasks.get(id)
    return [] if record is None else await questions_of(app._store, id, record.uid)


# ── another attempt ──────────────────────────────────────────────────────────────────────────────


async def overtake(app: Perdure, id: str) -> None:
    """Another process takes the task over, as if this one had been silent for a whole lease."""
    store = app._store
    record = await app.tasks.get(id)
    assert record is not None
    rows = await store.query("read_holder", uid=record.uid)
    epoch, worker = rows[0][0], rows[0][1]
    params = {
        **store.event(record.uid, "attempt taken over", {}),
        "seen_epoch": epoch, "seen_worker": worker, "worker": "another", "before": "running",
        "former": "silent for a whole lease", "host": "elsewhere", "pid": 1, "user": "u", "agent": "",
    }  # fmt: skip
    assert await store.verb("claim", record.uid, params, key=id) is not None


@pytest.mark.req("R55", "R64")
async def test_an_attempt_that_was_overtaken_begins_no_effect_and_writes_nothing(url: str) -> None:
    world = World()

    async with Perdure(url) as app:

        @step
        async def lose() -> None:
            await overtake(app, "t")

        @effect
        async def charge() -> None:
            world.do("charge", idempotency_key())

        @durable
        async def checkout() -> None:
            await lose()
            await charge()

        with pytest.raises(LeaseLost):
            await app.run("t", checkout)
        assert await app.effects.of("t") == []
    assert world.done == []


@pytest.mark.req("R55", "R64")
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_an_effect_whose_intent_is_refused_does_not_run(url: str, kind: str, monkeypatch: Any) -> None:
    world, places = World(), Places(monkeypatch)

    @effect
    async def charge() -> None:
        world.do("charge", idempotency_key())

    @effect
    def charge_here() -> None:
        world.do("charge", idempotency_key())

    @durable
    async def checkout() -> None:
        if kind == "async":
            await charge()
        else:
            charge_here()

    async with Perdure(url) as app:
        places.at("effect.before_intent", lambda: drive(overtake(app, "t")))
        with pytest.raises(LeaseLost):
            await app.run("t", checkout)
        assert await app.effects.of("t") == []
    assert world.done == []


@pytest.mark.req("R55", "R64")
async def test_an_attempt_that_was_overtaken_asks_nobody(url: str) -> None:
    async with Perdure(url) as app:

        async def look() -> Any:
            await overtake(app, "t")
            return UNKNOWN

        @effect(verify=look)
        async def charge() -> None:
            raise ConnectionError

        @durable
        async def checkout() -> None:
            await charge()

        with pytest.raises(LeaseLost):
            await app.run("t", checkout)
        assert await app.effects.list() == []


@pytest.mark.req("R64")
async def test_an_attempt_overtaken_inside_an_effect_records_no_outcome_and_starts_no_other(url: str) -> None:
    world = World()

    async with Perdure(url) as app:

        @effect
        async def charge(order: str) -> None:
            world.do(order, idempotency_key())
            await overtake(app, "t")

        @durable
        async def checkout() -> None:
            await charge("a")
            await charge("b")

        with pytest.raises(LeaseLost):
            await app.run("t", checkout)
        assert [(one.call, one.state) for one in await app.effects.of("t")] == [("charge('a')", "uncertain")]
    assert world.done == ["a"]


@pytest.mark.req("R64")
async def test_a_process_that_stood_still_between_intent_and_call_looks_at_its_lease_first(
    quick_url: str, clock: Any, monkeypatch: Any
) -> None:
    world, places = World(), Places(monkeypatch)

    async with Perdure(quick_url) as app:

        @effect
        async def charge() -> None:
            world.do("charge", idempotency_key())

        @durable
        async def checkout() -> None:
            await charge()

        def sleep_through_the_lease() -> None:
            clock.advance(minutes=1)
            drive(overtake(app, "t"))

        places.at("effect.intended", sleep_through_the_lease)
        with pytest.raises(LeaseLost, match="stood still"):
            await app.run("t", checkout)
    assert world.done == []


@pytest.mark.req("R64")
async def test_a_process_that_stood_still_and_kept_its_lease_sets_its_deadline_anew(
    quick_url: str, clock: Any, monkeypatch: Any
) -> None:
    world, places = World(), Places(monkeypatch)

    @effect(timeout=timedelta(seconds=30))
    async def charge() -> None:
        world.do("charge", idempotency_key())

    @durable
    async def checkout() -> None:
        await charge()

    async with Perdure(quick_url) as app:
        places.at("effect.intended", lambda: clock.advance(minutes=1))
        await app.run("t", checkout)
        (record,) = await app.effects.of("t")
        assert (record.state, record.tries) == ("done", 1)
    assert world.done == ["charge"]


@pytest.mark.req("R64")
async def test_an_intent_of_a_process_that_may_be_alive_is_not_settled_before_its_deadline_and_a_lease(
    quick_url: str, clock: Any, monkeypatch: Any
) -> None:
    looked: list[str] = []

    def look() -> Any:
        looked.append("looked")
        return UNKNOWN

    async with Perdure(quick_url) as app:

        @effect(verify=look, on_uncertain="fail", timeout=timedelta(seconds=60))
        async def charge() -> None:
            await overtake(app, "t")

        @durable
        async def checkout() -> None:
            await charge()

        monkeypatch.setattr(single_attempt, "stand_down", lambda attempt: None)  # it is out of reach, and cannot tell
        with pytest.raises(LeaseLost):
            await app.run("t", checkout)
        # The other one ended by itself; the first, as far as anybody knows, may still be running its effect.
        await _release(app, "t")
        _pretend_it_was_another_process(app, monkeypatch)
        naps, work = Naps(monkeypatch, settlement), asyncio.create_task(ended(app, "t", checkout))
        for seconds in (0, 59, 5):
            clock.advance(seconds=seconds)
            assert await naps.waits_on(work) and looked == []
        clock.advance(seconds=2)
        assert isinstance(await work, EffectUncertain)
        assert looked == ["looked"]


async def _release(app: Perdure, id: str) -> None:
    store = app._store
    record = await app.tasks.get(id)
    assert record is not None
    rows = await store.query("read_holder", uid=record.uid)
    params = {
        **store.event(record.uid, "attempt ended", {}),
        "ended": "released",
        "epoch": rows[0][0],
        "worker": "another",
    }
    assert await store.verb("release", record.uid, params, key=id) is not None


def _pretend_it_was_another_process(app: Perdure, monkeypatch: Any) -> None:
    """This process gets a new name, so that the first attempt's worker is somebody else, and alive."""
    monkeypatch.setattr(app._store.presence, "worker", "a new name")
    monkeypatch.setattr(app._store.presence, "is_registered", False)


@pytest.mark.req("R64")
async def test_an_effect_that_a_function_leaves_behind_is_uncertain_and_in_the_inbox(url: str) -> None:
    sending = asyncio.Event()

    @effect
    async def send() -> str:
        sending.set()
        await asyncio.Event().wait()
        return "sent"

    @durable
    async def forgetful() -> str:
        left_behind = asyncio.ensure_future(send())
        await sending.wait()
        return f"{left_behind.done()}"

    async with Perdure(url) as app:
        assert await app.run("t", forgetful) == "False"
        (waiting,) = await app.effects.list()
        assert waiting.call == "send()" and not waiting.is_waited_for and "returned" in waiting.why
        await app.effects.settle("t", "done", value="sent")
        assert [one.state for one in await app.effects.of("t")] == ["done"]
        assert await app.effects.list() == []
