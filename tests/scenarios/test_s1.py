"""S1, the lid closes at step nine: the agent is killed in the middle of everything, and goes on."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure.cli.story.agent import Stage
from perdure.cli.story.play import who_serves
from perdure.cli.story.stage import agent, rows, set_stage
from perdure.cli.story.world import World, running_world
from tests.runtime.kit import Place, until
from tests.support import postgres

SIZE = 5_000_000


@pytest.fixture
def world() -> Iterator[World]:
    with running_world() as found:
        yield found


@pytest.fixture
def database() -> Iterator[str]:
    with postgres.fresh_database() as url:
        yield url


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path / "store" / "perdure.db")
    try:
        yield found
    finally:
        found.clear()


@pytest.fixture
def stage(tmp_path: Path, world: World, database: str, place: Place) -> Stage:
    return set_stage(tmp_path / "work", place.url, world.address, database, size=SIZE)


def waits_for_secret(stage: Stage) -> bool:
    async def look() -> bool:
        async with Perdure(stage.store) as app:
            shell = await (await app.runtime(stage.task)).shell("main")
            return await shell.waiting() == "secret"

    return asyncio.run(look())


async def answer(stage: Stage, secret: str) -> None:
    async with Perdure(stage.store) as app:
        shell = await (await app.runtime(stage.task)).shell("main")
        await shell.answer(secret)


def result_of(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line.removeprefix("result "))
    return found


def check_end(stage: Stage, world: World, result: dict[str, Any]) -> None:
    assert rows(stage.dsn) == list(range(1, 11))
    assert len(world.requests) == len(world.keys) == 10
    assert world.model_calls == 3
    for what in ("clone", "install"):
        assert (stage.path / f"{what}.count").read_text() == "x", what
    data = stage.big.read_bytes()
    first, rest = data[: SIZE * 2 // 5], data[SIZE * 2 // 5 :]
    assert result["first"] == f"{hashlib.sha256(first).hexdigest()} {len(first)}"
    assert result["rest"] == f"{hashlib.sha256(rest).hexdigest()} {len(rest)}"
    assert result["said"].endswith("got:42")


@pytest.mark.req("R6", "R34", "R59", "R66", "R75", "R79", "R82", "R83")
def test_a_killed_agent_goes_on_with_everything_it_had_open(stage: Stage, world: World) -> None:
    with agent(stage, wait_after=9) as first:
        backend = first.until("the database session").split("backend ")[1]
        first.until("statement 9")
        server = who_serves(stage)
        first.kill()
    assert who_serves(stage) == server
    assert rows(stage.dsn) == [], "its transaction is open: nobody else sees what is in it"
    until(lambda: waits_for_secret(stage))

    with agent(stage) as second:
        said = second.until("the database session")
        assert said.endswith(f"kept: backend {backend}")
        assert any("dev server is kept" in line for line in second.lines)
        second.until("committed")
        asyncio.run(answer(stage, "open sesame"))
        result = result_of(second.until("result"))
    assert who_serves(stage) == server
    check_end(stage, world, result)
    assert b"open sesame" not in b"".join(
        path.read_bytes() for path in Path(stage.folder).parent.rglob("*") if path.is_file()
    )
