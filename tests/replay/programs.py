"""Random durable functions, and a world in which they can be crashed after any entry.

A program is a nested list made from a seed: steps that succeed or raise, branches on results, gather,
TaskGroup, create_task, as_completed, wait, queues, locks, threads, cancellations and time-outs. The world ends one
body, timer or thread at a time, always the one that comes first by a fixed order, and only when nothing else can
happen. What follows a state is then a matter of the state alone, so a run that was crashed and resumed must say
and return exactly what an uninterrupted one does.

    run_program(seed)              every crash point of one program; raises AssertionError with the seed
    python -m tests.replay.programs 1000 2000                  a range of seeds
    python -m tests.replay.programs 1000 2000 --loop uvloop    on another kind of loop (tests/support/loops.py)
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any
from unittest import mock
from zlib import crc32

from perdure._durable.attempt import pipeline
from perdure._durable.attempt.calls.nondeterminism import timeout
from perdure._durable.attempt.scopes import current
from perdure._durable.declare.functions import step
from tests.replay.kit import Journal, Played, play
from tests.support import loops

Block = list[Any]


class Clockwork:
    """What a world knows of its loop: whether it is busy, and which timers are set. Its clock stands still."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        loop.time = lambda: 0.0

    def is_busy(self) -> bool:
        return bool(self._loop._ready)

    def timers(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in self._loop._scheduled if not timer.cancelled()]

    def begin(self) -> None:
        """The next attempt: nothing is left of the last one."""


class _Timer(asyncio.TimerHandle):
    def cancel(self) -> None:
        asyncio.Handle.cancel(self)


