"""Nothing acknowledged is lost: the call returns, the process is killed in the same breath."""

from __future__ import annotations

import itertools

import pytest

from perdure._ground.bridge import drive
from tests.support.processes import Link, Nursery, die, say
from tests.torture.checks import check_rows
from tests.torture.kills import RUNNERS, Home, look, outcome
from tests.torture.verbs import VERBS

TIMES = {"sqlite": 5, "postgresql": 1}  # × 20 calls and more × 2 ways of calling: over 200


@pytest.mark.req("R11", "R1", "R16")
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_call_that_returned_is_found_by_the_next_process(
    home: Home, children: Nursery, verb: str, runner: str
) -> None:
    for number in range(TIMES[home.kind]):
        own = home._replace(namespace=f"{home.namespace}-{number}")
        child = children.start(call_and_die, own, verb, runner)
        assert child.heard() == "acknowledged"
        assert child.wait() == -9
        assert children.run(look, own) == outcome(verb)


def call_and_die(link: Link, home: Home, verb: str, runner: str) -> None:
    app = home.open()
    chosen, drive_it = VERBS[verb], RUNNERS[runner]
    task = drive_it(chosen.prepare(app))
    drive_it(chosen.act(app, task))
    say(link, "acknowledged")
    die()


@pytest.mark.req("R11", "R16")
def test_a_chain_of_checkpoints_is_kept_up_to_the_last_one_acknowledged(home: Home, children: Nursery) -> None:
    for number in range(2 * TIMES[home.kind]):
        own = home._replace(namespace=f"{home.namespace}-{number}")
        child = children.start(checkpoint_for_ever, own)
        while child.heard() < 1 + 3 * number:
            pass
        child.kill()
        acknowledged = child.rest()[-1:]
        found = children.run(newest, own)
        assert acknowledged <= [found]


def checkpoint_for_ever(link: Link, home: Home) -> None:
    app = home.open()
    task = drive(app.tasks.open("t"))
    for n in itertools.count(1):
        drive(task.checkpoint({"n": n, "text": "x" * n}))
        say(link, n)


def newest(_: Link, home: Home) -> int:
    app = home.open()
    check_rows(app)
    record = drive(app.tasks.get("t"))
    assert record is not None and record.latest is not None
    assert record.latest.seq == record.state["n"] == len(record.state["text"])
    return record.latest.seq
