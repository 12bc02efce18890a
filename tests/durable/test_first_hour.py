"""What a stranger meets in the first hour: mistakes are named, with what to do, and nothing waits without a word."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import pytest

from perdure import Perdure, durable, effect, idempotency_key, pause, recorded, step
from perdure._durable import where
from perdure.errors import Conflict, InvalidInput, NoTask, NotStorable, ReplayDiverged
from tests.durable.effects_kit import status_of, until_paused, wait_until
from tests.support.fixtures import emptied_for_each_test

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


@durable
async def double(number: int) -> int:
    return number * 2


async def not_durable() -> int:
    return 1


@durable
async def scaled(number: int, *, factor: int) -> int:
    return number * factor


async def test_what_is_no_durable_function_is_named(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput, match="not_durable is not a durable function") as refused:
            await app.run("job", not_durable)  # type: ignore[arg-type]
        assert "@durable" in refused.value.do
        with pytest.raises(InvalidInput, match="is given where the task's id belongs") as swapped:
            await app.run(double, "job")  # type: ignore[arg-type]
        assert "the id comes first" in swapped.value.do
        with pytest.raises(InvalidInput, match="not a durable function"):
            await app.start("job", not_durable)  # type: ignore[arg-type]
        for given in (double(2), 4):
            with pytest.raises(InvalidInput) as called:
                await app.run("job", given)  # type: ignore[arg-type]
            assert "give the function itself" in called.value.do
        with pytest.raises(InvalidInput, match="a partial of double is given where") as part:
            await app.run("job", partial(double, 2))  # type: ignore[arg-type]
        assert 'app.run("my-task", double, …)' in part.value.do
        with pytest.raises(InvalidInput, match="a lambda is not a durable function"):
            await app.run("job", lambda: 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"double\(\): missing a required argument: 'number'"):
            await app.run("job", double)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"scaled\(\): missing a required (keyword-only )?argument: 'factor'"):
            await app.run("job", scaled, 2)  # type: ignore[call-arg]
        assert await app.tasks.get("job") is None
        assert await app.run("job", scaled, 2, factor=3) == 6


class Agent:
    factor = 3

    @classmethod
    @durable
    async def triple(cls, number: int) -> int:
        return cls.factor * number

    @durable
    async def sextuple(self, number: int) -> int:
        return 2 * self.factor * number


async def test_methods_of_a_class_and_of_an_instance_are_durable(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        assert await app.run("of-the-class", Agent.triple, 2) == 6  # type: ignore[arg-type]
        assert await app.run("of-one", Agent().sextuple, 2) == 12
        async with app.worker():
            handle = await app.start("started", Agent.triple, 3)  # type: ignore[arg-type]
            task = await handle.task()
            assert task.id == "started"


async def test_a_result_that_cannot_be_kept_is_named_and_fails_the_task(quick_url: str) -> None:
    @durable
    async def gives() -> Any:
        return {"a": [object()]}

    async with Perdure(quick_url) as app:
        with pytest.raises(NotStorable) as refused:
            await app.run("job", gives)
        assert refused.value.path == f"result of {gives.name}, a[0]" and "failed" in refused.value.kept
        assert await status_of(app, "job") == "failed"


async def test_what_needs_a_task_says_what_it_is() -> None:
    @effect
    async def sends() -> None: ...

    with pytest.raises(NoTask, match="the effect sends was called outside a durable function") as refused:
        await sends()
    assert "sends.plain" in refused.value.do
    with pytest.raises(NoTask, match=r"^pause.approval was called outside") as refused:
        await pause.approval("ok?")
    assert "plain" not in refused.value.do
    with pytest.raises(NoTask, match="outside an effect"):
        idempotency_key()


# ── names ────────────────────────────────────────────────────────────────────────────────────────

_TWO = """
from perdure import durable
@durable(name="one name")
async def first(): ...
@durable(name="one name")
async def second(): ...
"""


def _carry_out(code: str, file: str) -> None:
    exec(compile(code, file, "exec"), {"__name__": "__main__"})


def test_two_functions_of_one_file_under_one_name_are_refused(tmp_path: Any) -> None:
    with pytest.raises(Conflict, match="two durable functions are called 'one name'"):
        _carry_out(_TWO, str(tmp_path / "two.py"))


def test_a_notebooks_cell_that_was_edited_is_the_same_function(tmp_path: Any) -> None:
    for number in range(2):
        code = f"from perdure import durable\n@durable\nasync def of_a_cell(): return {number}"
        _carry_out(code, f"/tmp/ipykernel_0/{number}.py")


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_waits_for_an_uncertain_effect_says_so_and_why(
    quick_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    @effect
    async def charge(cents: int) -> int:
        raise RuntimeError("card declined")

    @durable
    async def pays() -> int:
        return await charge(5)

    async with Perdure(quick_url) as app:
        with caplog.at_level(logging.WARNING, "perdure.durable"):
            work = asyncio.ensure_future(app.run("pay-1", pays))
            await wait_until(lambda: any(record.name == "perdure.durable" for record in caplog.records))
            work.cancel()
        before, said = [record.getMessage() for record in caplog.records]
        assert "charge(5) happened is not known" in before and "in charge: raise RuntimeError" in before
        assert "outcome unknown: charge(5) (RuntimeError: card declined)" in said
        assert "perdure answer pay-1 done|retry|fail" in said


@pytest.mark.parametrize("kind", ["approval", "input", "pause"])
async def test_a_run_that_waits_for_a_person_says_so_and_what_ends_it(
    quick_url: str, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @durable
    async def asks() -> None:
        if kind == "pause":
            begun.set()
            await go.wait()
        await (pause.approval("Ship it?") if kind == "approval" else pause.input("Ship it?", str))

    async with Perdure(quick_url) as app:
        with caplog.at_level(logging.WARNING, "perdure.durable"):
            work = asyncio.ensure_future(app.run("ship-1", asks))
            if kind == "pause":
                await begun.wait()
                await (await app.tasks.handle("ship-1")).pause("Ship it?", reason="human_input")
            await wait_until(lambda: bool(caplog.records))
            work.cancel()
        (said,) = [record.getMessage() for record in caplog.records]
        ways = {"approval": "perdure approve or perdure reject", "input": "perdure answer", "pause": "perdure resume"}
        assert "Ship it?" in said and said.endswith(f"{ways[kind]} ship-1")


@pytest.mark.parametrize("why", ["stopped", "blocked"])
async def test_a_run_that_may_not_begin_says_why(quick_url: str, caplog: pytest.LogCaptureFixture, why: str) -> None:
    async with Perdure(quick_url) as app:
        function = double
        if why == "stopped":
            await app.kill_switch.on("late", why="not yet")
        else:
            function = double.options(depends_on=["early"])
        work = asyncio.ensure_future(app.run("late", function, 2))
        await wait_until(lambda: bool(caplog.records))
        (said,) = [record.getMessage() for record in caplog.records]
        assert ("perdure kill-switch off late" if why == "stopped" else "it depends on early") in said
        if why == "stopped":
            await app.kill_switch.off("late")
        else:
            await (await app.tasks.open("early", state={})).complete({})
        assert await work == 4


async def test_an_effect_that_runs_in_a_live_process_is_under_way_and_not_uncertain(quick_url: str) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @effect
    async def charge(cents: int) -> int:
        begun.set()
        await go.wait()
        raise RuntimeError("card declined")

    @durable
    async def pays() -> int:
        return await charge(5)

    async with Perdure(quick_url) as app:
        work = asyncio.ensure_future(app.run("pay-1", pays))
        await begun.wait()
        found = await where(app.tasks, "pay-1")
        assert ([frame.state for frame in found.frames], found.next) == (["under way"], "it continues where it is")
        go.set()
        await wait_until(lambda: is_paused(app))
        found = await where(app.tasks, "pay-1")
        assert [frame.state for frame in found.frames] == ["uncertain", "waiting"] and found.uncertain == ["charge"]
        work.cancel()


async def is_paused(app: Perdure) -> bool:
    return await status_of(app, "pay-1") == "paused"


@step
async def fetch(what: str) -> str:
    ran.append(what)
    return what


@pytest.mark.req("R69")
async def test_a_task_that_has_diverged_goes_on_when_it_is_run_with_code_that_fits(quick_url: str) -> None:
    words = ["a"]

    @durable
    async def reads() -> str:
        found = await fetch(words[0])
        recorded.now()
        answer = await pause.input("and?", str)
        return found + answer

    async with Perdure(quick_url) as app:
        await until_paused(app, "job", reads)
        await (await app.tasks.handle("job")).answer("!", by="ada")
        words[0] = "b"
        for _ in range(2):  # as often as it is run with code that does not fit, it is told so
            with pytest.raises(ReplayDiverged):
                await app.run("job", reads)
            assert await status_of(app, "job") == "paused"
        words[0] = "a"
        assert await app.run("job", reads) == "a!" and ran == ["a"]
