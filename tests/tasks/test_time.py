"""What a task's Config says of time: how long it may take, and how often its state is saved unasked."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure.errors import TimedOut
from perdure.sync import Perdure as BlockingPerdure
from perdure.types import Config
from tests.support.waiting import look_again

HOUR = timedelta(hours=1)


@pytest.mark.req("R10")
async def test_a_task_that_takes_too_long_fails_at_its_next_write(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={"n": 0}, config=Config(timeout=HOUR))
        await task.checkpoint({"n": 1})
        clock.advance(hours=2)
        with pytest.raises(TimedOut, match="was to end by 2030-01-01T01:00"):
            await task.checkpoint({"n": 2})
        record = await app.tasks.get("job")
        assert record is not None and (record.status, record.state) == ("failed", {"n": 1})
        assert record.error["type"] == "TimedOut"


@pytest.mark.req("R10")
async def test_the_time_runs_whoever_opens_the_task_and_whether_it_is_paused_or_not(
    url: str, clock: MovableClock
) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.create("job", state={}, config=Config(timeout=HOUR))
        await task.pause("later", reason="checkpoint")
        clock.advance(hours=2)
        again = await app.tasks.open("job")
        await again.resume()
        with pytest.raises(TimedOut):
            await again.mark_progress("work", percent=1)
        assert again.status == "failed"


async def test_an_attempt_that_has_taken_too_long_ends_so(quick_clocked: str, clock: MovableClock) -> None:
    async with Perdure(quick_clocked) as app:
        task = await app.tasks.create("job", state={}, config=Config(timeout=HOUR))
        with pytest.raises(TimedOut):
            async with task.attempt():
                clock.advance(hours=2)
        record = await app.tasks.get("job")
        assert record is not None and record.status == "failed"


def test_blocking_code_is_held_to_it_too(quick_clocked: str, clock: MovableClock) -> None:
    with BlockingPerdure(quick_clocked) as app:
        task = app.tasks.create("job", state={}, config=Config(timeout=HOUR, checkpoint_interval=HOUR))
        with pytest.raises(TimedOut), task.attempt():
            clock.advance(hours=2)


@pytest.mark.req("R10", "R21")
async def test_the_state_of_an_attempt_is_saved_every_so_often_while_it_changes(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        config = Config(checkpoint_interval=timedelta(seconds=30))
        task = await app.tasks.create("job", state={"done": []}, config=config)
        async with task.attempt():
            working = task.state
            for number in range(2):
                task.state["done"].append(number)
                while len([cp async for cp in task.checkpoints()]) <= number:
                    clock.advance(seconds=31)
                    await look_again()
                assert task.state is working  # the agent's own object, not a copy
            clock.advance(seconds=31)
            await look_again()
        found = [(cp.cause, cp.data) async for cp in task.checkpoints()]
    assert sorted(found, key=lambda one: len(one[1]["done"])) == [
        ("interval", {"done": [0]}),
        ("interval", {"done": [0, 1]}),
    ]


@pytest.fixture(params=["memory", "sqlite"])
def quick_clocked(request: pytest.FixtureRequest, tmp_path: object) -> str:
    return f"sqlite://{tmp_path}/store/perdure.db" if request.param == "sqlite" else f"memory://{tmp_path}"
