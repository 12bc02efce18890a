"""A Pydantic AI agent that is killed repeats nothing that was finished, and asks about what was cut off."""

from __future__ import annotations

import pytest

from tests.integrations.crash_kit import DEATHS, Lives
from tests.integrations.pydantic_ai.agents import NAMES, clerk_life

WARM = ("tests.integrations.pydantic_ai.agents",)


@pytest.mark.req("R150")
def test_nothing_finished_is_repeated_wherever_the_agent_dies(lives: Lives) -> None:
    result, names = lives.are_survived(clerk_life, DEATHS["Pydantic AI"], "approve")
    assert result == "done" and names == sorted(NAMES)
    counts = lives.ledger.counts()
    assert counts["refund"] == counts["model 2"] == counts["model 3"] == 1 and counts["model 0"] == 3
    assert counts["model 1"] == 2  # the first one was refused by a rate limit: the task paused, and asked again


def test_an_effect_that_was_cut_off_is_in_the_inbox(lives: Lives) -> None:
    lives.die_at(clerk_life, ["pay"])
    assert lives.live(clerk_life) == "effect"
    assert lives.live(clerk_life, ["done", "approve"])[0] == "done"
    assert lives.ledger.counts()["pay"] == 1


def test_a_rejected_call_is_told_to_the_model(lives: Lives) -> None:
    assert lives.live(clerk_life) == "approval"
    assert lives.live(clerk_life, ["reject"])[0] == "done"
    assert lives.ledger.counts()["refund"] == 0
