"""S5, another machine, a bad disk, a changed world: the agent that is killed on host A and carried on on host B."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from perdure import Perdure, durable, step, stream
from perdure._ground.clock import moment
from perdure._runtime import Continuity
from perdure.runtime import Fingerprint, Token
from perdure.streams import Prefix, read_stream

WORDS = [f"word-{number}" for number in range(200)]
STOP_AT = 120  # 60 %
KEY = "s5-key:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="

# What this process saw; each host has its own.
generated: list[str] = []
markers: list[Any] = []
thoughts: list[int] = []
_app: list[Perdure] = []


@step
async def think(number: int) -> int:
    thoughts.append(number)
    return number


async def words(prefix: Prefix) -> AsyncIterator[str]:
    """The model: it says what comes after the prefix. On host A it is killed at 60 %, with nearly all of it kept."""
    markers.append(prefix.marker)
    for number in range(len(prefix.split()), len(WORDS)):
        if number == STOP_AT and "S5_HOST_A" in os.environ:
            await _kept_up_to(number - 2)
            os.kill(os.getpid(), signal.SIGKILL)
        generated.append(WORDS[number])
        yield WORDS[number] + " "


async def _kept_up_to(count: int) -> None:
    while len((await read_stream(_app[0], "s5", "answer")).text.split()) < count:
        pass  # every look is a read of the store


def runtime_here(app: Perdure, uid: str) -> Continuity:
    return Continuity(app._store, "s5", uid)


@durable(name="s5-agent")
async def agent(work: str, database: str) -> str:
    await think(1)
    app = _app[0]
    uid = (await app.tasks.handle("s5")).uid
    rt = runtime_here(app, uid)
    await rt.expect(Fingerprint.sqlite(database))
    if "S5_HOST_A" in os.environ:
        await _surround(rt, Path(work), app)
    await rt.save(label="first")
    rt.variables["saves"] = 2
    await rt.save(label="second")
    await think(2)
    text = "".join([piece async for piece in stream("answer", words)])
    return text.strip()


async def _surround(rt: Continuity, work: Path, app: Perdure) -> None:
    rt.env = {**rt.env, "APP_TOKEN": os.environ["APP_TOKEN"], "MODE": "migrate"}
    rt.context.cwd = work
    rt.variables["saves"] = 1
    rt.workspace(work)
    session = await rt.http("site", "https://site.example")
    session.token = Token("s5-session-token", moment(app._store.clock.now_ms()) + timedelta(seconds=5))


async def host_a(_: Any, url: str, work: str, database: str) -> None:
    os.environ["S5_HOST_A"] = "1"
    async with Perdure(url, key=KEY) as app:
        _app[:] = [app]
        await app.run("s5", agent, work, database)


def now(app: Perdure) -> datetime:
    return datetime.fromtimestamp(app._store.clock.now_ms() / 1000, UTC)


async def host_b(url: str, work: str, database: str) -> dict[str, Any]:
    """Carry the task on, with nothing but its function: what it had around it comes back by itself."""
    async with Perdure(url, key=KEY) as app:
        _app[:] = [app]
        task = await app.tasks.handle("s5")
        if task.is_paused:
            await task.resume()
        result = await app.run("s5", agent, work, database)
        rt = runtime_here(app, task.uid)
        report = await rt.last_report()
        return {
            "result": result,
            "generated": len(generated),
            "thoughts": thoughts,
            "marker": str(markers[0]),
            "report": report.for_model() if report else "",
            "cwd": str(rt.cwd),
            "token": rt.env.get("APP_TOKEN"),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(host_b(*sys.argv[1:]))))
