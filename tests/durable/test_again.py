"""A function that failed is tried again: calls that failed are made anew, all others stay done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause, step
from perdure._durable.journal.failed_calls import to_forget
from perdure._ground.clock import MovableClock
from perdure._model import Entry
from perdure.errors import EffectUncertain
from perdure.pause import Rejected
from perdure.types import Config
from tests.durable.effects_kit import wait_until
from tests.durable.kept_kit import World as Folder
from tests.durable.kept_kit import fresh_home, go_on, kill
from tests.support.processes import Nursery
from tests.support.waiting import look_again
from tests.torture.kills import Home

RETRY = Config(on_failure="retry", max_retries=3)


class World:
    """What was run, and how often each of it is still to fail."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.failures: dict[str, int] = {}

    def visit(self, name: str) -> str:
        self.ran.append(name)
        if self.failures.get(name, 0) > 0:
            self.failures[name] -= 1
            raise ValueError(f"{name} failed")
        return name


world = World()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    world.__init__()  # type: ignore[misc]


@step
async def visit(name: str) -> str:
    return world.visit(name)


@effect(failed_on=[ValueError])
async def send(name: str) -> str:
    return world.visit(name)


@durable
async def again_three() -> list[str]:
    return [await visit("a"), await visit("b"), await visit("c")]


@asynccontextmanager
async def hurrying(clock: MovableClock) -> AsyncIterator[None]:
    """Time goes by fast."""

    async def hurry() -> None:
        while True:
            clock.advance(seconds=1)
            await look_again()

    hurrier = asyncio.create_task(hurry())
    try:
        yield
    finally:
        hurrier.cancel()


async def tried(url: str, clock: MovableClock, function: Any, config: Config = RETRY) -> Any:
    async with Perdure(url) as app, hurrying(clock):
        return await app.run("task", function.options(config=config))


@pytest.mark.req("R10")
async def test_a_step_that_fails_twice_passes_the_third_time_and_no_other_is_run_again(
    url: str, clock: MovableClock
) -> None:
    world.failures["b"] = 2
    assert await tried(url, clock, again_three) == ["a", "b", "c"]
    assert world.ran == ["a", "b", "b", "b", "c"]
    async with Perdure(url) as app:
        record = await app.tasks.get("task")
    assert record is not None
    failed = "error: ValueError: b failed"
    assert [attempt.ended for attempt in record.attempts] == [failed, failed, "completed"]


@pytest.mark.req("R10")
async def test_after_so_many_tries_it_fails(quick_url: str, clock: MovableClock) -> None:
    world.failures["b"] = 9
    with pytest.raises(ValueError, match="b failed"):
        await tried(quick_url, clock, again_three)
    assert world.ran == ["a", *["b"] * 4]
    async with Perdure(quick_url) as app:
        record = await app.tasks.get("task")
    assert record is not None and record.status == "failed"
    assert record.attempts[-1].ended == "failed"


async def test_a_function_without_such_a_wish_fails_at_once(quick_url: str) -> None:
    world.failures["b"] = 1
    async with Perdure(quick_url) as app:
        with pytest.raises(ValueError, match="b failed"):
            await app.run("task", again_three.options(config=Config(max_retries=7)))
    assert world.ran == ["a", "b"]


@pytest.mark.req("R10")
async def test_the_next_try_waits_longer_each_time_and_the_task_says_so(url: str, clock: MovableClock) -> None:
    world.failures["b"] = 2
    async with Perdure(url) as app, app.worker():
        await app.start("task", again_three.options(config=RETRY))
        waits = []
        for count in (1, 2):
            await wait_until(lambda count=count: world.ran.count("b") == count)
            record = await app.tasks.wait_for("task", status="paused")
            assert record.pause is not None and record.pause.due_at is not None
            assert record.pause.message == f"try {count} of 4 failed: ValueError: b failed; trying again"
            waits.append((record.pause.due_at - record.pause.since).total_seconds())
            clock.advance(seconds=waits[-1])
        assert waits == [1, 2]
        assert (await app.tasks.wait_for("task")).result == ["a", "b", "c"]


# ── by a person ──────────────────────────────────────────────────────────────────────────────────


async def test_a_task_that_failed_is_tried_again_when_it_is_resumed(url: str) -> None:
    world.failures["b"] = 1
    async with Perdure(url) as app:
        with pytest.raises(ValueError, match="b failed"):
            await app.run("task", again_three)
        task = await app.tasks.open("task")
        await task.resume()
        assert await app.run("task", again_three) == ["a", "b", "c"]
    assert world.ran == ["a", "b", "b", "c"]


