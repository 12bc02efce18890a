"""Ctrl-C while a blocking caller commits: what is in stays in, and the attempt goes on."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure.sync import Perdure, durable, effect, step
from tests.support.processes import Link, Nursery


def _interrupt_at(name: str, times: int = 1) -> None:
    place, left = crash.place, [times]

    def passed(found: str) -> None:
        while found == name and left[0]:
            left[0] -= 1
            os.kill(os.getpid(), signal.SIGINT)
        place(found)

    crash.place = passed  # type: ignore[assignment]
    crash.armed = crash.armed or "somewhere else"  # else some places are not asked for at all


def checkpoints(link: Link, url: str, place: str) -> list[int]:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Perdure(url) as app:
        task = app.tasks.open("job", state={"n": 0})
        with task.attempt():
            task.checkpoint({"n": 1})
            _interrupt_at(place)
            with pytest.raises(KeyboardInterrupt):
                task.checkpoint({"n": 2})
            task.checkpoint({"n": 3})  # the attempt is whole, and its lease still its own
        return [made.data["n"] for made in task.checkpoints()]


@pytest.mark.req("R11", "R23")
@pytest.mark.parametrize("place", ["committer.before_commit", "committer.after_commit"])
def test_an_interrupted_checkpoint_is_in_once_and_the_attempt_goes_on(
    shared_url: str, children: Nursery, place: str
) -> None:
    assert children.run(checkpoints, shared_url, place) == [1, 2, 3]


def signals(link: Link, url: str, place: str) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Perdure(url) as app:
        task = app.start("job", work).task()
        _interrupt_at(place)
        with pytest.raises(KeyboardInterrupt):
            task.signal("go", 1)
        app.tasks.events("job")
        task.mark_progress("after all before it", percent=1)
        return len(drive(_signals_of(app, task.uid)))


async def _signals_of(app: Perdure, uid: str) -> list[Any]:
    return await app._inner._store.query("read_signals", uid=uid)


@pytest.mark.parametrize("place", ["committer.before_commit", "committer.after_commit"])
def test_an_interrupted_signal_is_sent_once(shared_url: str, children: Nursery, place: str) -> None:
    assert children.run(signals, shared_url, place) == 1


@step
def look(number: int) -> int:
    return number


@effect(keyed=True)
def send(number: int) -> int:
    return number


@durable
def work() -> int:
    return sum(send(look(number)) for number in range(3))


def twice(link: Link, url: str) -> tuple[str, int]:
    """A second Ctrl-C is obeyed at once: a commit may take long when the database is away."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Perdure(url) as app:
        task = app.tasks.open("job", state={"n": 0})
        with task.attempt():
            _interrupt_at("committer.before_commit", times=2)
            with pytest.raises(KeyboardInterrupt):
                task.checkpoint({"n": 1})
        return app.tasks.handle("job").status, app.run("other", work)


def test_a_second_interrupt_is_obeyed_at_once_and_nothing_is_lost(shared_url: str, children: Nursery) -> None:
    assert children.run(twice, shared_url) == ("running", 3)
