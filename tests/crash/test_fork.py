"""os.fork() with an open store: the child is refused and may open its own, the parent goes on."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from perdure._ground.bridge import drive
from perdure.errors import StoreForked
from tests.support.processes import Link, Nursery, say
from tests.torture.checks import check_rows
from tests.torture.kills import RUNNERS, Home

pytestmark = pytest.mark.req("R11")
HANGS = 30  # seconds after which a forked child is ended, and shows as such


def in_a_fork(act: Callable[[], object]) -> int:
    """Do `act` in a forked child that then exits as Python programs do; its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(HANGS)
    try:
        act()
        atexit._run_exitfuncs()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def refuses(act: Callable[[], Any]) -> bool:
    try:
        act()
    except StoreForked:
        return True
    return False


# ── the parent's store in the child ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_child_is_refused_and_the_parent_goes_on(home: Home, children: Nursery, runner: str) -> None:
    assert children.run(fork_and_try, home, runner) == 0
    assert children.run(states, home) == {"parents": {"n": 3}}


def fork_and_try(_: Link, home: Home, runner: str) -> int:
    run = RUNNERS[runner]
    app = home.open()
    task = run(app.tasks.open("parents", state={"n": 0}))
    run(task.checkpoint({"n": 1}))

    def in_child() -> None:
        assert refuses(lambda: run(app.tasks.get("parents")))
        assert refuses(lambda: run(app.tasks.open("childs")))
        assert refuses(lambda: run(task.checkpoint({"n": 99})))
        run(app.close())

    status = in_a_fork(in_child)
    run(task.checkpoint({"n": 2}))
    run(task.checkpoint({"n": 3}))
    run(app.close())
    return status


def test_a_fork_in_the_middle_of_a_commit_leaves_the_batch_to_the_parent(home: Home, children: Nursery) -> None:
    assert children.run(fork_in_a_commit, home) == 0
    assert children.run(states, home) == {"parents": {"n": 2}}


def fork_in_a_commit(_: Link, home: Home) -> int:
    app = home.open()
    task = drive(app.tasks.open("parents", state={"n": 0}))
    drive(task.checkpoint({"n": 1}))
    committing, forked = threading.Event(), threading.Event()
    engine, commit = app._store.engine, app._store.engine.commit

    def slow_commit(writes: Any) -> Any:
        committing.set()
        forked.wait()
        return commit(writes)

    engine.commit = slow_commit  # type: ignore[method-assign]
    writer = threading.Thread(target=lambda: asyncio.run(task.checkpoint({"n": 2})))
    writer.start()
    committing.wait()
    late = app._store.verb("mark_progress", task.uid, {"progress": None, "at": 1, "epoch": 0, "worker": ""}, key="x")
    app._store.committer.submit(late, urgent=False)  # still in the queue when the fork comes
    status = in_a_fork(lambda: None)
    forked.set()
    writer.join()
    return status


# ── the child's own store ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_child_may_open_the_same_store_anew(home: Home, children: Nursery, runner: str) -> None:
    assert children.run(fork_and_open, home, runner) == 0
    assert children.run(states, home) == {"parents": {"n": 2}, "childs": {"n": 2}}


def fork_and_open(_: Link, home: Home, runner: str) -> int:
    run = RUNNERS[runner]
    app = home.open()
    task = run(app.tasks.open("parents", state={"n": 0}))
    run(task.checkpoint({"n": 1}))

    def in_child() -> None:
        own = home.open()
        mine = run(own.tasks.open("childs", state={"n": 0}))
        run(mine.checkpoint({"n": 2}))
        run(own.close())

    status = in_a_fork(in_child)
    run(task.checkpoint({"n": 2}))
    run(app.close())
    return status


def test_what_the_child_writes_outlives_the_parents_store(home: Home, children: Nursery) -> None:
    """The parent leaves first. Were the child's locks those it has inherited in memory, the parent would
    take itself for the last and remove the log the child writes to."""
    child = children.start(fork_and_leave, home)
    assert child.heard() == "parent has left"
    assert children.run(count_with_others, home) == {"n": 1}
    child.tell()
    assert child.heard() == 0
    assert children.run(states, home) == {"parents": {"n": 1}, "childs": {"n": 50}, "others": {"n": 1}}


def fork_and_leave(link: Link, home: Home) -> int:
    app = home.open()
    task = drive(app.tasks.open("parents", state={"n": 0}))
    drive(task.checkpoint({"n": 1}))
    to_parent, from_child = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(HANGS)
        own = home.open()
        mine = drive(own.tasks.open("childs", state={"n": 0}))
        drive(mine.checkpoint({"n": 1}))
        os.write(from_child, b"opened")
        link.recv()
        for n in range(2, 51):
            drive(mine.checkpoint({"n": n}))
        os._exit(0)
    os.read(to_parent, 6)
    drive(app.close())
    say(link, "parent has left")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def count_with_others(_: Link, home: Home) -> dict[str, int]:
    app = home.open()
    task = drive(app.tasks.open("others", state={"n": 0}))
    drive(task.checkpoint({"n": 1}))
    drive(app.close())
    found: dict[str, int] = task.state
    return found


def states(_: Link, home: Home) -> dict[str, Any]:
    app = home.open()
    check_rows(app)
    return {record.id: record.state for record in drive(app.tasks.list())}