class HiddenClockwork(Clockwork):
    """The same of uvloop, which shows nothing: calls are counted and timers kept here."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self._call_soon, self._calls = loop.call_soon, 0
        self._timers: list[_Timer] = []
        loop.call_soon, loop.call_later = self._soon, self._later

    def _soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        self._calls += 1
        return self._call_soon(callback, *args, context=context)

    def _later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> _Timer:
        timer = _Timer(delay, callback, args, self._loop, context)
        self._timers.append(timer)
        return timer

    def is_busy(self) -> bool:
        calls, self._calls = self._calls, 0
        return calls > 1  # one is the call of the world that asks

    def timers(self) -> list[asyncio.TimerHandle]:
        self._timers = [timer for timer in self._timers if not timer.cancelled()]
        return list(self._timers)

    def begin(self) -> None:
        self._timers.clear()


class Threads(ThreadPoolExecutor):
    """Work that is given to threads; a thread ends when the world says so."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.under_way: dict[Future[Any], tuple[int, Any]] = {}

    def submit(self, function: Any, /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        what = function.args[1:]  # of the partial that to_thread makes: what it calls, without the context
        self.under_way[future] = (crc32(repr(what[1:]).encode()), function)
        return future

    def end(self, future: Future[Any]) -> None:
        _, function = self.under_way.pop(future)
        if future.set_running_or_notify_cancel():
            future.set_result(function())


class World:
    """Where bodies run and time passes: one thing happens at a time, and what was seen is written down.

    The loop's clock stands still. A time-out has a length of its own, by which the world knows it.
    """

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork, self._threads = clockwork, Threads()
        self.ran: list[str] = []
        self.seen: list[Any] = []
        self._bodies: dict[asyncio.Future[None], int] = {}
        self._lengths: dict[float, int] = {}
        self.is_stuck = False

    async def work(self, what: str) -> None:
        scope = current.get()
        self.ran.append(scope.path if scope is not None else "")
        future = asyncio.get_running_loop().create_future()
        self._bodies[future] = crc32(what.encode())
        try:
            await future
        finally:
            self._bodies.pop(future, None)

    def length(self, what: str) -> float:
        order = crc32(what.encode())
        length = 1_000 + float(order)
        self._lengths[length] = order
        return length

    async def turn(self, playing: asyncio.Task[Any]) -> None:
        """Have things happen for as long as the loop runs."""
        asyncio.get_running_loop().set_default_executor(self._threads)
        clockwork = self._clockwork
        quiet = 0
        while not playing.done():
            await asyncio.sleep(0)
            quiet = 0 if clockwork.is_busy() else quiet + 1
            if quiet < 4:
                continue
            nexts: list[tuple[int, Any]] = [(order, body) for body, order in self._bodies.items()]
            nexts += [(order, thread) for thread, (order, _) in self._threads.under_way.items()]
            for timer in clockwork.timers():
                order = self._order_of(timer.when())
                if order is not None:
                    nexts.append((order, timer))
            if nexts:
                quiet = 0
                self._happen(min(nexts, key=lambda found: found[0])[1])
            elif quiet > 50 and not playing.done():
                self._nothing_happens(playing)

    def _order_of(self, when: float) -> int | None:
        """Of a timer that the program has set; a sleep that goes on after a crash is some seconds shorter."""
        return next((order for length, order in self._lengths.items() if -1 < length - when < 300), None)

    def _nothing_happens(self, playing: asyncio.Task[Any]) -> None:
        timers = self._clockwork.timers()
        if not timers or any(_name(timer) == "_lose_patience" for timer in timers):
            self.is_stuck = True
            playing.cancel()
        else:
            self._happen(min(timers, key=lambda timer: timer.when()))

    def _happen(self, what: Any) -> None:
        if isinstance(what, asyncio.TimerHandle):
            what._run()
            what.cancel()
        elif isinstance(what, Future):
            self._threads.end(what)
        else:
            del self._bodies[what]
            if not what.done():
                what.set_result(None)


def _name(timer: Any) -> str:
    name: str = getattr(timer._callback, "__name__", "")
    return name


world: ContextVar[World] = ContextVar("world")


@step(raises=[KeyError])
async def fetch(label: str, value: int) -> int:
    await world.get().work(f"fetch {label} {value}")
    if value % 7 == 3:
        raise ValueError(label)
    return value * 3 % 101


@step
async def stubborn(label: str, value: int) -> int:
    with suppress(asyncio.CancelledError):
        await world.get().work(f"stubborn {label} {value}")
    return value + 1


@step
async def tidy(label: str, value: int) -> int:
    try:
        await world.get().work(f"tidy {label} {value}")
    finally:
        for _ in range(value % 4):
            await asyncio.sleep(0)
    return value


@step
def think(label: str, value: int) -> int:
    scope = current.get()
    world.get().ran.append(scope.path if scope is not None else "")
    return value ^ 5


class Player:
    """Carries out a program, and says what it sees."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    def see(self, *what: Any) -> None:
        world.get().seen.append(what)

    async def block(self, block: Block, label: str, value: int) -> int:
        for number, (op, *rest) in enumerate(block):
            here = f"{label}.{number}"
            try:
                value = await getattr(self, op)(here, value, *rest)
                self.see(here, op, value)
            except (ValueError, TimeoutError) as error:
                self.see(here, op, type(error).__name__)
                value += 1
            except ExceptionGroup as errors:
                self.see(here, op, sorted(type(error).__name__ for error in errors.exceptions))
                value += 2
        return value

    # ── one line ────────────────────────────────────────────────────────────────────────────────

    async def fetch(self, here: str, value: int) -> int:
        return await fetch(here, value)

    async def stubborn(self, here: str, value: int) -> int:
        return await stubborn(here, value)

    async def think(self, here: str, value: int) -> int:
        return think(here, value)

    async def branch(self, here: str, value: int, one: Block, other: Block) -> int:
        return await self.block(one if value % 2 else other, here, value)

    async def locked(self, here: str, value: int) -> int:
        async with self.lock:
            first = await fetch(here, value)
            return await tidy(here, first)

    # ── several at once ─────────────────────────────────────────────────────────────────────────

    async def gather(self, here: str, value: int, blocks: Sequence[Block]) -> int:
        made = [self.block(block, f"{here}/{n}", value + n) for n, block in enumerate(blocks)]
        return sum(await asyncio.gather(*made))

    async def group(self, here: str, value: int, blocks: Sequence[Block]) -> int:
        async def child(n: int, block: Block) -> int:
            found = await self.block(block, f"{here}/{n}", value + n)
            if found % 5 == 4:
                raise ValueError(here)
            return found

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(child(n, block)) for n, block in enumerate(blocks)]
        return sum(task.result() for task in tasks)

    async def as_completed(self, here: str, value: int, blocks: Sequence[Block]) -> int:
        made = [self.block(block, f"{here}/{n}", value + n) for n, block in enumerate(blocks)]
        for first in asyncio.as_completed(made):
            value = await first * 2 - value
            self.see(here, "completed", value)
            value += await fetch(here, value) if value % 3 == 0 else 0
        return value

    async def wait(self, here: str, value: int, blocks: Sequence[Block]) -> int:
        pending: set[asyncio.Task[int]] = {
            asyncio.create_task(self.block(block, f"{here}/{n}", value + n)) for n, block in enumerate(blocks)
        }
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                value = task.result() * 2 - value
                self.see(here, "done", value)
                value = await tidy(here, value)
        return value

    async def queued(self, here: str, value: int, blocks: Sequence[Block]) -> int:
        queue: asyncio.Queue[int] = asyncio.Queue()

        async def produce(n: int, block: Block) -> None:
            queue.put_nowait(await self.block(block, f"{here}/{n}", value + n))

        tasks = [asyncio.create_task(produce(n, block)) for n, block in enumerate(blocks)]
        for _ in blocks:
            value = value * 2 - await queue.get()
            self.see(here, "from the queue", value)
        await asyncio.gather(*tasks)
        return value

    # ── being stopped ───────────────────────────────────────────────────────────────────────────

    async def cancelled(self, here: str, value: int, block: Block) -> int:
        task = asyncio.create_task(self.block(block, f"{here}/0", value))
        value = await fetch(here, value)
        task.cancel()
        try:
            value += await task
        except asyncio.CancelledError:
            self.see(here, "was cancelled")
        return value

    async def timed(self, here: str, value: int, block: Block) -> int:
        async with asyncio.timeout(world.get().length(here)):
            return await self.block(block, f"{here}/0", value)

    async def waited_for(self, here: str, value: int, block: Block) -> int:
        return await asyncio.wait_for(self.block(block, f"{here}/0", value), world.get().length(here))

    async def run_out(self, here: str, value: int, block: Block) -> int:
        async with timeout(world.get().length(here)):
            return await self.block(block, f"{here}/0", value)

    # ── time that passes ────────────────────────────────────────────────────────────────────────

    async def slept(self, here: str, value: int, block: Block) -> int:
        await asyncio.sleep(world.get().length(here))
        return await self.block(block, f"{here}/0", value)

    async def raced(self, here: str, value: int, block: Block) -> int:
        work = asyncio.create_task(self.block(block, f"{here}/0", value))
        late = asyncio.create_task(asyncio.sleep(world.get().length(here)))
        done, pending = await asyncio.wait({work, late}, return_when=asyncio.FIRST_COMPLETED)
        self.see(here, "came first", work in done, late in done)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        return await fetch(here, value + (work in done))

    async def waited(self, here: str, value: int, block: Block) -> int:
        tasks = [asyncio.create_task(self.block(block, f"{here}/{n}", value + n)) for n in range(3)]
        done, _ = await asyncio.wait(tasks, timeout=world.get().length(here))
        self.see(here, "in time", [task in done for task in tasks])
        value = await fetch(here, value + len(done))
        return value + sum(await asyncio.gather(*tasks))

    async def queue_timed(self, here: str, value: int, block: Block) -> int:
        queue: asyncio.Queue[int] = asyncio.Queue()

        async def produce(n: int) -> None:
            queue.put_nowait(await self.block(block, f"{here}/{n}", value + n))

        tasks = [asyncio.create_task(produce(n)) for n in range(2)]
        for n in range(3):
            try:
                value += await asyncio.wait_for(queue.get(), world.get().length(f"{here} {n}"))
                self.see(here, "got", value)
            except TimeoutError:
                value = await fetch(f"{here} {n}", value + 7)
        await asyncio.gather(*tasks)
        return value

    async def event_timed(self, here: str, value: int, block: Block) -> int:
        event = asyncio.Event()

        async def set_it() -> int:
            found = await self.block(block, f"{here}/0", value)
            event.set()
            return found

        task = asyncio.create_task(set_it())
        try:
            await asyncio.wait_for(event.wait(), world.get().length(here))
        except TimeoutError:
            value += await fetch(here, value)
        return value + await task

    async def shielded(self, here: str, value: int, block: Block) -> int:
        task = asyncio.create_task(self.block(block, f"{here}/0", value))
        try:
            return await asyncio.wait_for(asyncio.shield(task), world.get().length(here))
        except TimeoutError:
            return await fetch(here, value) + await task

    async def beaten(self, here: str, value: int, block: Block) -> int:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            for n in range(5):
                await asyncio.sleep(world.get().length(f"{here} {n}"))
                beats += 1

        beating = asyncio.create_task(beat())
        value = await self.block(block, f"{here}/0", value)
        beating.cancel()
        return await fetch(here, value + beats)

    async def completed_in_time(self, here: str, value: int, block: Block) -> int:
        made = [self.block(block, f"{here}/{n}", value + n) for n in range(2)]
        for first in asyncio.as_completed(made, timeout=world.get().length(here)):
            value = await first * 2 - value
            self.see(here, "completed", value)
        return value

    async def lock_timed(self, here: str, value: int, block: Block) -> int:
        holder = asyncio.create_task(self.locked(f"{here}/0", value))
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(world.get().length(here)), self.lock:
                value = await fetch(here, value)
        except TimeoutError:
            value += 5
        return value + await holder

    async def event_shared(self, here: str, value: int, block: Block) -> int:
        condition, turns = asyncio.Condition(), 0

        async def notify() -> int:
            nonlocal turns
            found = await self.block(block, f"{here}/0", value)
            async with condition:
                turns += 1
                condition.notify_all()
            return found

        async def listen(n: int) -> int:
            try:
                async with asyncio.timeout(world.get().length(f"{here} {n}")), condition:
                    await condition.wait_for(lambda: turns > 0)
            except TimeoutError:
                return await fetch(f"{here} {n}", value)
            return n

        task = asyncio.create_task(notify())
        heard = await asyncio.gather(*(listen(n) for n in range(2)))
        return sum(heard) + await task

    async def limited(self, here: str, value: int, block: Block) -> int:
        limit = asyncio.Semaphore(2)

        async def within(n: int) -> int:
            async with limit:
                await asyncio.sleep(world.get().length(f"{here} {n}"))
                return await self.block(block, f"{here}/{n}", value + n)

        return sum(await asyncio.gather(*(within(n) for n in range(3))))

    # ── threads ─────────────────────────────────────────────────────────────────────────────────

    def in_thread(self, here: str, value: int) -> int:
        return value * 5 % 103

    async def threaded(self, here: str, value: int, block: Block) -> int:
        found = await asyncio.to_thread(self.in_thread, here, value)
        return await self.block(block, f"{here}/0", found)

    async def thread_raced(self, here: str, value: int, block: Block) -> int:
        work = asyncio.create_task(self.block(block, f"{here}/0", value))
        thread = asyncio.create_task(asyncio.to_thread(self.in_thread, here, value))
        done, _ = await asyncio.wait({work, thread}, return_when=asyncio.FIRST_COMPLETED)
        self.see(here, "came first", work in done, thread in done)
        found = await fetch(here, value + (work in done))
        return found + sum(await asyncio.gather(work, thread))

    async def thread_timed(self, here: str, value: int, block: Block) -> int:
        try:
            value += await asyncio.wait_for(asyncio.to_thread(self.in_thread, here, value), world.get().length(here))
        except TimeoutError:
            value = await fetch(here, value)
        return await self.block(block, f"{here}/0", value)


async def program(block: Block) -> int:
    return await Player().block(block, "", 1)


# ── making them ──────────────────────────────────────────────────────────────────────────────────

_LEAVES = ("fetch", "fetch", "fetch", "think", "locked")
_FORKS = ("gather", "group", "as_completed", "wait", "queued")
_STOPS = ("cancelled", "timed", "waited_for", "run_out")
_TIMES = (
    "slept", "raced", "waited", "queue_timed", "event_timed", "shielded", "beaten", "completed_in_time", "lock_timed",
    "event_shared", "limited", "threaded", "thread_raced", "thread_timed",
)  # fmt: skip


def make_program(seed: int) -> Block:
    chance = random.Random(seed)

    def block(depth: int, leaves: tuple[str, ...] = _LEAVES) -> Block:
        return [op(depth, leaves) for _ in range(chance.randint(1, 3 if depth else 4))]

    def op(depth: int, leaves: tuple[str, ...]) -> Any:
        kind = chance.random()
        if depth >= 3 or kind < 0.45:
            return (chance.choice(leaves),)
        if kind < 0.55:
            return ("branch", block(depth + 1), block(depth + 1))
        if kind < 0.75:
            return (chance.choice(_FORKS), [block(depth + 1) for _ in range(chance.randint(2, 3))])
        if kind < 0.93:
            return (chance.choice(_TIMES), block(depth + 1))
        stop = chance.choice(_STOPS)
        return (stop, block(depth + 1, (*_LEAVES, "stubborn") if stop == "cancelled" else _LEAVES))

    return block(0)


# ── crashing them ────────────────────────────────────────────────────────────────────────────────


async def _play(block: Block, journal: Journal, clockwork: Clockwork) -> tuple[Played, World]:
    clockwork.begin()
    here = World(clockwork)
    token = world.set(here)
    try:
        playing = asyncio.create_task(play(program, block, journal=journal))
        await here.turn(playing)
        return await playing, here
    finally:
        world.reset(token)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:  # of branches that never made a call
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def _ended(played: Played) -> Any:
    return repr(played.error) if played.error is not None else played.value


async def crash_everywhere(seed: int, *, most: int = 12) -> int:
    """Crash one program after each of its entries (`most` of them, spread out); how many crashes that were.

    Each time the program is replayed twice: as far as it had come, to its end, and then once more as a whole.
    """
    loop = asyncio.get_running_loop()
    with _standing_still_at_times(random.Random(seed)) if seed % 2 else nullcontext():
        return await _crash_everywhere(seed, loop, most)


@contextmanager
def _standing_still_at_times(chance: random.Random) -> Iterator[None]:
    """As if the machine slept before some steps: an attempt then looks whether it still has its lease."""

    def has_slept(_: pipeline.Pipeline) -> bool:
        return chance.random() < 0.3

    with (
        mock.patch.object(pipeline, "OLDEST_SECONDS", -1.0),  # so each step asks
        mock.patch.object(pipeline.Pipeline, "was_suspended", has_slept),
    ):
        yield


async def _crash_everywhere(seed: int, loop: asyncio.AbstractEventLoop, most: int) -> int:
    clockwork = Clockwork(loop) if isinstance(loop, asyncio.BaseEventLoop) else HiddenClockwork(loop)
    block = make_program(seed)
    whole, before = await _play(block, [], clockwork)
    journal = whole.journal
    every = max(1, len(journal) // most)
    crashes = 0
    for count in range(0, len(journal) + 1, every):
        where = f"seed {seed}, crashed after {count} of {len(journal)} entries"
        crashed, after = await _play(block, journal[:count], clockwork)
        _compare(where, whole, before, crashed, after)
        _ran_nothing_again(where, journal[:count], after)
        where = f"{where}, and replayed once more"
        second, last = await _play(block, crashed.journal, clockwork)
        _compare(where, whole, before, second, last)
        assert second.journal == crashed.journal, f"{where}: it recorded something"
        _ran_nothing_again(where, crashed.journal, last)
        crashes += 1
    return crashes


def _compare(where: str, whole: Played, before: World, crashed: Played, after: World) -> None:
    assert not after.is_stuck, f"{where}: it waits for something that never comes"
    assert after.seen == before.seen, f"{where}: it saw something else"
    assert _ended(crashed) == _ended(whole), f"{where}: it ended otherwise"


def _ran_nothing_again(where: str, journal: Journal, after: World) -> None:
    again = {entry.path for _, entry in journal if entry.kind == "result"} & set(after.ran)
    assert not again, f"{where}: {again} ran again"


def run_program(seed: int, kind: str = loops.PLAIN) -> int:
    return loops.run(kind, crash_everywhere(seed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.replay.programs")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--loop", choices=loops.KINDS, default=loops.PLAIN)
    options = parser.parse_args()
    crashes = sum(run_program(seed, options.loop) for seed in range(options.first, options.last))
    print(f"{options.last - options.first} programs, {crashes} crashes, two replays each, none diverged")
