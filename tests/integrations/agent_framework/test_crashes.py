"""An agent that is killed repeats nothing that was finished, and asks about what was cut off."""

from __future__ import annotations

import pytest

from tests.integrations.agent_framework.agents import clerk_life
from tests.integrations.crash_kit import DEATHS, Lives

WARM = ("tests.integrations.agent_framework.agents",)


@pytest.mark.req("R150")
def test_nothing_finished_is_repeated_wherever_the_agent_dies(lives: Lives) -> None:
    result, talk = lives.are_survived(clerk_life, DEATHS["Agent Framework"], "approve")
    assert result == "done" and talk.count("function_result") == 5  # the history holds each message once
    counts = lives.ledger.counts()
    assert counts["refund"] == counts["model 3"] == counts["model 4"] == counts["model 5"] == 1
    assert counts["model 0"] == 3


def test_an_effect_that_was_cut_off_is_in_the_inbox(lives: Lives) -> None:
    lives.die_at(clerk_life, ["pay"])
    assert lives.live(clerk_life) == "effect"
    assert lives.live(clerk_life, ["done", "approve"])[0] == "done"
    assert lives.ledger.counts()["pay"] == 1


def test_a_tool_whose_connection_broke_is_asked_about_before_the_model_hears_of_it(lives: Lives) -> None:
    """The framework alone would tell the model of an error, and the payment might be made twice."""
    assert lives.live(clerk_life, [], True) == "effect"
    assert lives.ledger.counts()["pay"] == 1


def test_a_rejected_call_is_told_to_the_model(lives: Lives) -> None:
    assert lives.live(clerk_life, ["reject"])[0] == "done"
    assert lives.ledger.counts()["refund"] == 0
