"""A watchdog's alarm in the middle of a blocking call: a sample of `python -m tests.torture --part alarms`."""

from __future__ import annotations

import pytest

from tests.support.processes import Nursery
from tests.torture import alarms


@pytest.mark.req("R11", "R23")
@pytest.mark.parametrize("seed", range(0, 2 * len(alarms.KINDS), 2))
def test_what_a_handler_raises_arrives_once_and_leaves_the_store_usable(
    shared_url: str, children: Nursery, seed: int
) -> None:
    alarms.check(children, shared_url, seed, alarms=14, program="disturbed")


@pytest.mark.req("R11", "R23")
@pytest.mark.parametrize("program", alarms.PROGRAMS[1:])
def test_the_same_while_tasks_are_run_stores_opened_and_a_loop_has_the_main_thread(
    shared_url: str, children: Nursery, program: str
) -> None:
    alarms.check(children, shared_url, 0, alarms=8, program=program)
