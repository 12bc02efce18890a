"""A finished task's units end after their grace, by themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._runtime.keeper_client import keeper_control as keeping
from perdure.keeper.core.finished_tasks import EVERY_SECONDS, GRACES
from tests.runtime.kit import Place, is_alive, until
from tests.support.processes import Link, nursery, say


def units(place: Place) -> dict[str, dict[str, Any]]:
    return {told["name"]: told for told in place.ask("units")["units"]}


async def lasting(app: Perdure, task: str, name: str, **options: Any) -> int:
    """A shell of a task that does nothing, and its process."""
    shell = await (await app.runtime(task)).shell(name, ["cat"], **options)
    return shell.record.pid


def ends(pid: int) -> None:
    until(lambda: not is_alive(pid), f"process {pid} lives on")


async def test_units_outlive_their_task_by_their_grace_and_no_longer(clock: MovableClock, place: Place) -> None:
    async with Perdure(place.url) as app:
        for task in ("done", "failed", "going-on"):
            await app.tasks.open(task, state={})
        done, soon = await lasting(app, "done", "shell"), await lasting(app, "done", "soon", limits={"grace": 90})
        failed, going_on = await lasting(app, "failed", "tail"), await lasting(app, "going-on", "other")
        await (await app.tasks.open("done")).complete()
        await (await app.tasks.open("failed")).fail({"message": "no"})

        clock.advance(seconds=EVERY_SECONDS + 31)
        await asyncio.to_thread(ends, soon)
        assert is_alive(done) and is_alive(failed)
        assert units(place)["soon"]["facts"]["why"] == "its task has completed"

        clock.advance(seconds=GRACES["completed"])
        await asyncio.to_thread(ends, done)
        assert is_alive(failed), "a failed task may be resumed"

        clock.advance(seconds=GRACES["failed"])
        await asyncio.to_thread(ends, failed)
        assert is_alive(going_on)


async def test_also_a_keeper_that_was_replaced_knows_where_to_look(clock: MovableClock, place: Place) -> None:
    async with Perdure(place.url) as app:
        await app.tasks.open("done", state={})
        pid = await lasting(app, "done", "shell")
        await (await app.tasks.open("done")).cancel()
    await asyncio.to_thread(place.kill_keeper)
    clock.advance(seconds=EVERY_SECONDS + GRACES["cancelled"])
    await asyncio.to_thread(ends, pid)


async def test_units_of_a_task_that_was_deleted_end_too(clock: MovableClock, place: Place) -> None:
    async with Perdure(place.url) as app:
        task = await app.tasks.open("gone", state={})
        pid = await lasting(app, "gone", "shell")
        await task.complete()
        await task.delete(force=True)
        for _ in range(2):  # missed once, it has its grace from there on
            clock.advance(seconds=EVERY_SECONDS + GRACES["gone"])
            until(lambda: not is_alive(pid) or "task_gone_at" in units(place)["shell"]["facts"])
        await asyncio.to_thread(ends, pid)


async def test_nothing_is_ended_when_the_store_cannot_be_read(clock: MovableClock, place: Place) -> None:
    async with Perdure(place.url) as app:
        task = await app.tasks.open("kept", state={})
        pid = await lasting(app, "kept", "shell")
        await task.complete()
    for file in (path for path in place.home.parent.iterdir() if path.is_file()):
        file.unlink()
    place.home.with_name("perdure.db").write_bytes(b"this is no database" * 400)
    clock.advance(days=2)
    log = place.home / "keeper.log"
    until(lambda: "could not be looked at" in log.read_text(), "nobody asked")
    assert is_alive(pid)


def _memory_agent(link: Link, _: str) -> None:
    async def work() -> None:
        async with Perdure("memory://finished") as app:
            await app.tasks.open("work", state={})
            pid, found = await lasting(app, "work", "shell"), await keeping.status(app._store)
            assert found is not None
            say(link, [pid, found.anchor])
            await asyncio.Event().wait()

    asyncio.run(work())


def test_units_of_a_store_in_memory_end_with_its_process_and_their_keeper_after_them() -> None:
    with nursery() as children:
        child = children.start(_memory_agent, "")
        pid, anchor = child.heard()
        assert is_alive(pid) and is_alive(anchor)
        child.kill()
        ends(pid)
        ends(anchor)


pytestmark = pytest.mark.req("R83")
