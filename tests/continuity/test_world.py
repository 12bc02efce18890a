"""A worker carries a task on only in the world it was saved in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure import Fingerprint, Perdure, durable, pause, step
from perdure._runtime import Continuity, continuity
from tests.support.waiting import look_again


@pytest.fixture(autouse=True)
def fresh_process() -> Iterator[None]:
    continuity.forget_contexts()
    yield
    continuity.forget_contexts()


@pytest.mark.req("R91", "R93")
async def test_a_task_pauses_when_the_world_has_changed_while_it_waited_and_goes_on_when_it_is_put_right(
    shared_url: str, tmp_path: Path
) -> None:
    ran: list[str] = []
    schema = tmp_path / "schema.sql"
    schema.write_text("one")

    @step(flush=True)
    async def work(what: str) -> str:
        ran.append(what)
        return what

    @durable(name="careful")
    async def careful() -> str:
        await work("before")
        task = await app.tasks.handle("careful-1")
        rt = Continuity(app._store, task.id, task.uid)
        await rt.expect(Fingerprint.file(schema))
        await rt.save()
        await pause.approval("Go on?")
        return await work("after")

    async with Perdure(shared_url) as app:
        handle = await app.start("careful-1", careful)
        async with app.worker():
            await app.tasks.wait_for("careful-1", status="paused")
            schema.write_text("two")
            continuity.forget_contexts()
            await (await handle.task()).approve(by="ada")
            message = await _asked(app)
            assert f"file {schema}" in message and ran == ["before"]
            schema.write_text("one")
            await (await handle.task()).resume()
            assert await handle.result() == "after"
    assert ran == ["before", "after"]


async def _asked(app: Perdure) -> str:
    """What the task asks, as soon as it asks for input."""
    while True:
        record = await app.tasks.get("careful-1")
        assert record is not None and not record.is_finished
        if record.pause is not None and record.pause.reason == "human_input":
            return record.pause.message
        await look_again()
