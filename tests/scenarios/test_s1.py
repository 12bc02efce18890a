"""S1, the lid closes at step nine: the agent is killed in the middle of everything, and goes on."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._ground.config import find_address
from perdure._runtime import end_keeper
from perdure.demo.agent import Stage
from perdure.demo.play import who_serves
from perdure.demo.stage import Agent, agent_on, rows, set_stage
from perdure.demo.world import World, running_world
from perdure.keeper.process import processes
from perdure.keeper.process.ancestry import is_below
from perdure.types import TaskRecord
from tests.runtime.kit import Place, is_alive, until
from tests.runtime.test_run import Terminal
from tests.support import postgres
from tests.support.proxy import Proxy

SIZE = 5_000_000


@pytest.fixture
def world() -> Iterator[World]:
    with running_world() as found:
        yield found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path / "store" / "perdure.db")
    try:
        yield found
    finally:
        found.clear()


@pytest.fixture
def stage(tmp_path: Path, world: World, postgres_url: str, place: Place) -> Stage:
    return set_stage(tmp_path / "work", place.url, world.address, postgres_url, size=SIZE)


def waits_for_secret(stage: Stage) -> bool:
    async def look() -> bool:
        async with Perdure(stage.store) as app:
            shell = await (await app.runtime(stage.task)).shell("main")
            return await shell.waiting() == "secret"

    return asyncio.run(look())


async def answer(stage: Stage, secret: str) -> None:
    async with Perdure(stage.store) as app:
        shell = await (await app.runtime(stage.task)).shell("main")
        await shell.take()
        await shell.answer(secret)


def check_end(stage: Stage, world: World, result: dict[str, Any], *, said: str = "got:42") -> None:
    assert rows(stage.dsn) == list(range(1, 11))
    assert len(world.requests) == len(world.keys) == 10
    assert world.model_calls == 3
    for what in ("clone", "install"):
        assert (stage.path / f"{what}.count").read_text() == "x", what
    data = stage.big.read_bytes()
    first, rest = data[: SIZE * 2 // 5], data[SIZE * 2 // 5 :]
    assert result["first"] == f"{hashlib.sha256(first).hexdigest()} {len(first)}"
    assert result["rest"] == f"{hashlib.sha256(rest).hexdigest()} {len(rest)}"
    assert result["said"].endswith(said)
    assert result["around"] == f"{stage.path / 'app'} migrate"


def finish(stage: Stage, second: Agent) -> dict[str, Any]:
    """Let the agent come to its end, and answer its prompt."""
    second.until("committed")
    asyncio.run(answer(stage, "open sesame"))
    found: dict[str, Any] = json.loads(second.until("result").removeprefix("result "))
    return found


@pytest.mark.req("R6", "R34", "R59", "R66", "R75", "R79", "R82", "R83")
def test_a_killed_agent_goes_on_with_everything_it_had_open(stage: Stage, world: World) -> None:
    with agent_on(stage, waits=True) as first:
        backend = first.until("the database session").split("backend ")[1]
        inside = first.until("inside transaction")
        first.until("waiting")
        server = who_serves(stage)
        first.kill()
    assert inside.endswith("repeatable read, lock_timeout 7s")
    assert who_serves(stage) == server
    assert rows(stage.dsn) == [], "its transaction is open: nobody else sees what is in it"
    until(lambda: waits_for_secret(stage))

    with agent_on(stage) as second:
        said = second.until("the database session")
        assert said.endswith(f"kept: backend {backend}")
        assert any("dev server is kept" in line for line in second.lines)
        assert second.until("inside transaction") == inside, "the same transaction, with its isolation and settings"
        result = finish(stage, second)
    assert who_serves(stage) == server
    check_end(stage, world, result)
    assert b"open sesame" not in b"".join(
        path.read_bytes() for path in Path(stage.folder).parent.rglob("*") if path.is_file()
    )


@pytest.mark.req("R79", "R82", "R89")
def test_b_a_host_that_died_is_rebuilt_and_nothing_is_called_kept(stage: Stage, world: World, place: Place) -> None:
    with agent_on(stage, waits=True) as first:
        first.until("waiting")
        server = who_serves(stage)
        anchor = place.anchor
        everything = [*below(anchor), anchor]
        first.kill()
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not any(is_alive(pid) for pid in everything))
    assert rows(stage.dsn) == []

    with agent_on(stage) as second:
        second.until("committed")
        result = json.loads(second.until("result").removeprefix("result "))
    said = "\n".join(second.lines)
    assert "the dev server is rebuilt" in said
    assert "the shell is lost" in said
    assert "the database session is rebuilt" in said
    assert "repeatable read, lock_timeout 7s" in said
    assert who_serves(stage) != server
    assert who_serves(stage).split()[2] == "migrate", "its environment is that of its start"
    check_end(stage, world, result, said="lost")


def below(anchor: int) -> list[int]:
    return [pid for pid in processes.all_pids() if pid != anchor and is_below(pid, anchor)]


@pytest.mark.req("R60", "R64")
def test_c_a_statement_that_was_executed_and_not_recorded_is_not_executed_again(stage: Stage, world: World) -> None:
    stage.in_transaction = False
    with agent_on(stage, die_in=7) as first:
        assert list(first.said())
        assert first.end() == -signal.SIGKILL
    assert rows(stage.dsn) == [1, 2, 3, 4, 5, 6, 7]

    with agent_on(stage) as second:
        result = finish(stage, second)
    check_end(stage, world, result)  # the statement waited until the effect ahead of it was on disk


@pytest.mark.req("R98")
def test_d_forty_seconds_without_the_database_leave_the_task_running(
    tmp_path: Path, world: World, postgres_url: str, clock: MovableClock
) -> None:
    with postgres.fresh_database() as store, contextlib.closing(Proxy(store)) as way:
        stage = set_stage(tmp_path / "work", way.url, world.address, postgres_url, size=SIZE)
        try:
            with agent_on(stage, waits=True) as only:
                only.until("waiting")
                way.refuse_next(1_000_000)
                way.cut()
                clock.advance(seconds=40)
                stage.go.touch()
                assert status_of(store, stage.task) == "running"
                way.refuse_next(0)
                result = finish(stage, only)
            assert attempts_of(store, stage.task) == 1
        finally:
            end_keeper(find_address(way.url))
    check_end(stage, world, result)


@pytest.mark.req("R110")
def test_e_a_machine_that_sleeps_goes_on_when_it_wakes(stage: Stage, world: World, clock: MovableClock) -> None:
    with agent_on(stage, waits=True) as only:
        only.until("waiting")
        only.signal(signal.SIGSTOP)
        clock.advance(seconds=30)
        only.signal(signal.SIGCONT)
        stage.go.touch()
        result = finish(stage, only)
    check_end(stage, world, result)
    assert attempts_of(stage.store, stage.task) == 1


@pytest.mark.req("R108", "R79")
def test_so_it_goes_with_the_store_on_postgres(tmp_path: Path, world: World, postgres_url: str) -> None:
    with postgres.fresh_database() as store:
        stage = set_stage(tmp_path / "work", store, world.address, postgres_url, size=SIZE)
        try:
            with agent_on(stage, waits=True) as first:
                backend = first.until("the database session").split("backend ")[1]
                first.until("waiting")
                first.kill()
            with agent_on(stage) as second:
                assert second.until("the database session").endswith(f"kept: backend {backend}")
                result = finish(stage, second)
        finally:
            end_keeper(find_address(store))
    check_end(stage, world, result)


def attempts_of(store: str, task: str) -> int:
    return len(asyncio.run(record_of(store, task)).attempts)


def status_of(store: str, task: str) -> str:
    return asyncio.run(record_of(store, task)).status


async def record_of(store: str, task: str) -> TaskRecord:
    async with Perdure(store) as app:
        record = await app.tasks.get(task)
        assert record is not None
        return record


@pytest.mark.req("R15", "R34", "R83", "R84", "R89", "R96", "R148")
def test_a_shell_is_enough_for_all_of_it(
    stage: Stage, world: World, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORY_WAITS", "yes")
    stage.task = "migrate"  # the durable function's; the command has a task of its own
    file = stage.path / "stage.json"
    file.write_text(json.dumps(asdict(stage)))
    command = ["run", "migrate-prod", "--", sys.executable, "-m", "perdure.demo.agent", str(file)]
    with contextlib.closing(Terminal(place, *command)) as first:
        first.read_until(b"waiting")
        server = who_serves(stage)
        (running,) = [pid for pid in below(place.anchor) if str(file) in command_line(pid)]
        os.kill(running, signal.SIGKILL)
        assert first.process.wait() == 128 + signal.SIGKILL
    until(lambda: waits_for_secret(stage))

    assert "progress: statement 9/10" in perdure(place, "where", "migrate-prod")
    told = json.loads(perdure(place, "--json", "where", "migrate"))
    assert (told["function"], told["last"], told["operation"], told["amount"]) == (
        "migrate", "rest", "statement", "9/10",
    )  # fmt: skip
    units = {unit["name"]: unit for unit in told["units"]}
    assert units["main"]["waiting"] == "secret" and units["web"]["is_alive"]
    plan = json.loads(perdure(place, "--json", "resume", "--plan", "migrate-prod"))
    levels = {unit["name"]: unit["verdict"]["level"] for unit in plan["units"]}
    names = ("service web", "shell main", f"file {stage.big}", "session postgres:main")
    assert levels == {f"migrate: {name}": "kept" for name in names}

    stage.go.touch()
    perdure(place, "resume", "migrate-prod")
    until(lambda: rows(stage.dsn) == list(range(1, 11)))
    with contextlib.closing(Terminal(place, "attach", "migrate", "main")) as person:
        person.read_until(b"password: ")
        os.write(person.master, b"open sesame\n")
        person.read_until(b"got:42")
    until(lambda: status_of(stage.store, "migrate-prod") == "completed")
    record = asyncio.run(record_of(stage.store, "migrate"))
    check_end(stage, world, record.result)
    assert who_serves(stage) == server


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def perdure(place: Place, *args: str) -> str:
    argv = [sys.executable, "-m", "perdure", "--store", place.url, *args]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout
