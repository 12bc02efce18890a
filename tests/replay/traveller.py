"""A durable function whose journal is kept as a fixture: recorded under one Python, replayed under every other.

    python -m tests.replay.traveller        records it anew under the Python that runs it

It uses what differs between Pythons: wait_for (a task of its own before 3.12), as_completed (an object since
3.13), task groups, time-outs, sets of tasks.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from perdure import recorded
from perdure._durable.attempt.calls.nondeterminism import timeout
from perdure._durable.attempt.calls.retry import Retry
from perdure._durable.declare.functions import step
from perdure._durable.declare.versions import patched
from perdure._model import decode_entry, encode_entry
from tests.replay.kit import Journal, play

FIXTURES = Path(__file__).parent / "fixtures"
ran: list[str] = []


@step(raises=[KeyError])
async def fetch(what: str, *, tags: frozenset[str] = frozenset()) -> dict[str, Any]:
    ran.append(what)
    for _ in range(sum(what.encode()) % 5):
        await asyncio.sleep(0)
    if what.startswith("bad"):
        raise KeyError(what)
    return {"what": what, "tags": sorted(tags)}


@step
def think(numbers: list[int]) -> set[int]:
    ran.append("think")
    return set(numbers)


@step(retry=Retry(2, wait=timedelta(0)))
async def flaky(key: str) -> str:
    ran.append(key)
    if ran.count(key) == 1:
        raise ConnectionError(key)
    return key


@step
async def forever(what: str) -> None:
    ran.append(what)
    await asyncio.get_running_loop().create_future()


async def branch(what: str) -> str:
    first = await fetch(what)
    return str(first["what"]) + str((await asyncio.wait_for(fetch(what + "2"), 60))["what"])


async def travel() -> list[Any]:
    told: list[Any] = [(await fetch("start", tags=frozenset("xyz")))["tags"], think([3, 1, 2])]
    told.append(await asyncio.wait_for(branch("waited"), 60))
    for made in asyncio.as_completed([branch(what) for what in ("c1", "c2", "c3")]):
        told.append(await made)
    async with asyncio.TaskGroup() as group:
        tasks = {group.create_task(branch(f"group{n}")) for n in range(5)}
    done, _ = await asyncio.wait(tasks)
    told.append([task.result() for task in done])
    try:
        await asyncio.gather(branch("g1"), fetch("bad one"))
    except KeyError as error:
        told.append(repr(error))
    for limit in (asyncio.timeout(0), timeout(0)):
        try:
            async with limit:
                await forever("too long")
        except TimeoutError:
            told.append("ran out")
    try:
        await asyncio.wait_for(forever("too long as well"), 0.001)
    except TimeoutError:
        told.append("ran out")
    told += [await flaky("flaky"), patched("new way"), recorded.random(), str(recorded.uuid4())]
    return told


def load(path: Path) -> tuple[Journal, list[Any]]:
    entries, result = msgspec.msgpack.decode(path.read_bytes())
    return [(position, decode_entry(data)) for position, data in entries], result


async def record() -> Path:
    played = await play(travel)
    entries = [(position, encode_entry(entry)) for position, entry in played.journal]
    path = FIXTURES / f"journal-python{sys.version_info.major}{sys.version_info.minor}.msgpack"
    path.write_bytes(msgspec.msgpack.encode((entries, [repr(told) for told in played.result()])))
    return path


if __name__ == "__main__":
    print(asyncio.run(record()))
