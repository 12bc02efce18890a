"""A LangGraph agent that is killed repeats nothing that was finished, and asks about what was cut off."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integrations.crash_kit import DEATHS, Lives
from tests.integrations.langgraph.agents import agent_with_tools, deep_agent, graph_with_nodes, nested_graph

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


@pytest.mark.parametrize("agent, name", [(agent_with_tools, "LangGraph"), (deep_agent, "LangGraph, deep agent")])
def test_nothing_finished_is_repeated_wherever_the_agent_dies(lives: Lives, agent: Any, name: str) -> None:
    assert lives.are_survived(agent, DEATHS[name], "yes") == "done"
    counts = lives.ledger.counts()
    assert counts["ship"] == counts["model 2"] == counts["model 4"] == 1 and counts["model 0"] == 3


@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True)
def test_a_person_can_say_that_a_tool_has_failed(lives: Lives) -> None:
    lives.die_at(agent_with_tools, ["pay"])
    assert lives.live(agent_with_tools, ["what?", "fail", "yes"]) == "done"  # an unknown answer asks again
    assert lives.ledger.counts()["pay"] == 1


@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True)
def test_a_graph_in_a_graph_repeats_no_effect_and_sends_the_outer_one_on(lives: Lives) -> None:
    lives.die_at(nested_graph, ["between", "asked"])
    lives.die_at(nested_graph, ["answered"], ["retry"])  # an answer to the node's own question, and to no other
    lives.die_at(nested_graph, ["pay 2"])
    assert lives.live(nested_graph)["call"] == "pay(2)"
    lives.die_at(nested_graph, ["pay 3"], [{"choice": "retry"}])
    assert lives.live(nested_graph)["call"] == "pay(3)"
    assert lives.live(nested_graph, ["retry"]) == ["paid 1", "retry", "paid 2", "paid 3"]
    assert lives.ledger.counts() == {"pay 1": 1, "pay 2": 2, "pay 3": 2}


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
