"""Taking back what was done: the newest first, each once, whoever has to do it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, pause, sync
from perdure._durable import DID_NOT_HAPPEN, DidNotHappen, Happened, durable, effect, idempotency_key, step, where
from perdure._durable.control import control_watch as wishes
from perdure._durable.effects import declaration as registry
from perdure._model import Pause
from perdure.errors import InvalidTransition, TaskFailed
from tests.durable.effects_kit import Died, Places, World, ended, raising, status_of, until_paused, wait_until

LATER = ("intended", "done", "recorded")
world = World()
trouble: list[BaseException] = []


@pytest.fixture(autouse=True)
def _a_new_world() -> None:
    world.__init__()  # type: ignore[misc]
    trouble.clear()


@effect(keyed=True)
async def refund(receipt: str, order: str, cents: int) -> str:
    world.undone.append(f"{receipt}, {order}, {cents}, {idempotency_key()}")
    return "refunded"


@effect(undo=refund)
async def charge(order: str, cents: int) -> str:
    found = world.do(f"{order} {cents}", idempotency_key())
    if trouble:
        raise trouble.pop()
    return found


@effect
async def mail(order: str) -> None:
    world.do(f"mail {order}", idempotency_key())


def take_back_the_note(_result: None, text: str) -> None:
    world.undone.append(f"note {text}")


@effect(undo=take_back_the_note)
def note(text: str) -> None:
    world.do(f"note {text}", idempotency_key())


@durable
async def three_and_wait() -> str:
    await charge("a", 1)
    await charge("b", 2)
    await mail("b")
    await charge("c", 3)
    return await pause.input("go on?", str)


def orders() -> list[str]:
    return [found.split(", ")[1] for found in world.undone]


# ── cancel ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R36", "R70")
async def test_cancel_undoes_what_was_done_the_newest_first_and_then_the_task_is_cancelled(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", three_and_wait)
        task = await app.tasks.handle("t")
        await task.cancel()
        assert task.status == "cancelled"
        assert orders() == ["c", "b", "a"]
        assert len({found.split(", ")[3] for found in world.undone} | set(world.keys)) == 7  # keys of their own
        states = {one.call: (one.state, one.undone_at is not None) for one in await app.effects.of("t")}
        assert states == {
            "charge('a', 1)": ("undone", True),
            "charge('b', 2)": ("undone", True),
            "mail('b')": ("done", False),
            "charge('c', 3)": ("undone", True),
        }
        with pytest.raises(TaskFailed):
            await app.run("t", three_and_wait)
        with pytest.raises(InvalidTransition):
            await task.cancel()
    assert len(world.undone) == 3


@pytest.mark.req("R36")
async def test_cancel_without_undo_undoes_nothing(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "t", three_and_wait)
        await (await app.tasks.handle("t")).cancel(undo=False)
        assert await status_of(app, "t") == "cancelled"
    assert world.undone == []


@pytest.mark.req("R36")
@pytest.mark.parametrize(
    "place", ["undo.before", "effect.before_intent", "effect.intended", "effect.done", "effect.recorded"]
)
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_each_undo_is_done_once_when_the_undoing_is_cut_off(
    quick_url: str, monkeypatch: Any, place: str, number: int
) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "t", three_and_wait)
        places, left = Places(monkeypatch), [number]

        def maybe() -> None:
            left[0] -= 1
            if left[0]:
                places.at(place, maybe)
            else:
                raise Died

        places.at(place, maybe)
        task = await app.tasks.handle("t")
        with pytest.raises(Died):
            await task.cancel()
        assert await status_of(app, "t") == "running"  # it is still to be cancelled, and that is on disk
        found = await ended(app, "t", three_and_wait)  # whoever comes next does the rest, and not the function
        assert isinstance(found, TaskFailed) and found.status == "cancelled"
    assert sorted(set(orders()), reverse=True) == ["c", "b", "a"]
    # A keyed refund may be sent twice; what its target sees is one key each.
    assert len({found.split(", ")[3] for found in world.undone}) == 3
    if place != "effect.done":
        assert len(world.undone) == 3


@pytest.mark.req("R36")
async def test_a_running_attempt_of_this_process_ends_its_effect_and_then_undoes(quick_url: str) -> None:
    may_end = asyncio.Event()

    @effect(undo=refund)
    async def slow(order: str, cents: int) -> str:
        await may_end.wait()
        return world.do(order, idempotency_key())

    @durable
    async def work() -> None:
        await charge("a", 1)
        await slow("b", 2)
        await charge("never", 3)

    async with Perdure(quick_url) as app:
        running = asyncio.create_task(ended(app, "t", work))
        await wait_until(lambda: _has_effects(app, 2))
        task = await app.tasks.handle("t")
        await task.cancel()
        assert task.status == "running"
        (attempt,) = [attempt for watch in wishes._watches.values() for attempt in watch.attempts.values()]
        await wait_until(lambda: attempt.unwinding.stopping)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not running.done() and world.undone == []  # it waits for what is under way
        may_end.set()
        found = await running
        assert isinstance(found, TaskFailed) and found.status == "cancelled"
    assert world.done == ["a 1", "b"] and orders() == ["b", "a"]


async def _has_effects(app: Perdure, count: int) -> bool:
    return await app.tasks.get("t") is not None and len(await app.effects.of("t")) == count


@pytest.mark.req("R36")
async def test_a_function_that_sleeps_or_runs_a_step_is_stopped_at_once(quick_url: str) -> None:
    begun = asyncio.Event()

    @step
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    @durable
    async def work() -> None:
        await charge("a", 1)
        async with asyncio.TaskGroup() as group:
            group.create_task(endless())
            group.create_task(asyncio.Event().wait())

    async with Perdure(quick_url) as app:
        running = asyncio.create_task(ended(app, "t", work))
        await begun.wait()
        await (await app.tasks.handle("t")).cancel()
        found = await running
        assert isinstance(found, TaskFailed) and found.status == "cancelled"
    assert orders() == ["a"]


@pytest.mark.req("R36")
async def test_a_wish_of_another_process_is_seen_by_the_one_that_works_on_the_task(
    quick_url: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(wishes, "LOOK_SECONDS", 0.01)
    begun = asyncio.Event()

    @durable
    async def work() -> None:
        await charge("a", 1)
        begun.set()
        await asyncio.Event().wait()

    async with Perdure(quick_url) as app:
        running = asyncio.create_task(ended(app, "t", work))
        await begun.wait()
        monkeypatch.setattr(wishes, "_attempt_of", lambda *_: None)  # as seen from another process
        await (await app.tasks.handle("t")).cancel()
        found = await running
        assert isinstance(found, TaskFailed) and found.status == "cancelled"
    assert orders() == ["a"]


async def test_a_task_that_never_began_an_effect_is_just_cancelled(quick_url: str) -> None:
    @durable
    async def waiting() -> None:
        await pause.input("what?", str)

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", waiting)
        await (await app.tasks.handle("t")).cancel()
        assert await status_of(app, "t") == "cancelled"


async def test_a_failed_task_can_be_cancelled_and_is_undone(quick_url: str) -> None:
    @durable
    async def failing() -> None:
        await charge("a", 1)
        raise ValueError("no")

    async with Perdure(quick_url) as app:
        assert isinstance(await ended(app, "t", failing), ValueError)
        assert world.undone == []
        await (await app.tasks.handle("t")).cancel()
        assert await status_of(app, "t") == "cancelled"
    assert orders() == ["a"]


@pytest.mark.req("R36")
async def test_a_process_that_does_not_know_the_effects_leaves_the_wish_to_one_that_does(
    quick_url: str, monkeypatch: Any
) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "t", three_and_wait)
        known = dict(registry._known)
        monkeypatch.setattr(registry, "_known", {})
        task = await app.tasks.handle("t")
        await task.cancel()
        assert task.status == "running" and world.undone == []
        assert "cancel asked for" in [event.kind for event in await app.tasks.events("t")]
        assert (await where(app.tasks, "t")).next.startswith("it is to be cancelled, by the next worker that knows")
        registry._known.update(known)
        assert isinstance(await ended(app, "t", three_and_wait), TaskFailed)
        assert await status_of(app, "t") == "cancelled"
        assert (await where(app.tasks, "t")).next == "nothing: it was cancelled"
    assert orders() == ["c", "b", "a"]


@pytest.mark.req("R36")
async def test_a_worker_fulfils_a_wish_that_nobody_else_could(quick_url: str, monkeypatch: Any) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "t", three_and_wait)
        known = dict(registry._known)
        monkeypatch.setattr(registry, "_known", {})
        await (await app.tasks.handle("t")).cancel()
        registry._known.update(known)
        async with app.worker():
            await app.tasks.wait_for("t", status="cancelled")
    assert orders() == ["c", "b", "a"]


@pytest.mark.req("R36")
def test_blocking_code_can_cancel_a_task_whose_undos_are_async(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/p.db"

    async def begin() -> None:
        async with Perdure(url) as app:
            await until_paused(app, "t", three_and_wait)

    asyncio.run(begin())
    with sync.Perdure(url) as app:
        task = app.tasks.handle("t")
        task.cancel()
        assert task.status == "cancelled"
        assert [one.state for one in app.effects.of("t")] == ["undone", "undone", "done", "undone"]
    assert orders() == ["c", "b", "a"]


# ── cancel settles first ─────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R36", "R64")
@pytest.mark.parametrize("found", ["happened", "not"])
async def test_cancel_settles_an_uncertain_effect_first_and_undoes_it_if_it_happened(
    quick_url: str, found: str
) -> None:
    @effect(verify=lambda order, cents: Happened("found it") if found == "happened" else DID_NOT_HAPPEN, undo=refund)
    async def risky(order: str, cents: int) -> str:
        world.do(order, idempotency_key())
        raise Died

    @durable
    async def work() -> None:
        await charge("a", 1)
        await risky("b", 2)

    async with Perdure(quick_url) as app:
        assert isinstance(await ended(app, "t", work), Died)
        await (await app.tasks.handle("t")).cancel()
        assert await status_of(app, "t") == "cancelled"
        last = (await app.effects.of("t"))[-1]
        assert last.state == ("undone" if found == "happened" else "failed")
    assert orders() == (["b", "a"] if found == "happened" else ["a"])
    if found == "happened":
        assert world.undone[0].startswith("found it, b, 2, ")


@pytest.mark.req("R36", "R64")
async def test_cancel_of_a_keyed_effect_sends_it_again_with_its_key_and_undoes_it(quick_url: str) -> None:
    @effect(keyed=True, undo=refund)
    async def risky(order: str, cents: int) -> str:
        world.do(order, idempotency_key())
        if len(world.done) == 1:
            raise Died
        return "second"

    @durable
    async def work() -> None:
        await risky("b", 2)

    async with Perdure(quick_url) as app:
        await ended(app, "t", work)
        await (await app.tasks.handle("t")).cancel()
        assert await status_of(app, "t") == "cancelled"
    assert len(set(world.keys)) == 1 and world.undone[0].startswith("second, b, 2")


@pytest.mark.req("R36", "R64")
@pytest.mark.parametrize("choice", ["done", "fail", "retry"])
async def test_cancel_asks_a_person_about_what_nobody_knows_and_then_goes_on(quick_url: str, choice: Any) -> None:
    async with Perdure(quick_url) as app:

        @durable
        async def work() -> None:
            await charge("a", 1)
            trouble.append(ConnectionError())
            await charge("b", 2)

        await until_paused(app, "t", work)
        task = await app.tasks.handle("t")
        await task.cancel()
        assert task.status == "paused"
        (waiting,) = await app.effects.list()
        assert waiting.call == "charge('b', 2)"
        await app.effects.settle("t", choice, value="r" if choice == "done" else None)
        assert isinstance(await ended(app, "t", work), TaskFailed)
        assert await status_of(app, "t") == "cancelled"
    assert world.done == ["a 1", "b 2"]
    assert orders() == (["b", "a"] if choice == "done" else ["a"])


async def test_an_uncertain_effect_without_an_undo_does_not_hold_the_end_up(quick_url: str) -> None:
    @effect
    async def risky() -> None:
        raise ConnectionError

    @durable
    async def work() -> None:
        await charge("a", 1)
        await risky()

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", work)
        await (await app.tasks.handle("t")).cancel()
        assert await status_of(app, "t") == "cancelled"
        assert [one.state for one in await app.effects.of("t")] == ["undone", "uncertain"]
    assert orders() == ["a"]


# ── undos that fail ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R36")
@pytest.mark.parametrize("choice", ["retry", "done", "fail"])
async def test_an_undo_that_definitely_fails_is_put_to_a_person(quick_url: str, choice: Any) -> None:
    tries: list[str] = []

    async def bad_undo(_: str, order: str) -> None:
        tries.append(order)
        if len(tries) == 1:
            raise DidNotHappen("the target says no")

    @effect(undo=bad_undo)
    async def book(order: str) -> str:
        return world.do(order, idempotency_key())

    @durable
    async def work() -> None:
        await charge("a", 1)
        await book("x")
        await pause.input("go on?", str)

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", work)
        task = await app.tasks.handle("t")
        await task.cancel()
        assert task.status == "paused" and world.undone == []
        (waiting,) = [one for one in await app.effects.list() if one.call.startswith("undo of")]
        assert waiting.call == "undo of book('x')" and "the target says no" in waiting.why
        await app.effects.settle("t", choice, key=waiting.key)
        assert isinstance(await ended(app, "t", work), TaskFailed)
        assert await status_of(app, "t") == "cancelled"
        state = {one.name: one.state for one in await app.effects.of("t")}["book"]
        assert state == ("done" if choice == "fail" else "undone")
    assert orders() == ["a"] and len(tries) == (2 if choice == "retry" else 1)


@pytest.mark.req("R36")
@pytest.mark.parametrize("then", [("done", "r-7"), ("fail", None)])
async def test_cancel_goes_by_the_last_word_of_a_person(quick_url: str, then: Any) -> None:
    @effect(undo=lambda receipt: world.undone.append(receipt))
    async def book() -> str:
        raise ConnectionError

    @durable
    async def work() -> str:
        return await book()

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", work)
        await app.effects.settle("t", "done", value=7)
        await until_paused(app, "t", work)  # it does not fit, and is asked for again
        task = await app.tasks.handle("t")
        await task.cancel()
        assert task.status == "paused" and world.undone == []
        await app.effects.settle("t", then[0], value=then[1])
        await ended(app, "t", work)
        assert await status_of(app, "t") == "cancelled"
    assert world.undone == [one for one in then[1:] if one]


@pytest.mark.req("R36")
async def test_what_the_function_had_asked_is_withdrawn_when_its_task_is_ended(quick_url: str) -> None:
    def bad_undo(_: str) -> None:
        raise DidNotHappen("the target says no")

    @effect(undo=bad_undo)
    async def book() -> str:
        return world.do("book", idempotency_key())

    @durable
    async def work() -> None:
        await book()
        await pause.approval("go on?")

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", work)
        task = await app.tasks.handle("t")
        await task.cancel()
        assert (await where(app.tasks, "t")).waits_for == ["cannot undo book(): DidNotHappen: the target says no"]
        await task.answer("done", by="ada")  # the only one there is, so no key has to say which
        await ended(app, "t", work)
        assert await status_of(app, "t") == "cancelled"
        assert (await where(app.tasks, "t")).waits_for == []


@pytest.mark.req("R36")
async def test_an_undo_that_was_cut_off_and_has_no_key_is_asked_about_and_not_repeated(
    quick_url: str, monkeypatch: Any
) -> None:
    async with Perdure(quick_url) as app:

        @durable
        async def work() -> None:
            note("x")
            await pause.input("go on?", str)

        await until_paused(app, "t", work)
        places = Places(monkeypatch)
        places.at("effect.done", raising(Died()))
        task = await app.tasks.handle("t")
        with pytest.raises(Died):
            await task.cancel()
        assert world.undone == ["note x"]
        assert isinstance(await until_paused(app, "t", work), Pause)
        (waiting,) = [one for one in await app.effects.list() if "take_back" in one.call]
        await app.effects.settle("t", "done", key=waiting.key)
        assert isinstance(await ended(app, "t", work), TaskFailed)
    assert world.undone == ["note x"]


# ── failure ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R70")
async def test_a_function_that_fails_with_compensate_undoes_what_it_did(url: str) -> None:
    @durable(compensate=True)
    async def work() -> None:
        for number, order in enumerate("abc"):
            await charge(order, number)
        raise ValueError("step four")

    async with Perdure(url) as app:
        assert isinstance(await ended(app, "t", work), ValueError)
        assert await status_of(app, "t") == "failed"
        assert orders() == ["c", "b", "a"]
        assert isinstance(await ended(app, "t", work), ValueError)
    assert len(world.undone) == 3 and len(world.done) == 3


@pytest.mark.req("R70")
@pytest.mark.parametrize("place", ["undo.noted", *(f"effect.{when}" for when in LATER)])
async def test_compensation_that_was_cut_off_is_finished_without_running_the_function_again(
    quick_url: str, monkeypatch: Any, place: str
) -> None:
    ran: list[str] = []

    @durable(compensate=True)
    async def work() -> None:
        ran.append("ran")
        await charge("a", 1)
        await charge("b", 2)
        Places(monkeypatch).at(place, raising(Died()))
        raise ValueError("no")

    async with Perdure(quick_url) as app:
        assert isinstance(await ended(app, "t", work), Died)
        assert isinstance(await ended(app, "t", work), ValueError)
        assert await status_of(app, "t") == "failed"
    assert ran == ["ran"] and world.done == ["a 1", "b 2"]
    assert len({found.split(", ")[3] for found in world.undone}) == 2
