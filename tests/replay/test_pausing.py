"""A pausing scope stays suspended; the attempt is unwound when nothing of it runs any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from perdure import pause
from perdure._durable.attempt.unwinding import Paused
from perdure._durable.declare.functions import step
from perdure.errors import InvalidInput
from tests.replay.kit import an_hour, pass_an_hour, play, until_rest
from tests.support.fixtures import emptied_for_each_test

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


@step
async def fetch(what: str) -> str:
    ran.append(what)
    return what


async def test_a_pause_unwinds_the_attempt_and_its_answer_is_found_by_the_next() -> None:
    async def program() -> str:
        first = await fetch("a")
        return first + await pause.input("more?", str)

    paused = await play(program)
    assert isinstance(paused.error, Paused)
    [path] = paused.attempt.unwinding.questions
    answered = await play(program, journal=paused.journal, answers={path: {"value": "!"}})
    assert answered.result() == "a!"
    assert ran == ["a"]


async def test_except_exception_does_not_catch_it() -> None:
    async def program() -> str:
        try:
            return await pause.input("more?", str)
        except Exception:
            return "caught"

    assert isinstance((await play(program)).error, Paused)


@pytest.mark.parametrize("catch", ["bare", "gather"])
async def test_code_that_catches_it_all_the_same_does_not_end_the_task(catch: str) -> None:
    async def program() -> str:
        if catch == "gather":
            await asyncio.gather(pause.input("more?", str), return_exceptions=True)
            return "caught"
        try:
            return await pause.input("more?", str)
        except BaseException:
            return "caught"

    assert isinstance((await play(program)).error, Paused)


async def test_every_call_while_unwinding_raises_it_again() -> None:
    seen: list[str] = []

    async def program() -> str:
        await fetch("recorded")
        try:
            return await pause.input("more?", str)
        finally:
            for call in (lambda: fetch("in finally"), lambda: pause.input("again?", str), lambda: _plain_call()):
                try:
                    await call()
                except BaseException as error:
                    seen.append(type(error).__name__)

    @step
    def plain() -> None:
        ran.append("plain")

    async def _plain_call() -> None:
        plain()

    assert isinstance((await play(program)).error, Paused)
    assert seen == ["Paused"] * 3
    assert ran == ["recorded"]


async def test_a_step_in_another_branch_ends_and_is_recorded_first() -> None:
    go = asyncio.Event()

    @step
    async def long(what: str) -> str:
        ran.append(f"{what} began")
        await go.wait()
        ran.append(f"{what} ended")
        return what

    async def program() -> list[str]:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(pause.input("more?", str))
            working = group.create_task(_work())
        return [asking.result(), working.result()]

    async def _work() -> str:
        return await long("one") + await long("two")

    playing = asyncio.create_task(play(program))
    await until_rest(50)
    assert not playing.done(), "a step is under way"
    go.set()
    paused = await playing
    assert isinstance(paused.error, Paused)
    assert ran == ["one began", "one ended", "two began", "two ended"]
    assert paused.paths == ["/_work#1|long#1", "/_work#1|long#2"]
    [path] = paused.attempt.unwinding.questions
    assert (await play(program, journal=paused.journal, answers={path: {"value": "yes"}})).result() == ["yes", "onetwo"]
    assert len(ran) == 4


async def test_several_pauses_may_be_open_at_once() -> None:
    async def program() -> list[str]:
        return list(await asyncio.gather(pause.input("one?", str), pause.input("two?", str)))

    paused = await play(program)
    assert len(paused.attempt.unwinding.questions) == 2
    one, two = paused.attempt.unwinding.questions
    still = await play(program, journal=paused.journal, answers={two: {"value": "second"}})
    assert isinstance(still.error, Paused) and list(still.attempt.unwinding.questions) == [one]
    done = await play(program, journal=still.journal, answers={one: {"value": "first"}, two: {"value": "second"}})
    assert done.result() == ["first", "second"]


@pytest.mark.parametrize("end", ["returns", "raises"])
async def test_a_function_that_ends_beside_a_pause_has_ended(end: str) -> None:
    async def program() -> str:
        left_behind = asyncio.create_task(pause.input("more?", str))
        await fetch("something")
        if end == "raises":
            raise ValueError("no use")
        return f"{left_behind.done()}"

    played = await play(program)
    if end == "returns":
        assert played.result() == "False"
    else:
        assert isinstance(played.error, ValueError)


async def test_a_branch_that_waits_for_the_paused_one_does_not_hold_it_up() -> None:
    async def program() -> str:
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def consume() -> str:
            await fetch("used")
            return await queue.get()

        consuming = asyncio.create_task(consume())
        queue.put_nowait(await pause.input("more?", str))
        return await consuming

    paused = await play(program)
    assert isinstance(paused.error, Paused)
    [path] = paused.attempt.unwinding.questions
    assert (await play(program, journal=paused.journal, answers={path: {"value": "x"}})).result() == "x"


async def test_a_branch_that_sleeps_is_waited_for_and_goes_on_to_its_next_step() -> None:
    async def program() -> list[str]:
        async def sleeper() -> str:
            await fetch("before")
            await an_hour()
            return await fetch("after")

        return list(await asyncio.gather(pause.input("more?", str), sleeper()))

    playing = asyncio.create_task(play(program))
    await until_rest(50)
    assert not playing.done() and ran == ["before"]
    pass_an_hour()
    paused = await playing
    assert isinstance(paused.error, Paused)
    assert ran == ["before", "after"]


async def test_a_librarys_own_sleeping_task_is_not_waited_for() -> None:
    async def program() -> str:
        async def keep_alive() -> None:
            while True:
                await an_hour()

        asyncio.create_task(keep_alive())  # noqa: RUF006
        return await pause.input("more?", str)

    assert isinstance((await play(program)).error, Paused)


async def test_what_must_be_fenced_before_the_stack_is_unwound_is_told_before() -> None:
    order: list[str] = []

    async def program() -> str:
        from perdure._durable.attempt.scopes import current

        scope = current.get()
        assert scope is not None
        scope.attempt.unwinding.before.append(lambda: order.append("fenced"))
        try:
            return await pause.input("more?", str)
        finally:
            order.append("unwound")

    await play(program)
    assert order == ["fenced", "unwound"]


async def test_a_pause_inside_a_step_is_refused() -> None:
    @step
    async def asks() -> str:
        return await pause.input("more?", str)

    async def program() -> str:
        return await asks()

    error = (await play(program)).error
    assert isinstance(error, InvalidInput) and "inside a step" in error.what


def test_it_is_no_exception() -> None:
    assert not issubclass(Paused, Exception)
    _: Callable[[], BaseException] = Paused
