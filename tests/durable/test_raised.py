"""What a function and its calls raise, of whatever kind: kept with its cause, and never an effect without an end."""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, Retry, durable, effect, step
from perdure._durable.declare.functions import DurableFunction
from perdure.errors import StepFailed
from perdure.testing import always_replay
from tests.durable.effects_kit import status_of, until_paused
from tests.support.fixtures import emptied_for_each_test

ran: list[str] = []


class Panic(BaseException):
    """As a library written in another language raises it."""


_nothing_ran = emptied_for_each_test(ran)


@step
async def fail(name: str) -> None:
    raise ValueError(f"{name} is wrong")


@step
async def panic() -> None:
    ran.append("panic")
    raise Panic("index out of bounds")


@step
def panic_plainly() -> None:
    ran.append("panic")
    raise Panic("index out of bounds")


@step
async def leave() -> None:
    ran.append("leave")
    raise SystemExit(3)


@effect
async def send_and_leave() -> None:
    ran.append("sent")
    raise SystemExit(3)


@effect
async def send_and_panic() -> str:
    ran.append("sent")
    raise Panic("index out of bounds")


@effect(failed_on=[Panic])
async def panic_before_sending() -> str:
    ran.append("not sent")
    raise Panic("index out of bounds")


@step
async def clean_up() -> None:
    ran.append("clean up")


async def test_a_task_that_failed_in_a_group_says_what_its_members_were(quick_url: str) -> None:
    @durable
    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail("this"))

    async with Perdure(quick_url) as app:
        with pytest.raises(ExceptionGroup):
            await app.run("both", both)
        record = await app.tasks.get("both")
        assert record is not None and record.error["type"] == "ExceptionGroup"
        assert record.error["message"].endswith("ValueError: this is wrong")
        with pytest.raises(ExceptionGroup) as again:
            await app.run("both", both)
        assert [str(member) for member in again.value.exceptions] == ["this is wrong"]


@pytest.mark.parametrize("raising", [panic, panic_plainly])
async def test_a_step_that_raises_what_is_no_exception_has_failed(quick_url: str, raising: Any) -> None:
    @durable
    async def work() -> str:
        try:
            found = raising()
            await found
        except StepFailed as error:
            await clean_up()
            return error.type_name
        return "nothing"

    async with Perdure(quick_url) as app:
        assert await app.run("work", work) == "Panic"
    assert ran == ["panic", "clean up"]


async def test_a_function_that_ends_by_what_is_no_exception_has_failed(quick_url: str) -> None:
    @durable
    async def work() -> None:
        ran.append("work")
        raise Panic("index out of bounds")

    async with Perdure(quick_url) as app:
        handle = await app.start("work", work)
        async with app.worker():
            with pytest.raises(Panic, match="index out of bounds"):
                await handle.result(timeout=timedelta(seconds=120))
        assert await status_of(app, "work") == "failed"
    assert ran == ["work"]


async def test_an_effect_that_raises_what_is_no_exception_is_uncertain(quick_url: str) -> None:
    @durable
    async def work() -> str:
        try:
            return await send_and_panic()
        except BaseException as error:
            return type(error).__name__

    async with Perdure(quick_url) as app:
        await until_paused(app, "work", work)
        (asked,) = await app.effects.list()
        assert asked.why == "Panic: index out of bounds"
        await app.effects.settle("work", "fail", by="me")
        assert await app.run("work", work) == "EffectUncertain"
    assert ran == ["sent"]


async def test_an_effect_that_took_too_long_says_how_long_it_may_take(quick_url: str) -> None:
    @effect(timeout=timedelta(milliseconds=20))
    async def hang() -> None:
        await asyncio.Event().wait()

    @durable
    async def work() -> None:
        await hang()

    async with Perdure(quick_url) as app:
        await until_paused(app, "work", work)
        (asked,) = await app.effects.list()
        assert asked.why == "TimeoutError: it took longer than 0:00:00.020000"


async def test_an_effect_may_declare_that_what_is_no_exception_means_not_done(quick_url: str) -> None:
    @durable
    async def work() -> str:
        try:
            return await panic_before_sending()
        except Panic as error:
            return str(error)

    async with Perdure(quick_url) as app:
        assert await app.run("work", work) == "index out of bounds"
        assert not await app.effects.list()
    assert ran == ["not sent"]


