"""What was cut off and may be repeated is repeated, on record; what is recorded makes no call outside again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from perdure import durable, effect, idempotency_key, step
from tests.durable.kept_kit import World, go_on, kill
from tests.support.processes import nursery
from tests.torture.kills import Home


@step(flush=True)
async def look(folder: str, number: int) -> int:
    world = World(Path(folder))
    world.note(f"{os.getpid()} look {number}")
    world.may_die(f"look {number}")
    return number


@effect(keyed=True)
async def send(folder: str, number: int) -> int:
    world = World(Path(folder))
    world.note(f"{os.getpid()} send {number}")
    world.note(idempotency_key(), "keys")
    world.may_die(f"send {number}")
    return number


@durable
async def rounds(folder: str) -> int:
    total = 0
    for number in range(4):
        total += await look(folder, number) + await send(folder, number)
    return total


async def run_rounds(home: Home, folder: Path) -> int:
    async with home.open() as app:
        return await app.run("rounds", rounds, str(folder))


@pytest.mark.req("R58")
@pytest.mark.parametrize("cut_off", ["look 2", "send 2"])
async def test_an_interrupted_call_that_may_be_repeated_is_repeated_and_that_is_on_record(
    home: Home, tmp_path: Path, cut_off: str
) -> None:
    world = World(tmp_path)
    world.die_at(cut_off)
    with nursery() as children:
        kill(children, run_rounds, home, tmp_path)
        assert go_on(children, run_rounds, home, tmp_path) == 12
    done = [note.partition(" ")[2] for note in world.notes()]
    assert done.count(cut_off) == 2
    async with home.open() as app:
        record: Any = await app.tasks.get("rounds")
        assert [attempt.pid for attempt in record.attempts] == list(dict.fromkeys(_pids(world)))
        assert record.attempts[0].ended not in ("", "completed"), "the attempt that was cut off is on record"
        tries = [effect.tries for effect in await app.effects.of("rounds")]
    # The outcome of the effect before may have been on its way to disk: then it was sent again too, by its key.
    assert tries == [done.count(f"send {number}") for number in range(4)]
    assert len(set(world.notes("keys"))) == 4, "repeated under the same key"


@pytest.mark.req("R61")
async def test_a_replay_makes_no_call_outside_before_the_frontier(home: Home, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.die_at("send 2")
    with nursery() as children:
        kill(children, run_rounds, home, tmp_path)
        go_on(children, run_rounds, home, tmp_path)
    first, second = dict.fromkeys(_pids(world))
    calls = [note.split(" ", 1) for note in world.notes()]
    assert len([what for pid, what in calls if int(pid) == first]) == 6
    assert [what for pid, what in calls if int(pid) == second] == ["send 2", "look 3", "send 3"]


def _pids(world: World) -> list[int]:
    return [int(note.split()[0]) for note in world.notes()]
