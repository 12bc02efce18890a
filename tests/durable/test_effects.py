"""An effect is never repeated silently: what is definite, what is uncertain, and what settles it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from perdure import Perdure
from perdure._durable import (
    DidNotHappen,
    Retry,
    durable,
    effect,
    idempotency_key,
)
from perdure._durable.attempt.calls import retry as retrying
from perdure._durable.attempt.scopes import current
from perdure._model import Pause
from perdure._store import committer as committing
from perdure.errors import Conflict, EffectUncertain, InvalidInput, NotFound
from tests.durable.effects_kit import Died, Naps, World, ended, until_paused, wait_until

AT_ONCE = Retry(3, wait=timedelta(0))


class Declined(Exception):
    """The target said no."""


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


async def test_a_chain_of_effects_takes_one_commit_for_each(
    quick_url: str, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "GATHERING", 3600.0)  # nothing is committed but what somebody waits for
    commits: list[int] = []

    @effect
    async def touch(number: int) -> None:
        scope = current.get()
        assert scope is not None
        commits.append(scope.attempt.store.committer.batches)

    @durable
    async def chain() -> None:
        for number in range(20):
            await touch(number)
            await asyncio.to_thread(int)  # other threads have their turn

    async with Perdure(quick_url) as app:
        await app.run("t", chain)
    between = [after - before for before, after in pairwise(commits)]
    assert between == [1] * 19


async def test_an_attempt_lets_go_of_the_writes_that_are_on_disk(quick_url: str) -> None:
    held: list[int] = []

    @effect
    async def touch(number: int) -> None:
        scope = current.get()
        assert scope is not None
        held.append(len(scope.attempt.fence.unflushed))

    @durable
    async def chain() -> None:
        for number in range(20):
            await touch(number)
        await asyncio.gather(*(touch(number) for number in range(20)))

    async with Perdure(quick_url) as app:
        await app.run("t", chain)
    assert max(held[:20]) <= 18
    assert max(held) <= 40


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
        assert [one.state for one in await app.effects.of("t")] == ["uncertain"]
        await app.effects.settle("t", "done", value=7)
        assert [one.state for one in await app.effects.of("t")] == ["done"]
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
        with pytest.raises(InvalidInput, match="'perhaps' is not an answer"):
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


async def test_an_effect_that_waits_for_its_next_try_is_not_tried_by_an_attempt_that_is_unwound(
    quick_url: str, clock: Any
) -> None:
    tried: list[str] = []

    @effect(failed_on=[Declined], retry=Retry(3, wait=timedelta(minutes=1)))
    async def charge() -> None:
        tried.append("once")
        raise Declined

    @durable
    async def unwound() -> str:
        trying, scope = asyncio.create_task(charge()), current.get()
        await wait_until(lambda: bool(tried))
        assert scope is not None
        scope.attempt.unwinding.has_begun = True
        clock.advance(minutes=2)
        await wait_until(lambda: trying.done() or len(tried) > 1)
        scope.attempt.unwinding.has_begun = False
        return type(trying.exception()).__name__ if trying.done() else "tried again"

    async with Perdure(quick_url) as app:
        assert await app.run("t", unwound) == "Paused"
    assert tried == ["once"]


async def _has_failed(app: Perdure) -> bool:
    return await app.tasks.get("t") is not None and [one.state for one in await app.effects.of("t")] == ["failed"]
