"""S3, six pause types and a deploy, without its REST parts: every pause, with everything killed at each of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure.errors import Conflict, InvalidInput, NotFound
from perdure.types import TaskRecord
from tests.scenarios import s3
from tests.support.processes import Nursery
from tests.support.waiting import look_again


async def paused(app: Perdure, id: str, reason: str, message: str) -> TaskRecord:
    """The record, when the task waits for this and nobody has it any more."""
    async with asyncio.timeout(120):
        while True:
            record = await app.tasks.get(id)
            assert record is not None and record.status in ("running", "paused"), record
            if record.pause and (record.pause.reason, record.pause.message) == (reason, message):
                assert not [one for one in record.attempts if one.ended_at is None]
                return record
            await look_again()


async def written(path: Path) -> str:
    async with asyncio.timeout(120):
        while not path.exists() or not path.read_text():
            await look_again()
    return path.read_text()


@pytest.mark.req("R28", "R31", "R32", "R33", "R41", "R42", "R43", "R45", "R46", "R47", "R48", "R49", "R69", "R94")
async def test_a_task_goes_through_every_pause_while_everything_is_killed_and_redeployed(
    shared_url: str, clock: MovableClock, tmp_path: Path, children: Nursery
) -> None:
    fleet = s3.Fleet(children, shared_url, clock)
    with s3.world_at(clock) as world:
        async with Perdure(shared_url) as app:
            fleet.start()
            handle = await app.start("journey", s3.journey, str(tmp_path), world.address)
            task = await handle.task()

            await paused(app, "journey", "human_approval", "Shall we go?")
            fleet.kill()
            await task.approve(by="ada", comment="go")
            with pytest.raises(Conflict):
                await task.approve(by="bob")
            fleet.start()

            await paused(app, "journey", "human_input", "How many?")
            fleet.kill()
            with pytest.raises(InvalidInput):
                await task.answer("abc")
            assert (await task.record()).is_paused
            await task.answer(7)
            fleet.start("new")

            token = await written(tmp_path / "early.token")
            with pytest.raises(NotFound):
                await app.tasks.deliver(f"{token[:-1]}{'a' if token[-1] != 'a' else 'b'}", {})
            assert await app.tasks.deliver(token, {"n": 1})
            assert not await app.tasks.deliver(token, {"n": 2})
            (tmp_path / "early.posted").touch()

            await paused(app, "journey", "external_dependency", "a webhook")
            fleet.kill()
            token = await written(tmp_path / "token")
            assert await app.tasks.deliver(token, {"n": 3})
            fleet.start("new")

            record = await paused(app, "journey", "external_dependency", f"{world.address}/ci")
            assert record.pause and record.pause.next_look_at and record.pause.payload["url"] == f"{world.address}/ci"
            fleet.kill()
            world.state = "green"
            clock.advance(seconds=11)
            fleet.start("new")

            record = await paused(app, "journey", "scheduled_wait", "3 s to pass")
            fleet.kill()
            clock.advance(seconds=60)  # the machine sleeps over the timer
            fleet.start("new")

            record = await paused(app, "journey", "rate_limit", "the api to take requests again")
            fleet.kill()
            clock.advance(seconds=1)
            fleet.start("new")
            assert (await task.record()).is_paused and len(world.calls) == 1
            clock.advance(seconds=2)

            record = await paused(app, "journey", "external_dependency", "task b to end")
            assert record.pause and record.pause.payload["task"] == "b"
            fleet.kill()
            fleet.have_b_completed()
            fleet.start("new")

            async with asyncio.timeout(120):
                result = await handle.result()
            assert result == ["go", 7, {"n": 1}, {"n": 3}, {"state": "green", "job": 812}, {"b": "is done"}]
            events = Counter(event.kind for event in await app.tasks.events("journey"))
            ended = {kind: events[kind] for kind in ("approved", "answered", "called back", "checked", "due")}
            assert ended == {"approved": 1, "answered": 1, "called back": 2, "checked": 1, "due": 4}
            # A yield may be answered before its attempt has come to rest: then it never counts as paused.
            assert events["paused"] in (7, 8)
            assert events["attempt started"] == 9, "each was resumed by one of three"
    begun = ["begin", "approved by ada", "7 of them", "early webhook", "webhook", "green", "waited", "called"]
    assert (tmp_path / "notes").read_text().splitlines() == [*begun, "after b", "yielded", "the new step"]
    assert len(world.calls) == 2 and world.calls[1] >= world.calls[0] + 2_000


@pytest.mark.req("R35", "R69")
async def test_an_approval_left_alone_takes_its_default_and_a_renamed_step_is_named(
    shared_url: str, clock: MovableClock, tmp_path: Path, children: Nursery
) -> None:
    fleet = s3.Fleet(children, shared_url, clock)
    async with Perdure(shared_url) as app:
        fleet.start()
        alone = await app.start("alone", s3.left_alone)
        await app.start("journey", s3.journey, str(tmp_path), "http://127.0.0.1:9")
        await paused(app, "alone", "human_approval", "Anybody?")
        await paused(app, "journey", "human_approval", "Shall we go?")
        clock.advance(seconds=3)
        async with asyncio.timeout(120):
            assert await alone.result() == "rejected, expired: True"
        fleet.kill()
        fleet.start("renamed")
        task = await app.tasks.handle("journey")
        await task.approve(by="ada")
        async with asyncio.timeout(120):
            while (record := await task.record()).pause is None or "diverged" not in record.pause.details:
                await look_again()
        assert "begin_otherwise" in record.pause.message and "begin(" in record.pause.message
    assert (tmp_path / "notes").read_text().splitlines() == ["begin"], "nothing ran"
