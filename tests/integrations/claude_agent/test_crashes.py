"""A Claude agent that is killed repeats nothing that was finished, on this machine and on another one.

The CLI is the real one that the SDK brings, with an empty home. Its model is a server on loopback that counts.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.claude_agent.agents import clerk_life
from tests.integrations.crash_kit import DEATHS, Lives

WARM = ("tests.integrations.claude_agent.agents",)
ONCE = dict.fromkeys(["model look", "look", "model pay", "pay", "model refund", "refund", "model end"], 1)


@pytest.mark.req("R150")
def test_nothing_finished_is_repeated_wherever_the_agent_dies(lives: Lives, tmp_path: Path) -> None:
    """Each second life has another home and folder: only the store is common."""
    homes = [str(tmp_path / "here")], [str(tmp_path / "there")]
    assert lives.are_survived(clerk_life, DEATHS["Claude Agent SDK"], "approve", homes) == "done"
    assert lives.ledger.counts()["refund"] == lives.ledger.counts()["model end"] == 1


def test_an_outcome_that_the_cli_never_heard_of_is_not_made_again(lives: Lives, tmp_path: Path) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    lives.die_at(clerk_life, ["outcome"], here)
    lives.die_at(clerk_life, ["model end"], there, ["approve"])
    assert lives.live(clerk_life, here) == "done"
    counts = lives.ledger.counts()
    assert counts["look"] == counts["pay"] == counts["refund"] == 1 and counts["model end"] == 2


@pytest.mark.parametrize("mirror", ["slow", "lost"])
def test_a_tool_that_was_cut_off_is_in_the_inbox_and_another_machine_goes_on(
    lives: Lives, tmp_path: Path, mirror: str
) -> None:
    """However late the SDK stores the model's turns: each of them is paid for once."""
    lives.die_at(clerk_life, ["pay"], str(tmp_path / "here"), [], {"mirror": mirror})
    shutil.rmtree(tmp_path / "here")
    assert lives.live(clerk_life, str(tmp_path / "there")) == "effect"
    assert lives.live(clerk_life, str(tmp_path / "there"), ["done", "reject"]) == "done"
    assert lives.ledger.counts() == {name: 1 for name in ONCE if name != "refund"}


def test_an_approved_tool_that_was_cut_off_is_asked_about_too(lives: Lives, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    lives.die_at(clerk_life, ["refund"], home, ["approve"])
    assert lives.live(clerk_life, home) == "effect"
    assert lives.live(clerk_life, home, ["done:refunded"]) == "done"
    assert lives.ledger.counts() == ONCE


def test_a_tool_whose_connection_broke_is_asked_about_before_the_model_hears_of_it(
    lives: Lives, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    assert lives.live(clerk_life, home, [], {"breaks": True}) == "effect"
    assert lives.live(clerk_life, home, ["done", "approve"]) == "done"
    assert lives.ledger.counts()["pay"] == 1


@pytest.mark.parametrize("limits", [True, False])
def test_a_usage_limit_pauses_the_task_until_it_resets_unless_that_is_off(
    lives: Lives, tmp_path: Path, limits: bool
) -> None:
    how: dict[str, Any] = {"limit": 3600 if limits else 1, "limits": limits, "stops_at_limit": True}
    said = lives.live(clerk_life, str(tmp_path / "home"), ["approve"], how)
    if not limits:
        assert "limit" in said and lives.ledger.counts()["pay"] == 0
        return
    assert said == ("rate_limit", True)
    assert lives.ledger.counts()["model pay"] == 1  # no process asked meanwhile


def test_a_run_goes_on_after_its_usage_limit(lives: Lives, tmp_path: Path) -> None:
    assert lives.live(clerk_life, str(tmp_path / "home"), ["approve"], {"limit": 0}) == "done"
    assert lives.ledger.counts() == {**ONCE, "model pay": 2}
