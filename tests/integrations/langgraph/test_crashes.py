"""A LangGraph agent that is killed repeats nothing that was finished, and asks about what was cut off."""

from __future__ import annotations

import pytest

from tests.integrations.crash_kit import Lives
from tests.integrations.langgraph.agents import agent_with_tools, graph_with_nodes

WARM = ("langchain.agents", "tests.integrations.langgraph.agents")


@pytest.mark.req("R150")
def test_a_tool_that_was_cut_off_is_asked_about_and_not_repeated(lives: Lives) -> None:
    lives.die_at(agent_with_tools, ["pay"])
    asked = lives.live(agent_with_tools)
    assert asked["choices"] == ["done", "retry", "fail"] and "pay" in asked["call"]
    assert lives.ledger.counts()["pay"] == 1

    assert lives.live(agent_with_tools, ["done", "yes"]) == "done"
    counts = lives.ledger.counts()
    assert counts == {
        "model 0": 1,
        "look 1": 1,
        "look 2": 1,
        "model 2": 1,
        "pay": 1,
        "model 3": 1,
        "ship": 1,
        "model 4": 1,
    }


def test_a_tool_is_tried_again_when_a_person_says_so(lives: Lives) -> None:
    lives.die_at(agent_with_tools, ["pay"])
    assert lives.live(agent_with_tools, ["retry", "yes"]) == "done"
    assert lives.ledger.counts()["pay"] == 2 and lives.ledger.counts()["ship"] == 1


def test_finished_tools_are_not_repeated_wherever_the_agent_dies(lives: Lives) -> None:
    lives.die_at(agent_with_tools, ["model 2", "model 3", "asked", "asked"])
    assert lives.live(agent_with_tools, ["yes"]) == "done"
    counts = lives.ledger.counts()
    assert counts["look 1"] == counts["look 2"] == counts["pay"] == counts["ship"] == 1
    assert counts["model 2"] == counts["model 3"] == 2  # a model call that was cut off is LangGraph's to repeat


def test_a_tool_that_only_reads_runs_again(lives: Lives) -> None:
    lives.die_at(agent_with_tools, ["look 2"])
    assert lives.live(agent_with_tools, ["yes"]) == "done"
    assert lives.ledger.counts()["look 2"] == 2 and lives.ledger.counts()["pay"] == 1


def test_the_steps_of_a_durable_node_are_not_repeated(lives: Lives) -> None:
    lives.die_at(graph_with_nodes, ["thought 1", "thought 2", "charged", "asked"])
    lives.die_at(graph_with_nodes, ["answered"], ["yes"])
    seen = lives.live(graph_with_nodes, ["yes"])
    assert seen == ["thought 1", "thought 2", "receipt 100", "yes", "receipt 7", "sent"]
    assert set(lives.ledger.counts().values()) == {1}


def test_an_unkeyed_effect_of_a_node_that_was_cut_off_interrupts_the_graph(lives: Lives) -> None:
    lives.die_at(graph_with_nodes, ["in mail"], ["yes"])
    asked = lives.live(graph_with_nodes)
    assert asked["call"] == "mail('ada')"
    assert lives.live(graph_with_nodes, [{"choice": "done", "value": "sent, they say"}])[-1] == "sent, they say"
    assert lives.ledger.counts()["mail ada"] == 1
