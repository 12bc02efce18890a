"""Several processes at one SQLite file: all of them open it, all of them get their turn.

They are forked from a process that has imported everything and has opened no store, and begin together.
What is measured is counts, not time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure._store.sqlite import SqliteEngine
from tests.store.kit import Hand, dump, listing

ROOT = Path(__file__).resolve().parents[2]

# Forks `argv[1]` children that all wait for one byte's end, then run `work(number)`; prints what they answer.
CROWD = """
import json, mmap, os, struct, sys
from pathlib import Path
from perdure._store import Committer
from perdure._store.sqlite import SqliteEngine
from tests.store.kit import Hand, write

COUNT, PATH = int(sys.argv[1]), Path(sys.argv[2])
board = mmap.mmap(-1, 8 * COUNT)  # one number for each child, seen by all

def counts():
    return struct.unpack(f"{COUNT}q", board[:])

def count_up(number):
    board[8 * number : 8 * number + 8] = struct.pack("q", counts()[number] + 1)

%s

hold, start = os.pipe()
answer, tell = os.pipe()
children = []
for number in range(COUNT):
    child = os.fork()
    if child == 0:
        os.close(start)
        os.read(hold, 1)
        try:
            os.write(tell, json.dumps(work(number)).encode() + b"\\n")
        except BaseException as problem:
            os.write(tell, json.dumps(f"{type(problem).__name__}: {problem}").encode() + b"\\n")
        os._exit(0)
    children.append(child)
os.close(tell)
os.close(start)
for child in children:
    os.waitpid(child, 0)
with open(answer) as answers:
    print(json.dumps([json.loads(line) for line in answers]))
"""


def run(count: int, path: Path, work: str) -> list[Any]:
    """What each of `count` processes answers, all begun at once."""
    source = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", CROWD % work, str(count), str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(source)},
        check=True,
        stdout=subprocess.PIPE,
        timeout=200,
        text=True,
    )
    answers: list[Any] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("turn", range(3))
def test_of_processes_that_open_a_new_store_at_once_all_succeed(tmp_path: Path, turn: int) -> None:
    path = tmp_path / "new" / "store.db"
    work = """
def work(number):
    engine = SqliteEngine(PATH)
    row = Hand(engine, f"w{number}").create(f"u{number:03d}", f"task {number}")
    engine.close()
    return row
"""
    assert sorted(run(8, path, work)) == [[f"u{number:03d}"] for number in range(8)]
    engine = SqliteEngine(path)
    assert len(engine.query("list_tasks", listing())) == 8
    assert engine.damage() == []
    engine.close()


def test_of_processes_that_read_a_new_store_while_it_is_made_all_succeed(tmp_path: Path) -> None:
    work = """
def work(number):
    engine = SqliteEngine(PATH)
    if number == 0:
        Hand(engine).create("u000")
    rows = engine.query("get_task_by_uid", {"uid": "u000"})
    return len(rows)
"""
    answers = run(8, tmp_path / "store.db", work)
    assert set(answers) <= {0, 1} and 1 in answers


@pytest.mark.req("R6")
def test_of_processes_that_create_one_id_at_once_one_does(tmp_path: Path) -> None:
    work = """
def work(number):
    return Hand(SqliteEngine(PATH)).create(f"u{number:03d}", "alpha")
"""
    answers = run(20, tmp_path / "store.db", work)
    assert len(answers) == 20 and answers.count(None) == 19


@pytest.mark.req("R14")
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    work = """
def work(number):
    engine = SqliteEngine(PATH)
    hand = Hand(engine, f"w{number}")
    uid = f"u{number:03d}"
    epoch = hand.running(uid, f"task {number}")
    committer = Committer(engine)
    done = [hand.append(uid, epoch, position) for position in range(60)]
    return len([row for row in done if row is not None])
"""
    path = tmp_path / "store.db"
    assert run(4, path, work) == [60] * 4
    engine = SqliteEngine(path)
    assert all(len(Hand(engine).journal(f"u{number:03d}")) == 60 for number in range(4))
    assert engine.damage() == []
    engine.close()


def test_four_processes_that_write_without_pause_each_get_their_share(tmp_path: Path) -> None:
    """Counted from when all of them have begun until there are so many commits in all."""
    work = """
def work(number):
    engine = SqliteEngine(PATH)
    hand = Hand(engine, f"w{number}")
    hand.register()
    count_up(number)
    while not all(counts()):
        pass
    while sum(counts()) < 800:
        hand.do("beat", worker=hand.worker)
        count_up(number)
    return counts()[number]
"""
    shares = run(4, tmp_path / "store.db", work)
    assert min(shares) >= 0.1 * sum(shares), shares


def test_a_process_killed_in_the_middle_of_its_commit_leaves_the_others_free(tmp_path: Path) -> None:
    work = """
import signal
from perdure._ground import crash_points as crash

def work(number):
    engine = SqliteEngine(PATH)
    hand = Hand(engine, f"w{number}")
    if number == 0:
        hand.create("u000")
        crash.arm("sqlite.before_commit")
        hand.move("u000", "complete")
    while not engine.query("get_task_by_uid", {"uid": "u000"}):
        pass
    return hand.create(f"u{number:03d}", f"task {number}") is not None
"""
    path = tmp_path / "store.db"
    assert run(4, path, work) == [True] * 3
    engine = SqliteEngine(path)
    assert Hand(engine).task("u000").status == "running", "the killed commit left nothing"
    assert len(dump(engine)["main: list"]) == 4
    engine.close()