async def test_a_failure_of_an_earlier_run_says_that_nothing_was_run_now(url: str) -> None:
    world.failures = {"b": 1}
    async with Perdure(url) as app:
        with pytest.raises(ValueError, match="b failed") as first:
            await app.run("my task", again_three)
        ran = list(world.ran)
        with pytest.raises(ValueError, match="b failed") as again:
            await app.run("my task", again_three)
        with pytest.raises(ValueError, match="b failed") as waited:
            await (await app.handle("my task", again_three)).result()
    assert world.ran == ran
    assert first.value.__notes__[0] == "perdure: task 'my task' has failed; its finished steps are kept"
    for error in (again.value, waited.value):
        assert error.__notes__[0] == "perdure: task 'my task' failed with this earlier; its finished steps are kept"
        assert "`perdure resume 'my task'` begins a new attempt" in error.__notes__[1]


async def test_a_task_that_paused_at_a_failure_is_tried_again_when_it_is_resumed(url: str) -> None:
    world.failures["b"] = 1
    async with Perdure(url) as app:
        with pytest.raises(ValueError, match="b failed"):
            await app.run("task", again_three.options(config=Config(on_failure="pause")))
        await (await app.tasks.open("task")).resume()
        assert await app.run("task", again_three) == ["a", "b", "c"]
    assert world.ran == ["a", "b", "b", "c"]


# ── what is done anew ────────────────────────────────────────────────────────────────────────────


@durable
async def again_at_once() -> list[str]:
    return list(await asyncio.gather(*(visit(name) for name in "abcdef")))


async def test_of_many_at_once_all_that_failed_are_tried_again(quick_url: str, clock: MovableClock) -> None:
    world.failures |= {"b": 1, "c": 1, "e": 1}
    assert await tried(quick_url, clock, again_at_once, Config(on_failure="retry", max_retries=1)) == list("abcdef")
    assert sorted(world.ran) == sorted("abcdef" + "bce")


@step
async def long(name: str) -> str:
    world.ran.append(name)
    if world.ran.count(name) == 1:
        await asyncio.Event().wait()
    return name


@durable
async def again_group() -> list[str]:
    async with asyncio.TaskGroup() as tasks:
        kept = tasks.create_task(visit("a"))
        waiting = tasks.create_task(long("long"))
        failing = tasks.create_task(visit("b"))
    return [kept.result(), waiting.result(), failing.result()]


async def test_what_was_cut_off_by_the_failure_is_done_again(quick_url: str, clock: MovableClock) -> None:
    world.failures["b"] = 1
    assert await tried(quick_url, clock, again_group) == ["a", "long", "b"]
    assert sorted(world.ran) == ["a", "b", "b", "long", "long"]


@durable
async def again_forgiving() -> list[str]:
    try:
        await visit("x")
    except ValueError:
        await visit("instead")
    return [await visit("a"), await visit("x")]


async def test_a_failure_that_the_code_had_dealt_with_stays(quick_url: str, clock: MovableClock) -> None:
    world.failures["x"] = 2
    assert await tried(quick_url, clock, again_forgiving) == ["a", "x"]
    assert world.ran == ["x", "instead", "a", "x", "x"]


@durable
async def again_cleaning() -> str:
    try:
        return await visit("a")
    except ValueError as error:
        await visit("clean up")
        raise RuntimeError("no use") from error


async def test_what_the_code_did_about_the_failure_is_forgotten_with_it(quick_url: str, clock: MovableClock) -> None:
    world.failures["a"] = 1
    assert await tried(quick_url, clock, again_cleaning) == "a"
    assert world.ran == ["a", "clean up", "a"]


@durable
async def again_own_fault() -> str:
    await visit("a")
    return world.visit("own")


async def test_an_error_of_the_function_itself_is_tried_again_too(quick_url: str, clock: MovableClock) -> None:
    world.failures["own"] = 2
    assert await tried(quick_url, clock, again_own_fault) == "own"
    assert world.ran == ["a", "own", "own", "own"]


# ── effects, people ──────────────────────────────────────────────────────────────────────────────


@durable
async def again_sending() -> str:
    await send("first")
    return await send("second")


async def test_an_effect_that_definitely_failed_is_tried_again_and_no_other(url: str, clock: MovableClock) -> None:
    world.failures["second"] = 1
    assert await tried(url, clock, again_sending) == "second"
    assert world.ran == ["first", "second", "second"]
    async with Perdure(url) as app:
        found = {record.name + record.call: record.state for record in await app.effects.of("task")}
    assert set(found.values()) == {"done"} and len(found) == 2