async def interrupted(app: Perdure, function: DurableFunction[[], Any]) -> None:
    with pytest.raises(SystemExit):
        await app.run("work", function)
    record = await app.tasks.get("work")
    assert record is not None and record.attempts[-1].ended == "interrupted: SystemExit"


async def test_code_that_catches_the_end_of_its_process_records_nothing_after_it(quick_url: str) -> None:
    @durable
    async def work() -> str:
        try:
            await leave()
        except SystemExit:
            pass
        finally:
            await clean_up()
        return "done"

    async with Perdure(quick_url) as app:
        await interrupted(app, work)
        await interrupted(app, work)  # it comes to the same place, and has not diverged
    assert ran == ["leave", "leave"]


async def test_an_effect_that_ends_its_process_is_settled_though_the_code_went_on(quick_url: str) -> None:
    @durable
    async def work() -> str:
        try:
            await send_and_leave()
        except SystemExit:
            return "done"
        return "sent"

    async with Perdure(quick_url) as app:
        await interrupted(app, work)
        await until_paused(app, "work", work)
        assert [asked.name for asked in await app.effects.list()] == ["send_and_leave"]
        await app.effects.settle("work", "done", by="me")
        assert await app.run("work", work) == "sent"
    assert ran == ["sent"]


def test_a_retry_has_a_wait_however_often_was_tried() -> None:
    retry = Retry(10_000)
    assert [retry.delay(tries) for tries in (1, 48, 2000)] == [timedelta(seconds=1), retry.cap, retry.cap]


# ── exceptions with an __init__ of their own ─────────────────────────────────────────────────────


class OutOfQuota(Exception):
    def __init__(self, status: int, model: str, *, body: Any = None) -> None:
        self.status, self.model, self.body = status, model, body
        super().__init__(f"{status} from {model}")

    def __reduce__(self) -> Any:
        return type(self), (self.status, self.model), {"body": self.body}


class SaysHowOfAnother(Exception):
    """Made again by a function of its own choice, which no record may call."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        super().__init__(wanted)

    def __reduce__(self) -> Any:
        return os.system, (self.wanted,)


@pytest.mark.parametrize("is_replay", [False, True])
async def test_a_declared_exception_comes_back_by_the_call_it_says_makes_it_again(
    quick_url: str, is_replay: bool
) -> None:
    @step(raises=(OutOfQuota,))
    async def ask() -> None:
        raise OutOfQuota(429, "m", body={"retry": 3})

    @durable
    async def agent() -> list[Any]:
        try:
            await ask()
        except OutOfQuota as error:
            return [error.status, error.model, error.body, str(error)]
        return []

    async with Perdure(quick_url) as app:
        with always_replay() if is_replay else nullcontext():
            assert await app.run("agent", agent) == [429, "m", {"retry": 3}, "429 from m"]


async def test_a_record_never_calls_what_a_reduce_names_but_the_class_itself(quick_url: str, tmp_path: Path) -> None:
    @step(raises=(SaysHowOfAnother,))
    async def ask() -> None:
        raise SaysHowOfAnother(f"touch {tmp_path}/called")

    @durable
    async def agent() -> str:
        try:
            await ask()
        except SaysHowOfAnother as error:
            return error.wanted
        return ""

    async with Perdure(quick_url) as app:
        assert await app.run("agent", agent) == f"touch {tmp_path}/called"
    assert not (tmp_path / "called").exists()


async def test_an_exception_of_pydantic_ai_comes_back_with_its_status(quick_url: str) -> None:
    exceptions = pytest.importorskip("pydantic_ai.exceptions", reason="pydantic-ai is not installed")

    @step(raises=(exceptions.ModelHTTPError,))
    async def ask() -> None:
        raise exceptions.ModelHTTPError(429, "m", {"x": 1})

    @durable
    async def agent() -> list[Any]:
        try:
            await ask()
        except exceptions.ModelHTTPError as error:
            return [error.status_code, error.model_name, error.body, error.message]
        return []

    async with Perdure(quick_url) as app:
        found = await app.run("agent", agent)
    assert found[:3] == [429, "m", {"x": 1}]
    assert "429" in found[3]
