"""A durable function goes back to a checkpoint: what it had done by then stays done, no effect is repeated unasked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, budgets, carry_over, checkpoint, durable, effect, idempotency_key, pause, state, step
from perdure._durable import where
from perdure._durable.lifecycle.lines import task_rollback
from perdure.cli import main
from perdure.errors import InvalidInput
from tests.durable.effects_kit import World, until_paused, wait_until
from tests.support.fixtures import emptied_for_each_test
from tests.support.journals import calls_of

world = World()
ran: list[int] = []


_nothing_happened = emptied_for_each_test(world.done, world.undone, world.keys, ran)


@step
async def read(page: int) -> int:
    budgets.spend(tokens=10)
    ran.append(page)
    return page


def retract(result: str, page: int) -> None:
    world.undone.append(f"page {page}")


@effect(undo=retract)
async def publish(page: int) -> str:
    return world.do(f"page {page}", idempotency_key())


@durable
async def rolling_pages(pages: int) -> list[int]:
    state = await checkpoint.last({"page": 0})
    while state["page"] < pages:
        await read(state["page"])
        await publish(state["page"])
        if state["page"] == 3:
            await pause.input("go on?", str)
        state = {"page": state["page"] + 1}
        await checkpoint.save(state)
    return [state["page"], budgets.spent().tokens]


@pytest.mark.req("R27")
async def test_effects_since_the_checkpoint_are_listed_and_nothing_is_changed(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "job", rolling_pages, 5)
        task = await app.tasks.handle("job")
        with pytest.raises(InvalidInput, match=r"2 effects since checkpoint 2: publish\(2\), publish\(3\)"):
            await task.rollback("2")
        with pytest.raises(InvalidInput, match="2 effects"):
            await task.resume(checkpoint="2")
        record = await task.record()
        assert record.status == "paused" and record.state == {"page": 3}


@pytest.mark.req("R27", "R70")
async def test_undone_first_they_are_done_anew_and_what_was_before_is_not(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "job", rolling_pages, 5)
        task = await app.tasks.handle("job")
        await task.rollback("2", undo=True)
        assert world.undone == ["page 3", "page 2"]
        assert task.status == "running" and task.state == {"page": 2}
        await until_paused(app, "job", rolling_pages, 5)
        assert ran == [0, 1, 2, 3, 2, 3]
        assert world.done == ["page 0", "page 1", "page 2", "page 3", "page 2", "page 3"]
        assert len(set(world.keys)) == 6
        await task.answer("yes")
        assert await app.run("job", rolling_pages, 5) == [5, 70]  # what was spent was spent
        assert [one.state for one in await app.effects.of("job")].count("undone") == 2


async def test_kept_they_stay_done_and_are_done_again_because_somebody_said_so(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "job", rolling_pages, 5)
        task = await app.tasks.handle("job")
        await task.rollback("3", undo=False)
        await until_paused(app, "job", rolling_pages, 5)
        assert world.undone == [] and world.done[-2:] == ["page 3", "page 3"] and len(world.done) == 5


async def test_where_counts_the_calls_of_the_function_after_going_back_too(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "job", rolling_pages, 5)
        task = await app.tasks.handle("job")
        await task.rollback("2", undo=True)
        found, calls = await where(app.tasks, "job"), await calls_of(app, "job")
        assert (found.done, found.last_path) == (len(calls), "checkpoint.save#2")


async def test_without_effects_since_then_nobody_has_to_say_anything(quick_url: str) -> None:
    @durable
    async def quiet(pages: int) -> int:
        state = await checkpoint.last({"page": 0})
        while state["page"] < pages:
            await read(state["page"])
            state = {"page": state["page"] + 1}
            await checkpoint.save(state)
        await pause.input("done?", str)
        return int(state["page"])

    async with Perdure(quick_url) as app:
        await until_paused(app, "job", quiet, 3)
        task = await app.tasks.handle("job")
        await task.rollback("1")
        await until_paused(app, "job", quiet, 3)
        await task.answer("yes")
        assert await app.run("job", quiet, 3) == 3 and ran == [0, 1, 2, 1, 2]


async def test_from_the_shell(tmp_path: Path, capsys: Any) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    async with Perdure(url) as app:
        await until_paused(app, "job", rolling_pages, 5)
    assert main(["rollback", "job", "2", "--store", url]) == 2
    assert "--undo" in capsys.readouterr().err
    assert main(["rollback", "job", "2", "--undo", "--store", url]) == 0
    assert world.undone == ["page 3", "page 2"]
    assert main(["rollback", "job", "1", "--keep", "--store", url]) == 0


# ── checkpoints that an earlier rollback left behind ─────────────────────────────────────────────


@pytest.mark.req("R27")
async def test_what_led_to_a_checkpoint_that_was_left_behind_stays_done(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "job", rolling_pages, 5)
        task = await app.tasks.handle("job")
        await task.rollback("1", undo=False)
        await until_paused(app, "job", rolling_pages, 5)
        before = list(world.done)
        with pytest.raises(InvalidInput, match=r"3 effects since checkpoint 3: publish\(1\), publish\(2\)"):
            await task.rollback("3")
        dry = await task.rollback("3", dry_run=True)
        assert dry is not None and [one.call for one in dry.kept] == [f"publish({page})" for page in (1, 2, 3)]
        await task.rollback("3", undo=True)
        assert world.undone == ["page 3", "page 2", "page 1"]
        ran.clear()
        await until_paused(app, "job", rolling_pages, 5)
        assert ran == [3] and world.done == [*before, "page 3"]
        await task.answer("yes")
        assert await app.run("job", rolling_pages, 5) == [5, 90]  # four pages, three pages, pages 3 and 4


@pytest.mark.req("R27", "R70")
async def test_an_effect_before_it_that_was_undone_is_done_anew_and_only_that(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "job", rolling_pages, 5)
        task = await app.tasks.handle("job")
        await task.rollback("2", undo=True)
        assert world.undone == ["page 3", "page 2"]
        await task.rollback("3")
        ran.clear()
        world.done.clear()
        await until_paused(app, "job", rolling_pages, 5)
        assert world.done == ["page 2", "page 3"]
        assert ran == [3]


@pytest.mark.req("R27")
async def test_an_effect_that_was_under_way_at_the_checkpoint_is_listed_whether_or_not_it_is_settled(url: str) -> None:
    appended = asyncio.Event()

    @effect
    async def send(what: str) -> None:
        world.do(what, idempotency_key())
        await appended.wait()
        raise ConnectionError("no answer")

    @step
    async def let_it_end() -> None:
        appended.set()

    @durable(name="an effect beside an append")
    async def beside() -> None:
        async def append() -> None:
            while not world.done:
                await asyncio.sleep(0)
            await state.append("log", "one")
            await let_it_end()

        await asyncio.gather(send("mail"), append())

    async with Perdure(url) as app:
        await until_paused(app, "job", beside)
        task = await app.tasks.handle("job")
        with pytest.raises(InvalidInput, match=r"1 effect since checkpoint 1: send\('mail'\)"):
            await task.rollback("1")
        assert world.done == ["mail"]


@pytest.mark.req("R27")
async def test_an_effect_that_a_live_attempt_begins_during_the_rollback_is_listed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_send, waits, plan = asyncio.Event(), asyncio.Event(), task_rollback.plan_rollback

    @effect
    async def send(what: str) -> None:
        world.do(what, idempotency_key())

    @durable(name="an effect during a rollback")
    async def sender() -> None:
        await checkpoint.save({"sent": 0})
        waits.set()
        await may_send.wait()
        await send("mail")
        await pause.input("go on?", str)

    async def plan_and_let_it_send(*about: Any) -> task_rollback.Plan:
        found = await plan(*about)
        may_send.set()
        await wait_until(lambda: world.done == ["mail"])
        return found

    monkeypatch.setattr(task_rollback, "plan_rollback", plan_and_let_it_send)
    async with Perdure(url) as app:
        running = asyncio.ensure_future(app.run("job", sender))
        await waits.wait()
        task = await app.tasks.handle("job")
        with pytest.raises(InvalidInput, match=r"send\('mail'\)"):
            await task.rollback("1")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert world.done == ["mail"]


# ── checkpoints from before a carry_over ─────────────────────────────────────────────────────────


@durable
async def in_rounds(number: int) -> int:
    await checkpoint.save({"round": number})
    if number == 1:
        await publish(number)
        await carry_over(2)
    if number == 2:
        await carry_over(3)
    await publish(number)
    return await pause.input("go on?", int)


@pytest.mark.req("R27", "R70")
async def test_a_checkpoint_from_before_other_arguments_is_refused_and_nothing_is_changed(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "job", in_rounds, 1)
        task = await app.tasks.handle("job")
        before = await task.record()
        for undo in (None, True, False):
            with pytest.raises(
                InvalidInput, match=r"line 3 .* began with new arguments, and checkpoint 1 is from before"
            ):
                await task.rollback("1", undo=undo)
        with pytest.raises(InvalidInput, match="new arguments"):
            await task.rollback("1", dry_run=True)
        assert (await task.record()).version == before.version
        await task.answer(5)
        assert await app.run("job", in_rounds, 1) == 5
        assert world.done == ["page 1", "page 3"]


async def test_the_state_that_a_round_began_with_can_be_gone_back_to(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await until_paused(app, "job", in_rounds, 1)
        task = await app.tasks.handle("job")
        with pytest.raises(InvalidInput, match=r"1 effect since checkpoint 2: publish\(3\)"):
            await task.rollback("2")
        await task.rollback("2", undo=True)
        assert world.undone == ["page 3"]
        await until_paused(app, "job", in_rounds, 1)
        assert world.done == ["page 1", "page 3", "page 3"]


async def test_not_if_an_effect_followed_it_in_the_round_before(quick_url: str) -> None:
    @durable
    async def two_rounds(number: int) -> int:
        if number == 1:
            await checkpoint.save({"round": number})
            await publish(number)
            await carry_over(2)
        return await pause.input("go on?", int)

    async with Perdure(quick_url) as app:
        await until_paused(app, "job", two_rounds, 1)
        task = await app.tasks.handle("job")
        with pytest.raises(InvalidInput, match="new arguments"):
            await task.rollback("1", undo=False)