@durable
async def again_apologising() -> str:
    try:
        return await visit("a")
    except ValueError:
        await send("sorry")
        raise


async def test_after_an_effect_that_answered_the_failure_nothing_is_tried_again(
    quick_url: str, clock: MovableClock
) -> None:
    world.failures["a"] = 1
    with pytest.raises(ValueError, match="a failed"):
        await tried(quick_url, clock, again_apologising)
    assert world.ran == ["a", "sorry"]


@effect(on_uncertain="fail")
async def vague() -> None:
    world.visit("vague")


@durable
async def again_uncertain() -> None:
    await vague()


async def test_an_uncertain_effect_is_not_repeated_by_trying_again(quick_url: str, clock: MovableClock) -> None:
    world.failures["vague"] = 1
    with pytest.raises(EffectUncertain):
        await tried(quick_url, clock, again_uncertain)
    assert world.ran == ["vague"]


@durable
async def again_asking() -> None:
    await visit("a")
    await pause.approval("Go on?")


async def test_what_a_person_has_decided_stays_decided(quick_url: str, clock: MovableClock) -> None:
    async with Perdure(quick_url) as app, hurrying(clock):
        running = asyncio.create_task(app.run("task", again_asking.options(config=RETRY)))
        await wait_until(lambda: world.ran == ["a"])
        await app.tasks.wait_for("task", status="paused")
        await (await app.tasks.open("task")).reject(by="ann")
        with pytest.raises(Rejected):
            await running
    assert world.ran == ["a"]


# ── killed in between ────────────────────────────────────────────────────────────────────────────


@step
async def noted(folder: str, name: str) -> None:
    notes = Folder(Path(folder))
    notes.note(name)
    if name == "b" and notes.notes().count("b") < 3:
        raise ValueError("b failed")
    notes.may_die(name)


@durable
async def again_in_folder(folder: str) -> str:
    await noted(folder, "a")
    await noted(folder, "b")
    return "done"


async def carry_through(home: Home, folder: Path) -> Any:
    async with Perdure(home.url, namespace=home.namespace) as app:
        result = await app.run("task", again_in_folder.options(config=RETRY), str(folder))
        record = await app.tasks.get("task")
        return result, sum(attempt.ended.startswith("error") for attempt in record.attempts) if record else 0


@pytest.mark.req("R68")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("place", ["failing.noted", "failing.waiting"])
def test_how_often_it_was_tried_outlives_the_process(
    request: Any, tmp_path: Path, children: Nursery, engine: str, place: str
) -> None:
    home = fresh_home(request, engine, tmp_path)
    kill(children, carry_through, home, tmp_path, at=place)
    assert go_on(children, carry_through, home, tmp_path) == ("done", 2)
    assert Folder(tmp_path).notes() == ["a", "b", "b", "b"]


# ── which entries, purely ────────────────────────────────────────────────────────────────────────


def entry(path: str, *, error: bytes | None = None, op: str = "step", kind: Any = "result", **more: Any) -> Entry:
    return Entry(kind, op, path, b"", b"v" if error is None else None, error, **more)


def numbered(*entries: Entry) -> list[tuple[int, Entry]]:
    return list(enumerate(entries, 1))


@pytest.mark.parametrize(
    "entries, fatal, forgotten",
    [
        ([entry("|a#1"), entry("|b#1", error=b"e")], {b"e"}, [2]),
        ([entry("|a#1"), entry("|b#1", error=b"e")], set(), [2]),
        ([entry("|b#1", error=b"e"), entry("|a#1")], set(), []),
        ([entry("|b#1", kind="intent", op="try"), entry("|b#1", error=b"e")], {b"e"}, [1, 2]),
        ([entry("/x#1|b#1", error=b"e"), entry("/y#1|b#1"), entry("|c#1")], {b"e"}, [1, 3]),
        ([entry("/x#1|b#1", error=b"e"), entry("|c#1", op="effect")], {b"e"}, None),
        ([entry("/x#1|b#1", error=b"e"), entry("/y#1|c#1", op="effect", kind="cut")], {b"e"}, None),
        ([entry("|q#1", error=b"e", op="approval")], {b"e"}, None),
        ([entry("|b#1|inner#1", op="effect"), entry("|b#1", error=b"e")], {b"e"}, [2]),
    ],
)
def test_what_is_forgotten(entries: list[Entry], fatal: set[bytes], forgotten: list[int] | None) -> None:
    assert to_forget(numbered(*entries), fatal) == forgotten
