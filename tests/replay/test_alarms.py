"""Timers and threads wake a durable function where they did before: unchanged code never diverges over time."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from perdure import checkpoint
from perdure._durable.attempt.calls.nondeterminism import is_replaying
from perdure._durable.declare.functions import step
from perdure._replay import TIMERS, WAKING, Cursor
from tests.replay.kit import Journal, play, play_again, until_rest
from tests.support import loops

doze = asyncio.sleep
chance = random.Random(5)
MOMENT = 0.002


@step
async def fetch(what: str) -> str:
    """Takes a moment, longer or shorter each time: who comes first is another matter in each run."""
    await doze(chance.random() * 2 * MOMENT)
    return what


@step
async def note(what: Any) -> Any:
    return what


async def queue_get() -> Any:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def produce() -> None:
        for n in range(3):
            queue.put_nowait(await fetch(str(n)))

    producer = asyncio.create_task(produce())
    seen: list[Any] = []
    for _ in range(6):
        try:
            seen.append(await asyncio.wait_for(queue.get(), MOMENT))
        except TimeoutError:
            seen.append(await note("late"))
    await producer
    return await note(seen)  # what comes after the last entry is not recorded, and may be late


async def event_wait() -> Any:
    event = asyncio.Event()

    async def set_it() -> None:
        await fetch("x")
        event.set()

    setter = asyncio.create_task(set_it())
    try:
        await asyncio.wait_for(event.wait(), MOMENT)
        seen = await note("in time")
    except TimeoutError:
        seen = await note("late")
    await setter
    return seen


async def shielded() -> Any:
    task = asyncio.create_task(fetch("x"))
    try:
        return await note(await asyncio.wait_for(asyncio.shield(task), MOMENT))
    except TimeoutError:
        return [await note("late"), await task]


async def timeout_around_a_lock() -> Any:
    lock = asyncio.Lock()

    async def hold() -> None:
        async with lock:
            await fetch("x")

    holder = asyncio.create_task(hold())
    await doze(0)
    try:
        async with asyncio.timeout(MOMENT), lock:
            seen = await note("had it")
    except TimeoutError:
        seen = await note("late")
    await holder
    return seen


async def wait_with_a_limit() -> Any:
    tasks = [asyncio.create_task(fetch(str(n))) for n in range(4)]
    done, _ = await asyncio.wait(tasks, timeout=MOMENT)
    return [await note([task in done for task in tasks]), *await asyncio.gather(*tasks)]


async def as_completed_with_a_limit() -> Any:
    seen: list[Any] = []
    tasks = [asyncio.create_task(fetch(str(n))) for n in range(4)]
    try:
        for first in asyncio.as_completed(tasks, timeout=MOMENT):
            seen.append(await first)
    except TimeoutError:
        seen.append(await note("late"))
    return await note([seen, *await asyncio.gather(*tasks)])


async def as_completed_beside_a_sleeper() -> Any:
    async def slow(n: int) -> str:
        await doze(chance.random() * 2 * MOMENT)
        return await fetch(f"slow {n}")

    seen = [await first for first in asyncio.as_completed([slow(0), fetch("a"), slow(1), fetch("b")])]
    return await note(seen)


async def first_against_sleep() -> Any:
    seen: list[Any] = []
    for n in range(4):
        work, late = asyncio.create_task(fetch(str(n))), asyncio.create_task(doze(MOMENT))
        done, pending = await asyncio.wait({work, late}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        seen.append(await note([work in done, late in done]))
    return seen


async def first_against_a_thread() -> Any:
    seen: list[Any] = []
    for n in range(4):
        pause = threading.Event()
        thread = asyncio.create_task(asyncio.to_thread(pause.wait, chance.random() * 2 * MOMENT))
        work = asyncio.create_task(fetch(str(n)))
        done, _ = await asyncio.wait({work, thread}, return_when=asyncio.FIRST_COMPLETED)
        seen.append(await note([work in done, thread in done]))
        await asyncio.gather(work, thread)
    return seen


async def first_against_a_pool() -> Any:
    seen: list[Any] = []
    with ThreadPoolExecutor(1) as pool:
        for n in range(4):
            pause = threading.Event()
            thread = asyncio.wrap_future(pool.submit(pause.wait, chance.random() * 2 * MOMENT))
            work = asyncio.create_task(fetch(str(n)))
            done, _ = await asyncio.wait([work, thread], return_when=asyncio.FIRST_COMPLETED)
            seen.append(await note([work in done, thread in done]))
            await asyncio.gather(work, thread)
    return seen


async def heartbeat() -> Any:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await doze(MOMENT / 2)
            beats += 1

    beating = asyncio.create_task(beat())
    seen = [[await fetch(str(n)), await note(beats)] for n in range(4)]
    beating.cancel()
    return seen


async def a_callback_of_its_own() -> Any:
    called: list[str] = []
    asyncio.get_running_loop().call_later(MOMENT, called.append, "called")
    return [[await fetch(str(n)), await note(list(called))] for n in range(4)]


async def limits_in_one_line() -> Any:
    seen: list[Any] = []
    for n in range(5):
        try:
            async with asyncio.timeout(MOMENT):
                seen.append(await fetch(str(n)))
        except TimeoutError:
            seen.append(await note("late"))
    return seen


async def deadline_by_the_loops_clock() -> Any:
    """As libraries do it: they look at the clock again when their timer runs out."""
    loop, seen = asyncio.get_running_loop(), []
    for n in range(3):
        until, woken = loop.time() + MOMENT, asyncio.Event()

        def look(until: float = until, woken: asyncio.Event = woken) -> None:
            woken.set() if loop.time() >= until else loop.call_at(until, look)

        loop.call_at(until, look)
        work = asyncio.create_task(fetch(str(n)))
        await woken.wait()
        seen.append(await note(work.done()))
        await work
    return seen


SHAPES = [
    queue_get, event_wait, shielded, timeout_around_a_lock, wait_with_a_limit, as_completed_with_a_limit,
    as_completed_beside_a_sleeper, first_against_sleep, first_against_a_thread, first_against_a_pool, heartbeat,
    a_callback_of_its_own, limits_in_one_line, deadline_by_the_loops_clock,
]  # fmt: skip


@pytest.mark.req("R67")
@pytest.mark.parametrize("kind", loops.KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_unchanged_code_replays_from_every_entry(shape: Callable[[], Awaitable[Any]], kind: str) -> None:
    loops.skip_unless_here(kind)
    loops.run(kind, _replay_from_every_entry(shape))


async def _replay_from_every_entry(shape: Callable[[], Awaitable[Any]]) -> None:
    for _ in range(4):
        first = await play(shape)
        result = first.result()
        again = await play_again(shape, journal=first.journal)
        assert again.result() == result
        for count in range(len(first.journal)):
            resumed = await play(shape, journal=first.journal[:count])
            assert (await play_again(shape, journal=resumed.journal)).result() == resumed.result()


# ── who sets a timer ─────────────────────────────────────────────────────────────────────────────


def _run_by(module: str) -> Callable[[Any], Any]:
    """asyncio.run, called by code of this module."""
    names: dict[str, Any] = {"__name__": module}
    exec("import asyncio\ndef run(work): return asyncio.run(work)", names)
    found: Callable[[Any], Any] = names["run"]
    return found


@pytest.mark.parametrize("module", ["agent", "perdure.cli.commands.worker"])
def test_a_timer_and_a_thread_are_the_codes_own_whoever_runs_the_loop(module: str) -> None:
    """A task of nothing but asyncio has no frame of the code: under it are those of the program that runs the loop."""

    async def program() -> None:
        await asyncio.create_task(doze(0.0001))
        await asyncio.create_task(asyncio.to_thread(int))

    played = _run_by(module)(play(program))
    assert [entry.op for _, entry in played.journal if entry.op != TIMERS] == ["timer", "thread"]


@pytest.mark.parametrize("kind", loops.KINDS)
def test_a_time_out_has_its_whole_length_after_a_replay_that_did_not_wait(kind: str) -> None:
    loops.skip_unless_here(kind)

    @step
    async def work() -> str:
        await until_rest()
        return "in time"

    async def program(length: float) -> str:
        await doze(length)
        async with asyncio.timeout(1800):
            return await work()

    async def twice() -> None:
        first = await play(program, 0.0001)
        cut = [(position, entry) for position, entry in first.journal if entry.op in WAKING | {TIMERS}]
        assert (await play(program, 3600, journal=cut)).result() == "in time"

    loops.run(kind, twice())


# ── what is waited for ───────────────────────────────────────────────────────────────────────────


def _timers() -> list[Any]:
    loop: Any = asyncio.get_running_loop()
    return [timer for timer in loop._scheduled if not timer.cancelled()]


def _as_of(journal: Journal, seconds_ago: int) -> Journal:
    """The journal, recorded so long ago."""
    from msgspec.structs import replace

    return [(p, replace(entry, at=entry.at - seconds_ago * 1000)) for p, entry in journal]


async def test_a_sleep_that_is_over_is_not_slept_again() -> None:
    async def program() -> list[str]:
        first = await note("before")
        await doze(3600)
        return [first, await note("after")]

    playing = asyncio.create_task(play(program))
    await until_rest()
    (timer,) = _timers()
    timer._run()
    timer.cancel()
    first = await playing
    assert (await play_again(program, journal=first.journal)).result() == ["before", "after"]


@pytest.mark.parametrize("ago, left", [(600, 3000), (7200, 0)])
async def test_of_a_sleep_that_was_cut_off_only_the_rest_is_slept(ago: int, left: int) -> None:
    async def program() -> str:
        await note("before")
        await doze(3600)
        return await note("after")

    playing = asyncio.create_task(play(program))
    await until_rest()
    _timers()[0]._run()
    first = await playing
    before = [(p, e) for p, e in first.journal if e.op in ("step", TIMERS)][:2]
    replaying = asyncio.create_task(play(program, journal=_as_of(before, ago)))
    await until_rest(3)
    loop = asyncio.get_running_loop()
    if left:
        (timer,) = _timers()
        assert abs(timer.when() - loop.time() - left) < 60
        timer._run()
        timer.cancel()
    assert (await replaying).result() == "after"


async def test_of_several_sleeps_that_were_cut_off_at_once_only_the_rest_is_slept() -> None:
    """Also when the process died before the mark was on disk which says that timers are recorded."""

    async def program() -> str:
        await note("before")
        await asyncio.gather(doze(3600), doze(3600))
        return "after"

    playing = asyncio.create_task(play(program))
    await until_rest()
    for timer in _timers():
        timer._run()
    before = [(p, e) for p, e in (await playing).journal if e.op == "step"]
    replaying = asyncio.create_task(play(program, journal=_as_of(before, 600)))
    await until_rest(5)
    loop = asyncio.get_running_loop()
    assert [round((timer.when() - loop.time()) / 60) for timer in _timers()] == [50, 50]
    for timer in _timers():
        timer._run()
    assert (await replaying).result() == "after"


async def test_a_time_out_that_had_not_run_out_gets_its_whole_time_again() -> None:
    started = asyncio.Event()

    @step
    async def work() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    async def program() -> str:
        await note("before")
        try:
            async with asyncio.timeout(3600):
                return await work()
        except TimeoutError:
            return await note("late")

    playing = asyncio.create_task(play(program))
    await started.wait()
    _timers()[0]._run()
    first = await playing
    assert first.result() == "late"
    before = first.journal[:2]
    assert {entry.op for _, entry in before} == {"step", TIMERS}
    started.clear()
    replaying = asyncio.create_task(play(program, journal=_as_of(before, 7200)))
    await started.wait()
    (timer,) = _timers()
    assert timer.when() - asyncio.get_running_loop().time() > 3500
    timer._run()
    assert (await replaying).result() == "late"


async def test_timers_of_steps_are_not_recorded() -> None:
    async def program() -> list[str]:
        return list(await asyncio.gather(fetch("a"), fetch("b")))

    first = await play(program)
    assert not {entry.op for _, entry in first.journal} & {*WAKING, TIMERS}


async def test_timers_keep_their_numbers_after_a_checkpoint() -> None:
    async def program() -> int:
        count = await checkpoint.last(0)
        while count < 4:
            await doze(0.0001)
            count += len(await fetch("x"))
        return count

    first = await play(program)
    assert [e.path for _, e in first.journal if e.op == "timer"] == [f"|~timer#{n}" for n in range(1, 5)]


async def test_a_journal_from_before_timers_were_recorded_goes_on_with_them() -> None:
    """Its own timers go by the dates of its entries; those of later attempts are recorded."""

    async def program() -> Any:
        seen = []
        for n in range(4):
            try:
                async with asyncio.timeout(3600):
                    seen.append(await note(n))
            except TimeoutError:
                seen.append("late")
        return [seen, await heartbeat()]

    first = await play(program)
    old = [(p, entry) for p, entry in first.journal if entry.op not in WAKING | {TIMERS}][:3]
    second = await play(program, journal=old)
    assert {entry.op for _, entry in second.journal} >= {"timer", TIMERS}
    for count in range(3, len(second.journal) + 1):
        resumed = await play(program, journal=second.journal[:count])
        assert (await play_again(program, journal=resumed.journal)).result() == resumed.result()


@pytest.mark.parametrize("is_threaded", [True, False])
@pytest.mark.parametrize("is_first", [True, False])
async def test_what_is_waited_for_in_some_attempts_only_holds_nothing_up(
    is_first: bool, is_threaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code may ask whether it is being replayed: to connect again, or to say something once."""
    monkeypatch.setattr("perdure._durable.attempt.delivery_order.PATIENCE_SECONDS", 1e9)  # nothing waits for that
    monkeypatch.setattr("perdure._durable.attempt.delivery_order._POLL_SECONDS", 0.001)
    monkeypatch.setattr("perdure._durable.attempt.delivery_order._BLOCKED_SECONDS", 0.001)

    async def beat() -> None:
        while True:
            await doze(MOMENT / 2)

    async def program() -> list[Any]:
        beating = asyncio.create_task(beat())
        seen = [await note("one")]
        if is_replaying() is not is_first:
            await (asyncio.to_thread(len, "") if is_threaded else doze(MOMENT))
        seen += [await note("two"), await fetch("three")]
        beating.cancel()
        return seen

    first = await play(program)
    for count in range(1, len(first.journal) + 1):
        resumed = await play(program, journal=first.journal[:count])
        assert resumed.result() == ["one", "two", "three"]


