"""One writer: who was stopped past its lease writes nothing, who lives is left alone, who died is replaced."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from perdure._ground.clock import MovableClock
from perdure._model import LEASE
from perdure.errors import LeaseHeld, LeaseLost
from tests.crash.conftest import env_of
from tests.crash.hands import obey, order
from tests.support.processes import Child, Nursery
from tests.torture.kills import Home

# A bit more than the time between two beats of the heart.
BEAT = LEASE / 2.9
LATE_WRITES: list[tuple[Any, ...]] = [
    ("checkpoint", 99),
    ("mark_progress", 99),
    ("complete", 99),
    ("fail", 99),
    ("pause", 99),
    ("append_entry", 0),
    ("end",),  # giving back a lease one has lost is no error, and takes nothing from its new holder
]


def start(children: Nursery, home: Home, clock: MovableClock) -> Child:
    child = children.start(obey, home, env=env_of(clock))
    assert child.heard() == "ready"
    return child


def take_over(watcher: Child, clock: MovableClock) -> None:
    """Look, see a whole lease of silence, and take the lease; never earlier."""
    for _ in range(3):
        assert isinstance(order(watcher, "begin"), LeaseHeld)
        clock.advance(LEASE / 3)
    clock.advance(milliseconds=1)
    assert order(watcher, "begin") is None


def wait_for_a_beat(watcher: Child, holder: Child, before: int) -> None:
    while order(watcher, "beats", holder.pid) == before:
        pass


@pytest.mark.req("R55")
@pytest.mark.parametrize("late", LATE_WRITES, ids=lambda late: late[0])
def test_who_was_stopped_past_its_lease_can_no_longer_write(
    home: Home, children: Nursery, clock: MovableClock, late: tuple[Any, ...]
) -> None:
    holder, watcher = start(children, home, clock), start(children, home, clock)
    assert order(holder, "begin") is None
    assert order(holder, "checkpoint", 1) is None
    holder.stop()
    take_over(watcher, clock)
    before = order(watcher, "seen")

    holder.go_on()
    answer = order(holder, *late)
    assert isinstance(answer, LeaseLost) if late != ("end",) else answer is None
    assert order(watcher, "seen") == before

    assert order(watcher, "bump") is None
    assert order(watcher, "complete", 1) is None
    assert order(watcher, "seen")["tasks"]["the-task"][0]["state"] == {"n": 2}


@pytest.mark.req("R55")
def test_a_former_holder_may_begin_again_when_its_successor_has_ended(
    home: Home, children: Nursery, clock: MovableClock
) -> None:
    holder, watcher = start(children, home, clock), start(children, home, clock)
    order(holder, "begin")
    holder.stop()
    take_over(watcher, clock)
    order(watcher, "bump")
    holder.go_on()
    assert isinstance(order(holder, "checkpoint", 99), LeaseLost)
    assert isinstance(order(holder, "begin"), LeaseHeld)
    order(watcher, "end")
    assert order(holder, "begin") is None
    assert order(holder, "bump") is None
    assert order(holder, "seen")["tasks"]["the-task"][0]["state"] == {"n": 2}


@pytest.mark.req("R55")
def test_a_holder_whose_heart_beats_is_left_alone(home: Home, children: Nursery, clock: MovableClock) -> None:
    holder, watcher = start(children, home, clock), start(children, home, clock)
    order(holder, "begin")
    for _ in range(10):  # more than three leases, and the holder writes nothing in them
        beats = order(watcher, "beats", holder.pid)
        assert isinstance(order(watcher, "begin"), LeaseHeld)
        clock.advance(BEAT)
        wait_for_a_beat(watcher, holder, beats)
    assert isinstance(order(watcher, "begin"), LeaseHeld)
    assert order(holder, "checkpoint", 1) is None


@pytest.mark.req("R110")
def test_a_machine_that_slept_wakes_with_its_leases(home: Home, children: Nursery, clock: MovableClock) -> None:
    holder, watcher = start(children, home, clock), start(children, home, clock)
    order(holder, "begin")
    assert isinstance(order(watcher, "begin"), LeaseHeld)
    beats = order(watcher, "beats", holder.pid)
    for process in (holder, watcher):
        process.stop()
    clock.advance(hours=8)
    for process in (holder, watcher):
        process.go_on()
    wait_for_a_beat(watcher, holder, beats)
    assert isinstance(order(watcher, "begin"), LeaseHeld)
    assert order(holder, "checkpoint", 1) is None


@pytest.mark.req("R110")
def test_a_watcher_that_slept_too_has_not_seen_the_silence(home: Home, children: Nursery, clock: MovableClock) -> None:
    holder, watcher = start(children, home, clock), start(children, home, clock)
    order(holder, "begin")
    assert isinstance(order(watcher, "begin"), LeaseHeld)
    for process in (holder, watcher):
        process.stop()
    clock.advance(hours=8)
    watcher.go_on()
    assert isinstance(order(watcher, "begin"), LeaseHeld)
    holder.go_on()
    assert order(holder, "checkpoint", 1) is None


@pytest.mark.req("R13", "R111")
def test_a_holder_that_was_killed_is_replaced_at_once_and_each_attempt_is_listed(
    home: Home, children: Nursery, clock: MovableClock
) -> None:
    pids = []
    for _ in range(3):
        holder = start(children, home, clock)
        assert order(holder, "begin") is None  # the clock stands still: nobody waits for a lease to pass
        assert order(holder, "bump") is None
        pids.append(holder.pid)
        holder.kill()
    last = start(children, home, clock)
    assert order(last, "begin") is None
    assert order(last, "bump") is None
    assert order(last, "complete", 1) is None
    attempts = order(last, "attempts")
    host = socket.gethostname()
    assert attempts == [*((host, pid, "its process died") for pid in pids), (host, last.pid, "completed")]
    assert order(last, "seen")["tasks"]["the-task"][0]["state"] == {"n": 4}
