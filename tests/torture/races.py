"""Four processes write to one SQLite file at once, and may be killed while they do.

None starves, none loses its lease, and none loses what was acknowledged.
"""

from __future__ import annotations

import mmap
import random
import struct
import threading
from pathlib import Path

from perdure import Perdure
from perdure._ground.bridge import drive
from tests.support.folders import fast_folder
from tests.support.processes import Child, Link, at_the_gun, nursery, say, starting_gun
from tests.torture.checks import check_rows
from tests.torture.kills import Home

WRITERS = 4
SECONDS = 20.0  # of real time for each seed, in torture


def run(seed: int) -> None:
    rng = random.Random(seed)
    with fast_folder() as folder:
        kills = [rng.randrange(1, 300) for _ in range(WRITERS)] if seed % 2 else []
        shares = four_writers(folder, kills=kills, seconds=SECONDS)
    assert min(shares) >= 0.1 * sum(shares), f"somebody starved: {shares}"


def four_writers(
    folder: Path, *, commits: int = 1 << 60, kills: list[int] | None = None, seconds: float | None = None
) -> list[int]:
    """How many commits each writer made, of so many in all (or in so many seconds).

    Each is killed once after the commit `kills` names, and its task carried on by another process.
    """
    home, board, gun = Home(f"sqlite://{folder}/p.db"), Board(folder / "board"), folder / "gun"
    board.goal = commits
    deaths = kills or [0] * WRITERS
    with nursery() as children:
        with starting_gun(gun):
            writers = [
                children.start(write, home, board.path, gun, number, deaths[number]) for number in range(WRITERS)
            ]
            for writer in writers:
                assert writer.heard() == "ready"
        for number in range(WRITERS) if kills else ():
            assert writers[number].heard() == "kill me"
            writers[number].kill()
            writers[number] = children.start(write, home, board.path, gun, number, 0)
            assert writers[number].heard() == "ready"
        if seconds is not None:
            threading.Timer(seconds, board.stop).start()
        for writer in writers:
            writer.heard()
        _check(home, board, writers, times_killed=1 if kills else 0)
    return [board[number] for number in range(WRITERS)]


def write(link: Link, home: Home, board_path: Path, gun: Path, number: int, dies_after: int) -> None:
    """Checkpoint once, and as fast as can be until the goal is reached; one that is to die goes on until it does.

    An error here is a lease lost.
    """
    app, board = home.open(), Board(board_path)
    task = drive(app.tasks.open(f"task-{number}", state={"n": 0}))
    n = task.state["n"]
    say(link, "ready")
    at_the_gun(gun)
    begun = n
    while n == begun or dies_after or board.total < board.goal:
        n += 1
        drive(task.checkpoint({"n": n}))
        board[number] = n
        if n == dies_after:
            say(link, "kill me")


def _check(home: Home, board: Board, writers: list[Child], *, times_killed: int) -> None:
    for writer in writers:
        writer.wait()
    app = home.open()
    try:
        for number in range(WRITERS):
            record = drive(app.tasks.get(f"task-{number}"))
            assert record is not None and record.state["n"] == board[number], f"task-{number} has lost a commit"
            assert len(record.attempts) == 1 + times_killed, f"task-{number} changed hands: {record.attempts}"
        check_rows(app)
    finally:
        drive(app.close())


def count(_: Link, home: Home) -> int:
    """What the counter of tests/crash/test_races.py stands at."""
    app: Perdure = home.open()
    check_rows(app)
    record = drive(app.tasks.get("counter"))
    assert record is not None
    found: int = record.state["n"]
    return found


class Board:
    """Numbers that all processes see: how far each writer is, and where they stop."""

    _SLOT = struct.Struct("<q")

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(bytes(self._SLOT.size * (WRITERS + 1)))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    def __getitem__(self, slot: int) -> int:
        found: int = self._SLOT.unpack_from(self._map, slot * self._SLOT.size)[0]
        return found

    def __setitem__(self, slot: int, value: int) -> None:
        self._SLOT.pack_into(self._map, slot * self._SLOT.size, value)

    @property
    def total(self) -> int:
        return sum(self[slot] for slot in range(WRITERS))

    @property
    def goal(self) -> int:
        return self[WRITERS]

    @goal.setter
    def goal(self, value: int) -> None:
        self[WRITERS] = value

    def stop(self) -> None:
        self.goal = 0