async def test_a_recorded_timer_is_found_without_a_look_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat leaves thousands of them: each look through all would take time by their square."""
    looked = 0

    class Counted(dict[str, int]):
        def items(self) -> Any:
            nonlocal looked
            looked += 1
            return super().items()

        def values(self) -> Any:
            nonlocal looked
            looked += 1
            return super().values()

    class CountedCursor(Cursor):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.timers = Counted(self.timers)

    async def program() -> str:
        async def beat() -> None:
            for _ in range(100):
                await doze(0.00001)

        beating = asyncio.create_task(beat())
        await note("one")
        await beating
        return await note("two")

    first = await play(program)
    monkeypatch.setattr("perdure._durable.attempt.attempt.Cursor", CountedCursor)
    assert (await play_again(program, journal=first.journal)).result() == "two"
    assert looked < 10


async def test_a_limit_that_is_left_while_a_replay_waits_leaves_no_look_behind(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop's own log would tell of an exception in a callback."""
    monkeypatch.setattr("perdure._durable.attempt.delivery_order._POLL_SECONDS", 0.00001)
    doors = [asyncio.Event(), asyncio.Event()]  # nothing of ours

    async def program() -> str:
        async with asyncio.timeout(3600):
            await doors[0].wait()
        found = await note("after")
        await doors[1].wait()
        return found

    doors[0].set(), doors[1].set()
    first = await play(program)
    doors[0].clear(), doors[1].clear()
    replaying = asyncio.create_task(play(program, journal=first.journal))
    for door in doors:
        await until_rest(50)
        door.set()
    assert (await replaying).result() == "after"
    assert not caplog.records


@pytest.mark.req("R67")
async def test_a_thread_that_ends_early_in_a_replay_waits_for_its_place() -> None:
    slow = threading.Event()

    async def program() -> list[Any]:
        thread = asyncio.create_task(asyncio.to_thread(slow.wait, 20))
        work = asyncio.create_task(fetch("x"))
        done, _ = await asyncio.wait({work, thread}, return_when=asyncio.FIRST_COMPLETED)
        seen = await note([work in done, thread in done])
        slow.set()
        await thread
        return [seen, await work]

    first = await play(program)
    assert first.result()[0] == [True, False]
    assert slow.is_set()  # now the thread ends at once
    assert (await play_again(program, journal=first.journal)).result() == first.result()
