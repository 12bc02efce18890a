"""The play: the agent works, is killed, works on; and what came back is counted.

Owns the order of what happens and the proof. What is on the stage is in stage.py, what the agent does in agent.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure import Perdure
from perdure.demo.agent import Stage
from perdure.demo.stage import agent_on, rows
from perdure.demo.world import World

PASSWORD = "not written down anywhere"
DIES_AFTER = 9
_ENOUGH_LOOKS = 600


@dataclass(frozen=True)
class Proof:
    """One thing that came back, and how one can tell."""

    what: str
    before: str
    after: str
    is_good: bool


def perform(stage: Stage, world: World, say: Callable[[str, str], None]) -> list[Proof]:
    """All of it; `say` gets a line and what it is: title, agent, note, bad."""
    say("the agent works", "title")
    with agent_on(stage, waits=True) as first:
        for line in first.said():
            if line == "waiting":
                break
            say(line, "agent")
        server, session = who_serves(stage), _line(first.lines, "the database session")
        inside = _line(first.lines, "inside ")
        first.kill()
    say(f"kill -9 {first.pid}: the agent is dead, in the middle of a transaction", "bad")
    middle = len(rows(stage.dsn))
    say(f"the dev server still answers; another connection sees {middle} rows of the migration", "note")
    asyncio.run(_until_asked(stage))
    say("the shell still waits for the password", "note")

    say("the same command again", "title")
    result: dict[str, Any] = {}
    with agent_on(stage) as second:
        for line in second.said():
            if line.startswith("result "):
                result = json.loads(line.removeprefix("result "))
                break
            say(line, "agent")
            if line == "committed":
                asyncio.run(_answer(stage))
                say("a person types the password into the shell that has waited", "note")
    again = _line(second.lines, "the database session")
    return [
        Proof("dev server", server.split()[0], who_serves(stage).split()[0], server == who_serves(stage)),
        Proof("database session", _short(session), _short(again), _who(session) == _who(again)),
        Proof("the open transaction", _inside(inside), _inside(_line(second.lines, "inside ")), inside in second.lines),
        Proof("the migration's rows", f"{middle} to others", _all(stage), rows(stage.dsn) == [*range(1, 11)]),
        Proof("shell at its prompt", "waiting", _safe_end(result["said"]), result["said"].endswith("got:42")),
        *_counted(stage, world),
        _file(stage, result),
    ]


def _counted(stage: Stage, world: World) -> list[Proof]:
    clones, installs = (
        len((stage.path / f"{name}.count").read_text(encoding="utf-8")) for name in ("clone", "install")
    )
    return [
        Proof("clone and install", "once each", f"{clones} and {installs} times", clones == installs == 1),
        Proof("paid model calls", "3", str(world.model_calls), world.model_calls == 3),
        Proof(
            "requests to the service",
            str(DIES_AFTER),
            f"{len(world.requests)}, {len(world.keys)} keys",
            len(world.requests) == len(world.keys) == 10,
        ),
    ]


def _file(stage: Stage, result: dict[str, Any]) -> Proof:
    data = stage.big.read_bytes()
    sizes = [int(result[part].split()[1]) for part in ("first", "rest")]
    parts = [data[: sizes[0]], data[sizes[0] :]]
    good = [hashlib.sha256(part).hexdigest() for part in parts] == [
        result[part].split()[0] for part in ("first", "rest")
    ]
    return Proof("a file, half read", f"{sizes[0]:,} bytes", f"{sum(sizes):,} of {len(data):,}", good)


def who_serves(stage: Stage) -> str:
    """The dev server's answer about itself: its pid and its uuid."""
    with urllib.request.urlopen(f"http://127.0.0.1:{stage.port}/id", timeout=60) as answer:
        return str(answer.read().decode())


def _line(lines: list[str], begin: str) -> str:
    return next(line for line in lines if line.startswith(begin))


def _short(line: str) -> str:
    return line.removeprefix("the database session is ")


def _inside(line: str) -> str:
    return line.removeprefix("inside transaction").strip(": ")


def _safe_end(text: str) -> str:
    return text[-40:]


def _who(line: str) -> str:
    return line.partition(": ")[2]


def _all(stage: Stage) -> str:
    found = rows(stage.dsn)
    return f"{len(found)} rows, each once"


async def _until_asked(stage: Stage) -> None:
    async with Perdure(stage.store) as app:
        shell = await (await app.runtime(stage.task)).shell("main")
        for _ in range(_ENOUGH_LOOKS):
            if await shell.waiting() == "secret":
                return
            await asyncio.sleep(0.05)
    raise RuntimeError("the shell does not wait for its password")


async def _answer(stage: Stage) -> None:
    async with Perdure(stage.store) as app:
        shell = await (await app.runtime(stage.task)).shell("main")
        await shell.take()
        await shell.answer(PASSWORD)


def traces_of_password(folder: Path) -> list[Path]:
    """The files under a folder that hold it."""
    return [path for path in folder.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
