"""Steps in steps, plain functions, methods, subroutines, recursion."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta
from typing import Any

import pytest

from perdure import pause
from perdure._durable.attempt.blocking.blocking_calls import waited
from perdure._durable.attempt.calls.retry import Retry
from perdure._durable.attempt.unwinding import Paused
from perdure._durable.declare.durable_decorator import durable
from perdure._durable.declare.functions import SyncDurableFunction, step
from perdure.errors import InvalidInput, StepFailed
from tests.replay.kit import play, play_again


async def test_a_step_in_a_step_is_a_plain_call() -> None:
    @step
    async def inner(n: int) -> int:
        return n + 1

    @step
    def plain(n: int) -> int:
        return n * 2

    @step
    async def outer(n: int) -> int:
        return plain(await inner(n))

    async def program() -> int:
        return await outer(1)

    played = await play(program)
    assert played.result() == 4 and played.paths == ["|outer#1"]


async def test_a_durable_function_called_by_another_is_a_subroutine_in_the_same_scope() -> None:
    @step
    async def work(n: int) -> int:
        return n

    @durable
    async def inner(n: int) -> int:
        return await work(n)

    @durable
    async def outer() -> int:
        return await work(1) + await inner(2) + await asyncio.create_task(inner(3))  # type: ignore[arg-type]

    played = await play(outer)
    assert played.result() == 6
    assert played.paths == ["|work#1", "|work#2", "/inner#1|work#1"]
    assert (await play_again(outer, journal=played.journal)).result() == 6
    assert await inner(5) == 5, "without a task it just runs"


async def test_recursion_counts_on_in_its_scope() -> None:
    @step
    async def visit(n: int) -> int:
        return n

    @durable
    async def sum_of(n: int) -> int:
        return 0 if n == 0 else await visit(n) + await sum_of(n - 1)

    played = await play(sum_of, 5)
    assert played.result() == 15 and played.paths == [f"|visit#{n}" for n in range(1, 6)]
    assert (await play_again(sum_of, 5, journal=played.journal)).result() == 15


async def test_steps_and_durable_functions_may_be_methods() -> None:
    class Agent:
        def __init__(self, name: str) -> None:
            self.name = name

        @step
        async def think(self, about: str) -> str:
            return f"{self.name}: {about}"

        @durable
        async def work(self, about: str) -> str:
            return await self.think(about)

    played = await play(Agent("one").work, "x")
    assert played.result() == "one: x"
    assert played.paths == ["|Agent.think#1"]
    # Another instance, as another process has it: the journal is the same.
    assert (await play_again(Agent("two").work, "x", journal=played.journal)).result() == "one: x"


async def test_a_durable_method_runs_as_a_task(open_app: Any) -> None:
    class Agent:
        @durable
        async def work(self, n: int) -> int:
            return n + 1

    async with open_app() as app:
        assert await app.run("t", Agent().work, 1) == 2


# ── plain functions ──────────────────────────────────────────────────────────────────────────────


async def test_a_plain_step_runs_where_it_is_called_and_is_recorded() -> None:
    threads: list[int] = []

    @step
    def plain(n: int) -> int:
        threads.append(threading.get_ident())
        return n + 1

    async def program() -> int:
        return plain(1) + plain(2)

    played = await play(program)
    assert played.result() == 5 and set(threads) == {threading.get_ident()}
    assert (await play_again(program, journal=played.journal)).result() == 5
    assert len(threads) == 2


async def test_a_plain_step_that_holds_up_the_loop_is_named_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure._durable.attempt.attempt.SLOW_SECONDS", 0.0)

    @step
    def slow(n: int) -> int:
        return n

    async def program() -> None:
        slow(1)
        slow(2)

    with caplog.at_level(logging.WARNING, "perdure.durable"):
        await play(program)
    assert [record.getMessage().split(";")[1] for record in caplog.records] == [" make it async"]
    assert "the step slow held the event loop" in caplog.text


async def test_a_plain_durable_function_has_a_thread_of_its_own_where_steps_may_block() -> None:
    threads: set[int] = set()

    @step
    def plain(n: int) -> int:
        threads.add(threading.get_ident())
        return n * 2

    @durable
    def work(n: int) -> int:
        return sum(plain(i) for i in range(n))

    assert isinstance(work, SyncDurableFunction)
    played = await play(work, 5)
    assert played.result() == 20 and threading.get_ident() not in threads
    threads.clear()
    assert (await play_again(work, 5, journal=played.journal)).result() == 20
    assert not threads
    resumed = await play(work, 5, journal=played.journal[:3])
    assert resumed.result() == 20 and resumed.paths == played.paths


async def test_a_plain_durable_function_runs_as_a_task(open_disk: Any) -> None:
    @step(flush=True)
    def plain(n: int) -> int:
        return n * 2

    @durable
    def work(n: int) -> int:
        return sum(plain(i) for i in range(n))

    @durable(name="fails")
    def fails() -> int:
        plain(1)
        raise ValueError("no")

    async with open_disk() as app:
        assert await app.run("t", work, 5) == 20
        with pytest.raises(ValueError, match="no"):
            await app.run("f", fails)
        assert (await app.tasks.get("f")).status == "failed"


async def test_a_plain_durable_function_may_have_coroutines_done_on_its_loop() -> None:
    @step
    async def fetch(what: str) -> str:
        return what

    @durable
    def work() -> str:
        return waited(fetch("a")) + waited(fetch("b")) + waited(pause.input("more?", str))

    paused = await play(work)
    assert isinstance(paused.error, Paused)
    assert paused.paths == ["|fetch#1", "|fetch#2"], "in the function's own scope"
    [path] = paused.attempt.unwinding.questions
    assert (await play(work, journal=paused.journal, answers={path: {"value": "c"}})).result() == "abc"


async def test_a_plain_function_that_raises_stop_iteration_ends() -> None:
    @durable
    def work() -> None:
        next(iter(()))

    assert isinstance((await play(work)).error, RuntimeError)


async def test_several_plain_functions_do_not_wait_for_each_other(open_app: Any) -> None:
    together = threading.Barrier(20, timeout=30)

    @durable
    def work(n: int) -> int:
        together.wait()
        return n

    async with open_app() as app:
        found = await asyncio.gather(*(app.run(f"t{n}", work, n) for n in range(20)))
    assert found == list(range(20))


async def test_a_plain_step_with_a_timeout_is_refused_when_it_is_declared() -> None:
    with pytest.raises(InvalidInput, match="nothing can cut it off"):

        @step(timeout=timedelta(seconds=1))
        def plain() -> None: ...


# ── retries and time-outs of a step ──────────────────────────────────────────────────────────────


async def test_a_retried_step_is_one_call_and_how_often_it_was_tried_is_kept() -> None:
    tries: list[int] = []

    @step(retry=Retry(3, wait=timedelta(0)))
    async def flaky(n: int) -> str:
        tries.append(n)
        if len(tries) < 3:
            raise ConnectionError
        return "done"

    async def program() -> str:
        return await flaky(1)

    played = await play(program)
    assert played.result() == "done"
    assert [(entry.kind, entry.op) for _, entry in played.journal] == [("intent", "try")] * 2 + [("result", "step")]

    # Died after the second try: one is left.
    tries[:] = [1, 1]
    resumed = await play(program, journal=played.journal[:2])
    assert resumed.result() == "done" and len(tries) == 3
    tries[:] = []
    given_up = await play(program, journal=played.journal[:2])
    assert isinstance(given_up.error, ConnectionError) and len(tries) == 1


async def test_plain_steps_are_retried_too() -> None:
    tries: list[int] = []

    @step(retry=Retry(2, wait=timedelta(0)))
    def flaky() -> int:
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError
        return len(tries)

    async def program() -> int:
        return flaky()

    assert (await play(program)).result() == 2


async def test_a_step_that_takes_too_long_has_failed_and_was_not_cut() -> None:
    @step(timeout=timedelta(milliseconds=1))
    async def long() -> None:
        await asyncio.get_running_loop().create_future()

    async def program() -> str:
        try:
            await long()
        except TimeoutError:
            return "took too long"
        return "did not"

    played = await play(program)
    assert played.result() == "took too long"
    assert [entry.kind for _, entry in played.journal] == ["result"]
    assert (await play_again(program, journal=played.journal)).result() == "took too long"


async def test_a_function_that_cancels_itself_has_failed(open_app: Any) -> None:
    @durable
    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async with open_app() as app:
        with pytest.raises(StepFailed, match="cancelled by itself"):
            await app.run("t", work)
        assert (await app.tasks.get("t")).status == "failed"
