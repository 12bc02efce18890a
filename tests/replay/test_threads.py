"""Steps and effects in threads that a durable function hands work to: recorded with a scope, or refused; never bare."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from perdure import Perdure, durable, effect, step
from perdure._durable.attempt.scopes import current
from perdure.errors import InvalidInput
from perdure.recorded import bind
from tests.replay.kit import play
from tests.support.fixtures import emptied_for_each_test

RAN: list[str] = []


@step
def look_up(what: str) -> str:
    RAN.append(what)
    return what.upper()


@effect
def send(what: str) -> str:
    RAN.append(what)
    return f"sent {what}"


def both(what: str) -> list[str]:
    return [look_up(what), send(what)]


_nothing_ran = emptied_for_each_test(RAN)


async def in_executor() -> list[Any]:
    loop = asyncio.get_running_loop()
    return await asyncio.gather(*(loop.run_in_executor(None, both, what) for what in "abc"))


async def in_a_pool() -> list[Any]:
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(both, what) for what in "abc"]
        return [await asyncio.wrap_future(future) for future in futures]


async def by_map() -> list[Any]:
    with ThreadPoolExecutor(3) as pool:
        return await asyncio.to_thread(lambda: list(pool.map(bind(both), "abc")))


async def to_thread() -> list[Any]:
    return await asyncio.gather(*(asyncio.to_thread(both, what) for what in "abc"))


async def nested() -> list[Any]:
    def outer(what: str) -> list[str]:
        with ThreadPoolExecutor(1) as inner:
            return inner.submit(both, what).result()

    with ThreadPoolExecutor(3) as pool:
        return [await asyncio.wrap_future(future) for future in [pool.submit(outer, what) for what in "abc"]]


@durable
def plain() -> list[Any]:
    """A plain durable function, which has a thread of its own already."""
    with ThreadPoolExecutor(3) as pool:
        return [future.result() for future in [pool.submit(both, what) for what in "abc"]]


@pytest.mark.parametrize(
    "program", [in_executor, in_a_pool, by_map, to_thread, nested, plain], ids=lambda one: one.__name__
)
async def test_what_threads_call_is_recorded_under_the_order_it_was_given_in(program: Any) -> None:
    expected = [["A", "sent a"], ["B", "sent b"], ["C", "sent c"]]
    played = await play(program)
    assert played.result() == expected
    results = [(entry.path, entry.value) for _, entry in played.journal if entry.kind == "result" and entry.value]
    assert sum("look_up" in path for path, _ in results) == sum("send" in path for path, _ in results) == 3
    assert sorted(RAN) == ["a", "a", "b", "b", "c", "c"]
    RAN.clear()
    # What one thread did belongs to its place, however the threads ran: the replay gives it to the same one.
    assert (await play(program, journal=played.journal)).result() == expected
    assert RAN == []


async def test_a_journal_that_ends_between_the_threads_is_gone_on_with() -> None:
    played = await play(in_a_pool)
    for length in range(len(played.journal)):
        RAN.clear()
        journal = played.journal[:length]
        done = [entry.path for _, entry in journal if entry.op == "inline"]
        if any(entry.kind == "intent" for _, entry in journal[-3:]):
            continue  # an effect without an outcome is asked about
        assert (await play(in_a_pool, journal=journal)).result() == played.result()
        assert sum(1 for what in RAN if what) <= 6 - len(done)


async def test_a_thread_of_ones_own_is_refused_without_bind() -> None:
    caught: list[BaseException] = []

    def work() -> None:
        try:
            look_up("x")
        except InvalidInput as error:
            caught.append(error)

    async def main() -> None:
        for target in (work, bind(work)):
            thread = threading.Thread(target=target)
            thread.start()
            await asyncio.to_thread(thread.join)

    played = await play(main)
    assert played.result() is None
    (error,) = caught
    assert "look_up is called in a thread that the durable function" in str(error)
    assert "perdure.recorded.bind" in str(error)
    assert RAN == ["x"]
    assert played.paths == ["/work#1|look_up#1"]


async def test_a_thread_that_outlives_its_function_may_call_steps_for_others() -> None:
    over, found = threading.Event(), [""]

    def work() -> None:
        over.wait(60)
        found[0] = look_up("late")

    thread = threading.Thread(target=work)

    async def main() -> None:
        thread.start()

    await play(main)
    over.set()
    await asyncio.to_thread(thread.join)
    assert found == ["LATE"]


async def test_two_threads_in_one_scope_are_refused() -> None:
    inside, leave = threading.Event(), threading.Event()
    told: list[str] = []

    @step
    def slow() -> None:
        inside.set()
        leave.wait(60)

    async def main() -> None:
        scope = current.get()

        def in_this_scope(what: Any) -> None:
            current.set(scope)
            what()

        first = threading.Thread(target=in_this_scope, args=(slow,))
        first.start()
        await asyncio.to_thread(inside.wait)

        def second() -> None:
            with pytest.raises(InvalidInput, match="two threads in one scope") as caught:
                look_up("x")
            told.append(str(caught.value.do))
            leave.set()

        other = threading.Thread(target=in_this_scope, args=(second,))
        other.start()
        await asyncio.to_thread(other.join)
        await asyncio.to_thread(first.join)

    assert (await play(main)).result() is None
    assert told and "bind" in told[0]
    assert RAN == []


async def test_threads_outside_of_durable_functions_are_left_alone() -> None:
    async def main() -> None:
        await asyncio.to_thread(look_up, "first")

    await play(main)
    with ThreadPoolExecutor(1) as pool:
        assert await asyncio.wrap_future(pool.submit(look_up, "x")) == "X"
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(look_up("y")))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert found == ["Y"]


# ── calls that are forgotten ─────────────────────────────────────────────────────────────────────


@step
async def fetch(what: str) -> str:
    return what


@effect
async def charge(what: str) -> str:
    return what


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("call", [fetch, charge])
async def test_a_step_or_effect_that_is_not_awaited_is_told(call: Any, caplog: pytest.LogCaptureFixture) -> None:
    name = call.__name__

    async def main() -> str:
        call("x")
        return "done"

    async def kept() -> str:
        forgotten = call("x")
        await fetch("y")
        return f"done, {forgotten is None}"

    for program in (main, kept):
        with caplog.at_level(logging.ERROR, "perdure.durable"):
            error = (await play(program)).error
        assert isinstance(error, InvalidInput)
        assert f"{name} was called and never awaited" in str(error) and f"await {name}(…)" in str(error)
        assert f"{name} was called and never awaited in task the-task" in caplog.text


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
async def test_an_error_that_comes_of_it_says_so_too() -> None:
    async def main() -> int:
        return len(fetch("x"))  # type: ignore[arg-type]

    error = (await play(main)).error
    assert isinstance(error, TypeError)
    assert error.__notes__ == ["fetch was called and never awaited"]


async def test_a_durable_function_that_is_called_directly_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    @durable(name="called directly")
    async def direct() -> str:
        return await fetch("x")

    @durable(name="called inside")
    async def inner() -> str:
        return await fetch("y")

    @durable(name="called by app.run")
    async def outer() -> str:
        return await inner()

    with caplog.at_level(logging.WARNING, "perdure.durable"):
        assert [await direct(), await direct()] == ["x", "x"]
        async with Perdure("memory://called-directly") as app:
            assert await app.run("t", outer) == "y"
    (record,) = caplog.records
    assert record.message.startswith("called directly is called without a task: nothing of it is kept")
