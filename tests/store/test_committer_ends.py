"""The end of a process: what is queued is committed first. And its forks: the queue stays the parent's.

Each test runs a process of its own on a SQLite store and looks at the store afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perdure._store import flush_on_sigterm
from perdure._store.sqlite import SqliteEngine
from perdure._store.sqlite import engine as sqlite_engine
from tests.store.kit import UIDS, Hand

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = 50

# Queues entries without waking the committer's thread: only a flush can bring them to disk.
PROLOGUE = """
import os, signal, sys, threading
from pathlib import Path
from perdure._store import Committer, flush_on_sigterm
from perdure._store.sqlite import SqliteEngine
from perdure.errors import StoreForked
from tests.store.watched import Attempt, Watched, in_thread

engine = Watched(SqliteEngine(Path(sys.argv[1])))
committer = Committer(engine)
attempt = Attempt(committer, engine.inner)
entries = [attempt.entry(position) for position in range(50)]
for entry in entries:
    committer.enqueue(entry)
"""


def environment() -> dict[str, str]:
    source = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(source)}


def run(tmp_path: Path, ending: str) -> tuple[int, list[int]]:
    """How a process with entries in its queue ended, and which of them are in the store."""
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", PROLOGUE + ending, str(path)]
    ended = subprocess.run(command, env=environment(), check=False, timeout=120)
    engine = SqliteEngine(path)
    positions = [position for position, _ in Hand(engine).journal(UIDS[0])]
    engine.close()
    return ended.returncode, positions


ALL = list(range(ENTRIES))


def test_the_queue_is_lost_when_nobody_flushes_it(tmp_path: Path) -> None:
    """For the other tests' sake: it is the flush that saves it."""
    assert run(tmp_path, "os._exit(0)") == (0, [])


@pytest.mark.req("R11")
@pytest.mark.parametrize(
    "ending, code",
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise SystemExit", 0),
        ("sys.stderr = open(os.devnull, 'w'); raise RuntimeError('a bug of the user')", 1),
        ("sys.stderr = open(os.devnull, 'w'); signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
    ],
)
def test_the_end_of_the_program_flushes(tmp_path: Path, ending: str, code: int) -> None:
    assert run(tmp_path, ending) == (code, ALL)


WAIT_FOR_THE_END = "while True: signal.pause()"


@pytest.mark.req("R11")
def test_sigterm_flushes_and_then_ends_the_process_by_that_signal(tmp_path: Path) -> None:
    ending = f"flush_on_sigterm(); signal.raise_signal(signal.SIGTERM); {WAIT_FOR_THE_END}"
    ending = ending.replace("; while", "\nwhile")
    assert run(tmp_path, ending) == (-signal.SIGTERM, ALL)


def test_sigterm_in_the_middle_of_a_commit_flushes_all_the_same(tmp_path: Path) -> None:
    """The main thread has the baton; the handler must not wait for it there."""
    ending = """
flush_on_sigterm()
engine.before = lambda writes: signal.raise_signal(signal.SIGTERM) if len(engine.batches) == 1 else None
entries[0].block()
while True:
    signal.pause()
"""
    assert run(tmp_path, ending) == (-signal.SIGTERM, ALL)


def test_sigterm_while_this_thread_has_the_queue_in_hand_does_not_hang(tmp_path: Path) -> None:
    ending = """
flush_on_sigterm()
with committer._mutex:
    signal.raise_signal(signal.SIGTERM)
while True:
    signal.pause()
"""
    assert run(tmp_path, ending) == (-signal.SIGTERM, ALL)


def test_sigterm_of_somebody_else_stays_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    def theirs(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGTERM, theirs)
    try:
        flush_on_sigterm()
        assert signal.getsignal(signal.SIGTERM) is theirs
    finally:
        signal.signal(signal.SIGTERM, before)


def test_only_the_main_thread_may_set_a_handler_so_others_leave_it() -> None:
    before = signal.getsignal(signal.SIGTERM)
    problems: list[BaseException] = []

    def other_thread() -> None:
        try:
            flush_on_sigterm()
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    assert problems == [] and signal.getsignal(signal.SIGTERM) is before


# ── forks ────────────────────────────────────────────────────────────────────────────────────────


FORK = """
def refused(act):
    try:
        act()
    except StoreForked:
        return
    os._exit(1)

child = os.fork()
if child == 0:
    refused(lambda: committer.submit(attempt.entry(90)))
    refused(lambda: committer.enqueue(attempt.entry(91)))
    refused(attempt.entry(92).block)
    refused(entries[0].block)
    committer.flush()
    committer.close()
    {end}
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == {code}, status
"""


@pytest.mark.parametrize(
    "end, code",
    [
        ("os._exit(0)", 0),
        ("sys.exit(0)", 0),
        ("flush_on_sigterm(); os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM),
    ],
)
def test_the_child_of_a_fork_writes_nothing_and_the_parent_works_on(tmp_path: Path, end: str, code: int) -> None:
    after = "assert attempt.positions() == []\nassert attempt.entry(50).block() == (50,)"
    assert run(tmp_path, FORK.format(end=end, code=code) + after) == (0, list(range(51)))


def test_a_fork_in_the_middle_of_a_commit_leaves_the_child_free(tmp_path: Path) -> None:
    """The parent's thread has the baton, which nobody in the child will ever let go."""
    ending = """
engine.close_gate()
writing = in_thread(entries[0].block)
engine.wait_for_commit()
""" + FORK.format(end="sys.exit(0)", code=0)
    ending += """
engine.open_gate()
writing.join()
"""
    assert run(tmp_path, ending) == (0, ALL)


def test_a_child_opens_a_store_of_its_own(tmp_path: Path) -> None:
    ending = """
child = os.fork()
if child == 0:
    mine = SqliteEngine(Path(sys.argv[1]))
    own = Committer(mine)
    from tests.store.kit import Hand
    Hand(mine, "w2").create("u001", "beta")
    own.close()
    mine.close()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert attempt.hand.task("u001").id == "beta"
"""
    assert run(tmp_path, ending) == (0, ALL)


def test_a_child_that_outlives_its_killed_parent_does_not_keep_others_from_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turnstile's locks belong to open files, and a child would inherit those."""
    ending = """
from perdure._ground import crash_points as crash
if os.fork() == 0:
    os.read(0, 1)  # lives on until the test lets go
    os._exit(0)
crash.arm("sqlite.before_commit")
entries[0].block()
"""
    command = [sys.executable, "-c", PROLOGUE + ending, str(tmp_path / "store.db")]
    monkeypatch.setattr(sqlite_engine, "PATIENCE_SECONDS", 1)
    with subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE) as parent:
        assert parent.wait(120) == -signal.SIGKILL
        engine = SqliteEngine(tmp_path / "store.db")
        assert Hand(engine, "w2").create(UIDS[1], "beta")
        engine.close()
