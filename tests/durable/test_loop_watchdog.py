"""Plain code that holds up the event loop is named by its line, wherever it stands."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, step
from perdure._durable.attempt.timing import loop_watchdog
from perdure._durable.control import control_watch as wishes
from tests.support import loops

LONGEST = 60  # seconds, after which a test that waits in vain fails


class Blocking:
    """Code that waits for one of its bells holds up its thread until the watchdog has said so."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._bell = threading.Event()

    def bell(self) -> threading.Event:
        self._bell = threading.Event()
        return self._bell

    def hear(self, record: logging.LogRecord) -> bool:
        if "has held the event loop" in record.getMessage():
            self.told.append(record.getMessage())
            self._bell.set()
        return True


@pytest.fixture
def blocking(monkeypatch: pytest.MonkeyPatch) -> Iterator[Blocking]:
    monkeypatch.setenv(loop_watchdog.VARIABLE, "20ms")
    # The thread of a watchdog lives on for a while after its test: it is to see nothing of the next one.
    is_over = threading.Event()
    fresh = loop_watchdog.LoopWatchdog(lambda: () if is_over.is_set() else wishes._watched())
    monkeypatch.setattr(wishes, "_watchdog", fresh)
    found = Blocking()
    loop_watchdog.log.addFilter(found.hear)
    yield found
    loop_watchdog.log.removeFilter(found.hear)
    is_over.set()


def _line_of(function: Callable[..., Any], text: str) -> str:
    import inspect

    lines, first = inspect.getsourcelines(function)
    return f"{Path(__file__)}:{first + next(n for n, line in enumerate(lines) if text in line)}"


@pytest.mark.req("R67")
@pytest.mark.parametrize("kind", loops.KINDS)
def test_a_line_that_blocks_is_named_in_bodies_steps_and_helpers(blocking: Blocking, tmp_path: Path, kind: str) -> None:
    loops.skip_unless_here(kind)

    def helper() -> None:
        blocking.bell().wait(LONGEST)  # in a helper

    @step
    async def work() -> None:
        blocking.bell().wait(LONGEST)  # in a step

    @step
    def plain_work() -> None:
        blocking.bell().wait(LONGEST)  # in a plain step

    async def branch() -> None:
        blocking.bell().wait(LONGEST)  # in a branch

    @durable(name=f"agent on {kind}")
    async def agent() -> None:
        blocking.bell().wait(LONGEST)  # in the body
        helper()
        await work()
        plain_work()
        async with asyncio.TaskGroup() as group:
            group.create_task(branch())

    async def main() -> None:
        async with Perdure(tmp_path / "perdure.db") as app:
            await app.run("blocked", agent)

    loops.run(kind, main())
    wanted = [
        _line_of(test_a_line_that_blocks_is_named_in_bodies_steps_and_helpers, f"# in {place}\n")
        for place in ("the body", "a helper", "a step", "a plain step", "a branch")
    ]
    assert [told.split(" ")[0] for told in blocking.told] == wanted
    assert all("in task 'blocked'" in told for told in blocking.told[:4])
    assert "blocking.bell().wait(LONGEST)  # in the body" in blocking.told[0]


async def test_a_worker_names_it_too(blocking: Blocking, tmp_path: Path) -> None:
    @durable(name="blocked at a worker")
    async def agent() -> str:
        blocking.bell().wait(LONGEST)
        return "done"

    async with Perdure(tmp_path / "perdure.db") as app:
        handle = await app.start("blocked", agent)
        async with app.worker():
            assert await handle.result() == "done"
    assert [told.partition(":")[0] for told in blocking.told] == [__file__]


async def test_a_line_is_named_once(blocking: Blocking, tmp_path: Path) -> None:
    @durable(name="blocked twice")
    async def agent() -> None:
        for _ in range(2):
            looked.append(threading.Event())
            looked[-1].wait(LONGEST)
            await asyncio.sleep(0)

    # The second time nothing is logged: a look at the stack ends the wait.
    looked: list[threading.Event] = []
    tell = loop_watchdog.LoopWatchdog._tell

    def look(self: Any, *found: Any) -> None:
        tell(self, *found)
        looked[-1].set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_watchdog.LoopWatchdog, "_tell", look)
        async with Perdure(tmp_path / "perdure.db") as app:
            await app.run("blocked", agent)
    assert len(looked) == 2
    assert sum("looked[-1].wait(LONGEST)" in told for told in blocking.told) == 1  # others may have been slow, too


async def test_a_loop_that_waits_blocks_nothing(blocking: Blocking, tmp_path: Path) -> None:
    """However long its tasks wait, the loop answers."""
    asked, answers = threading.Event(), 0
    ask = loop_watchdog._ask

    def count(loop: Any) -> Any:
        nonlocal answers
        answers += 1
        if answers == 5:
            asked.set()
        return ask(loop)

    @durable(name="waits")
    async def agent() -> None:
        await asyncio.to_thread(asked.wait, LONGEST)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_watchdog, "_ask", count)
        async with Perdure(tmp_path / "perdure.db") as app:
            await app.run("waits", agent)
    assert asked.is_set() and not blocking.told


@pytest.mark.parametrize("given, seconds", [("", 1.0), ("250ms", 0.25), ("off", None), ("0", None)])
def test_how_long_a_loop_may_stand_still_is_a_variable(given: str, seconds: float | None) -> None:
    assert loop_watchdog.allowed_time({loop_watchdog.VARIABLE: given}) == seconds


async def test_a_length_that_cannot_be_read_fails_no_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv(loop_watchdog.VARIABLE, "soon")
    monkeypatch.setattr(wishes, "_watchdog", loop_watchdog.LoopWatchdog(wishes._watched))

    @durable(name="whatever the variable says")
    async def agent() -> str:
        return "done"

    async with Perdure(tmp_path / "perdure.db") as app:
        assert await app.run("task", agent) == "done"
    assert loop_watchdog.VARIABLE in caplog.text
