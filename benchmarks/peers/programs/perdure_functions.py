"""perdure. `chain` and the others take `@step`, and `waited` takes `@effect`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import saver_turns
from kit import STEPS_IN_CROWD, WARM, Clock, LastStep, Place, answer, postgres_durability, sqlite_durability

from perdure import Perdure, durable, effect, step

LOADED_AT = time.time()
last: LastStep


@step
async def small(number: int) -> int:
    return number


@durable(name="peers.steps")
async def steps(many: int) -> int:
    for number in range(many):
        await small(number)
    return many


@effect
async def touch(number: int) -> int:
    return number


@durable(name="peers.effects")
async def effects(many: int) -> int:
    for number in range(many):
        await touch(number)
    return many


@step
async def one_more() -> None:
    await asyncio.to_thread(last.reached)
    if not last.resumes:
        await asyncio.Event().wait()


@durable(name="peers.recorded")
async def recorded(many: int) -> None:
    for number in range(many):
        await small(number)
    await one_more()


def inside(line: Callable[[Perdure, int], Awaitable[float | None]]) -> Callable[[Place], float | None]:
    """A line that is measured in an open app."""

    async def run(place: Place) -> float | None:
        async with Perdure(place.url) as app:
            return await line(app, place.size)

    return lambda place: asyncio.run(run(place))


async def chain(app: Perdure, many: int) -> float:
    await app.run("warm", steps, WARM)
    with Clock() as clock:
        await app.run("chain", steps, many)
    return clock.ms


async def waited(app: Perdure, many: int) -> float:
    await app.run("warm", effects, WARM)
    with Clock() as clock:
        await app.run("waited", effects, many)
    return clock.ms


async def crowd(app: Perdure, many: int) -> float:
    await app.run("warm", steps, WARM)
    with Clock() as clock:
        await asyncio.gather(*(app.run(f"crowd-{number}", steps, STEPS_IN_CROWD) for number in range(many)))
    return clock.rate(many * STEPS_IN_CROWD)


async def worker(app: Perdure, many: int) -> float:
    handles = await asyncio.gather(*(app.start(f"waits-{number}", steps, 1) for number in range(many)))
    with Clock() as clock:
        async with app.worker():
            await asyncio.gather(*(handle.result() for handle in handles))
    return clock.rate(many)


async def size(app: Perdure, many: int) -> None:
    await app.run(f"sized-{time.time_ns()}", steps, many)


async def long(app: Perdure, many: int) -> None:
    await app.run("recorded", recorded, many)


def fill(place: Place) -> None:
    global last
    last = LastStep(resumes=False, loaded_at=LOADED_AT)
    inside(long)(place)


def resume(place: Place) -> None:
    global last
    last = LastStep(resumes=True, loaded_at=LOADED_AT)
    inside(long)(place)


@contextmanager
def saver(place: Place) -> Iterator[Any]:
    from perdure import sync
    from perdure.integrations.langgraph import PerdureSaver

    with sync.Perdure(place.url) as app:
        yield PerdureSaver(app)


def durability(place: Place) -> str:
    """Asked of the connection that writes."""
    from perdure._tasks import store_of

    found: list[str] = []

    async def ask(app: Perdure, _: int) -> None:
        await app.run("written", steps, 1)
        found.append(of_writer(store_of(app.tasks).engine))

    inside(ask)(place)
    return found[0]


def of_writer(engine: Any) -> str:
    if engine.kind == "sqlite":
        return sqlite_durability(lambda name: engine._writer.execute(f"PRAGMA {name}").fetchall()[0][0])
    with closing(engine._connector.connect()) as connection:
        return postgres_durability(lambda name: connection.execute(f"SHOW {name}").fetchone()[0])


LINES = {
    **{line.__name__: inside(line) for line in (chain, waited, crowd, worker, size)},
    **saver_turns.lines_of(saver),
    "fill": fill,
    "resume": resume,
}

if __name__ == "__main__":
    answer(LINES, durability, ["perdure"])
