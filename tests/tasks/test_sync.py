"""The blocking face: the same code, the same names, also where an event loop is running."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import perdure.sync
from perdure import durable, step
from perdure._ground.bridge import drive
from perdure.errors import LeaseHeld
from perdure.sync import Perdure

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.req("R147")
def test_the_blocking_face_is_just_what_the_async_one_makes_of_it():
    check = [sys.executable, "tools/make_sync.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), "run: python tools/make_sync.py"


@pytest.mark.req("R147")
def test_a_plain_script_lives_a_tasks_whole_life(url):
    with Perdure(url) as app:
        task = app.tasks.open("job", state={"n": 0})
        with task.attempt() as same:
            assert same is task
            for _ in range(3):
                task.checkpoint({"n": task.state["n"] + 1})
            task.mark_progress("count", done=3, total=3)
        assert [checkpoint.data for checkpoint in task.checkpoints()] == [{"n": 1}, {"n": 2}, {"n": 3}]
        task.pause("ok?", reason="human_approval")
        task.resume(state={"ok": True})
        fork = task.fork("other", set={"n": 10})
        assert fork.state == {"n": 10, "ok": True} and type(fork) is type(task)
        task.complete("done")
        assert [record.id for record in app.tasks.list()] == ["other", "job"]
        assert app.tasks.wait_for("job").result == "done"


def test_an_exception_leaves_a_blocking_attempt_and_is_recorded(url):
    with Perdure(url) as app:
        task = app.tasks.open("job")
        with pytest.raises(KeyError), task.attempt():
            raise KeyError("x")
        assert task.record().attempts[-1].ended.startswith("error: KeyError")


def test_a_blocking_call_works_while_a_loop_is_running_in_the_same_thread(url):
    async def cell() -> int:
        with Perdure(url) as app:
            task = app.tasks.open("notebook", state={"n": 0})
            task.checkpoint({"n": 1})
            return task.state["n"]

    assert asyncio.run(cell()) == 1


def test_blocking_and_async_apps_of_one_process_share_the_lease(url):
    from perdure import Perdure as AsyncPerdure

    async def cell() -> None:
        with Perdure(url) as app:
            task = app.tasks.open("job", state={"n": 0})
            with task.attempt():
                async with AsyncPerdure(url) as other:
                    theirs = await other.tasks.open("job")
                    with pytest.raises(LeaseHeld):
                        async with theirs.attempt():
                            pass

    asyncio.run(cell())


def test_drive_says_so_when_a_coroutine_needs_a_loop():
    async def sleeper() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="needs an event loop"):
        drive(sleeper())


@step
async def triple(n: int) -> int:
    return n * 3


@durable
async def tripling(n: int) -> int:
    return await triple(n)


def test_blocking_code_runs_a_durable_function_with_or_without_a_loop_around_it(shared_url):
    with Perdure(shared_url) as app:
        assert app.run("one", tripling, 2) == 6 and app.run("one", tripling, 2) == 6

        async def cell() -> int:
            return app.run("two", tripling, 5)

        assert asyncio.run(cell()) == 15
        assert app.start("three", tripling, 1).task().status == "running"


def test_what_is_loaded_when_it_is_used_is_listed_for_completion() -> None:
    assert set(perdure.sync.__all__) <= set(dir(perdure.sync))
    assert set(perdure.__all__) <= set(dir(perdure))
