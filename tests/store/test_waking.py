"""Tasks that wait for a write are woken through the door of their loop, or as any other thread would wake them."""

from __future__ import annotations

import asyncio
import gc
import os
from contextvars import Context, ContextVar
from typing import Any
from weakref import ref

import pytest

from perdure._store import Committer, Write
from perdure._store import loop_waker as doors
from tests.store.watched import Attempt, Watched, durable


class Loop(asyncio.SelectorEventLoop):
    """Counts how often another thread has called it the usual way."""

    calls = 0

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        self.calls += 1
        return super().call_soon_threadsafe(*args, **kwargs)


class Blind(Loop):
    """Looks at no descriptors."""

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        raise NotImplementedError


async def waited_for(attempt: Attempt, first: int, last: int) -> None:
    for position in range(first, last):
        assert await asyncio.wait_for(durable(attempt.entry(position)), 120) == (position,)


needs_doors = pytest.mark.skipif(not hasattr(os, "eventfd"), reason="no eventfd here")


@needs_doors
def test_a_loop_is_woken_the_usual_way_once_and_then_through_its_door(attempt: Attempt) -> None:
    loop = Loop()
    loop.run_until_complete(waited_for(attempt, 0, 5))
    assert loop.calls == 1
    loop.close()


def test_a_task_goes_on_in_its_own_context_also_if_that_is_empty(attempt: Attempt) -> None:
    """What it sets after it has waited is there when it has waited again, and can be taken back."""
    name: ContextVar[str] = ContextVar("name")

    async def main() -> str:
        await durable(attempt.entry(1))
        token = name.set("set after the first")
        await durable(attempt.entry(2))
        found = name.get("forgotten")
        name.reset(token)
        return found

    with asyncio.Runner() as runner:
        assert runner.run(main(), context=Context()) == "set after the first"


@pytest.mark.parametrize("why", ["the system has no counters", "the loop looks at no descriptors"])
def test_without_a_door_a_loop_is_woken_the_usual_way(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    loop = Loop() if "system" in why else Blind()
    monkeypatch.setattr(doors, "_has_counters", "system" not in why)
    loop.run_until_complete(waited_for(attempt, 0, 5))
    assert loop.calls == 5
    loop.close()


def test_who_comes_through_the_door_beside_a_task_that_ends_the_loop_goes_on_when_the_loop_does(
    attempt: Attempt, committer: Committer
) -> None:
    async def interrupted() -> None:
        await attempt.entry(1)
        raise KeyboardInterrupt

    loop = asyncio.new_event_loop()
    loop.run_until_complete(waited_for(attempt, 0, 1))
    tasks = [loop.create_task(interrupted()), loop.create_task(durable(attempt.entry(2)))]
    with committer.stopped():
        loop.run_until_complete(asyncio.sleep(0))
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(tasks[1])
    assert loop.run_until_complete(asyncio.wait_for(tasks[1], 120)) == (2,)
    with pytest.raises(KeyboardInterrupt):
        tasks[0].result()
    loop.close()


@needs_doors
def test_who_comes_while_others_are_woken_does_not_keep_the_loop_from_its_other_work() -> None:
    loop, seen = asyncio.new_event_loop(), []

    class Comer:
        def __init__(self, number: int) -> None:
            self.number = number

        def wake(self) -> None:
            seen.append(f"comer {self.number}")
            if self.number < 3:
                door.let_in([Comer(self.number + 1)])
                loop.call_soon(seen.append, "other work")
            else:
                loop.stop()

    door = doors.Door(loop)
    door.let_in([Comer(1)])
    loop.run_forever()
    assert seen == ["comer 1", "other work", "comer 2", "other work", "comer 3"]
    loop.close()


@needs_doors
def test_a_closed_loop_disturbs_nobody_and_is_let_go_with_its_door(
    attempt: Attempt, committer: Committer, watched: Watched
) -> None:
    left = attempt.entry(1)

    async def leave(left: Write) -> None:
        await waited_for(attempt, 0, 1)
        watched.close_gate()
        waiting = asyncio.ensure_future(durable(left))
        await asyncio.sleep(0)
        waiting.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave(left))
    door = doors.door_of(loop)
    assert door is not None
    fd = door._fd
    del door
    loop.close()
    kept = ref(loop)
    del loop
    watched.open_gate()
    assert committer.submit(attempt.entry(2)).block() == (2,)
    assert left.outcome() == (1,)
    del left
    watched.batches.clear()
    gc.collect()
    assert kept() is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
