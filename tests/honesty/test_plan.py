"""A seed is one round for ever, and the seeds together reach every kind of unit, every state and every fault."""

from __future__ import annotations

from tests.honesty import faults
from tests.honesty.agent import ACTORS
from tests.honesty.oracle import _RULES
from tests.honesty.plan import FAULTS, KINDS, plan


def test_a_seed_is_one_round() -> None:
    assert plan(17) == plan(17) and plan(17) != plan(18)


def test_every_kind_and_every_fault_is_drawn_and_can_be_done_and_judged() -> None:
    rounds = [plan(seed) for seed in range(400)]
    assert {part.kind for drawn in rounds for part in drawn.parts} == set(KINDS) == set(ACTORS) == set(_RULES)
    assert {fault.verb for drawn in rounds for fault in drawn.faults} == set(FAULTS) == set(faults._FAULTS)


def test_the_agent_dies_once_in_every_round() -> None:
    for seed in range(400):
        assert [fault.verb for fault in plan(seed).faults].count("kill agent") == 1
