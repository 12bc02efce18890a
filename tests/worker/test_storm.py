"""A sample of the storms: a hundred kills, and workers that come back from the dead. `make torture` has the rest."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support import faketime
from tests.torture import cuts, hostile, sleeps, storm, walls, zombies


@pytest.mark.req("R55", "R111", "R112", "R116")
@pytest.mark.parametrize("seed", range(1000, 1005))
def test_twenty_kills_lose_nothing_and_repeat_nothing(seed: int) -> None:
    storm.run(seed)


@pytest.mark.req("R14", "R55", "R64", "R111", "R112")
@pytest.mark.parametrize("seed", [1000, 1001])
def test_random_programs_on_a_hostile_machine_do_what_undisturbed_ones_do(seed: int) -> None:
    hostile.run(seed, kills=10)


@pytest.mark.req("R55", "R110")
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_worker_that_was_stopped_and_taken_over_writes_nothing_more(seed: int) -> None:
    zombies.run(seed)


@pytest.mark.req("R112")
def test_workers_that_are_cut_off_from_the_server_ride_it_out_and_repeat_nothing() -> None:
    cuts.run(1000, outage=1.5)


@pytest.mark.req("R45", "R110")
def test_a_wall_clock_that_jumps_loses_and_doubles_no_timer() -> None:
    if faketime.library() is None:
        pytest.skip("libfaketime is not here and cannot be installed")
    walls.run(1000, jumps=2, nap=timedelta(minutes=10))


@pytest.mark.req("R45", "R110")
def test_a_machine_that_slept_past_its_leases_loses_nobody_and_no_timer() -> None:
    sleeps.run(1001, sleeps=1, lease=timedelta(seconds=3))
