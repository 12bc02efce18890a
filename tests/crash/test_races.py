"""Several processes at one task, or at one file: one wins, nobody's write is lost, nobody starves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from perdure.errors import LeaseHeld
from tests.support.processes import Link, Nursery, at_the_gun, say, starting_gun
from tests.torture import races
from tests.torture.kills import Home

RACERS = 20


@pytest.mark.req("R6")
def test_of_twenty_processes_that_open_one_id_one_creates_it(home: Home, children: Nursery, folder: Path) -> None:
    gun = folder / "gun"
    with starting_gun(gun):
        racers = [children.start(open_at_the_gun, home, gun, number) for number in range(RACERS)]
        for racer in racers:
            assert racer.heard() == "ready"
    found = [racer.heard() for racer in racers]
    assert sorted(created for created, _, _ in found) == [False] * (RACERS - 1) + [True]
    assert len({uid for _, uid, _ in found}) == 1
    (winner,) = (number for number, (created, _, _) in enumerate(found) if created)
    assert {state["by"] for _, _, state in found} == {winner}


async def open_at_the_gun(link: Link, home: Home, gun: Path, number: int) -> tuple[bool, str, dict[str, int]]:
    app = home.open()
    say(link, "ready")
    at_the_gun(gun)
    task = await app.tasks.open("raced", state={"by": number})
    return task.created, task.uid, task.state


@pytest.mark.req("R14", "R55")
def test_two_writers_with_500_increments_each_make_1000(home: Home, children: Nursery) -> None:
    times = 500 if home.kind == "sqlite" else 100
    writers = [children.start(increment, home, times) for _ in range(2)]
    for writer in writers:
        writer.heard()
    assert children.run(races.count, home) == 2 * times


async def increment(_: Link, home: Home, times: int) -> None:
    app = home.open()
    task = await app.tasks.open("counter", state={"n": 0})
    for _number in range(times):
        while True:
            try:
                async with task.attempt():
                    await task.checkpoint({"n": task.state["n"] + 1})
                break
            except LeaseHeld:
                await asyncio.sleep(0)


@pytest.mark.req("R14", "R55")
def test_four_writers_of_one_file_each_get_their_share(folder: Path) -> None:
    shares = races.four_writers(folder, commits=2000)
    assert min(shares) >= 0.1 * sum(shares), shares


@pytest.mark.req("R14", "R11")
def test_four_writers_of_one_file_are_each_killed_and_lose_nothing(folder: Path) -> None:
    shares = races.four_writers(folder, commits=1000, kills=[10, 20, 30, 40])
    assert sum(shares) >= 1000
