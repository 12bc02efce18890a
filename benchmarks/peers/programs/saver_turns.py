"""A LangGraph saver under a growing conversation: milliseconds a turn, and the time to read the newest checkpoint.

Each turn adds a message of about 1 kB of words. In `turns` a single invoke makes all of them, in `chat` an invoke makes
one. Every checkpoint is on disk before the next turn (`durability="sync"`).
"""

from __future__ import annotations

import itertools
import operator
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from statistics import median
from typing import Annotated, Any, TypedDict

from kit import Place

LAST, READS = 10, 5  # the last turns, whose median is told; how often the newest checkpoint is read
WORDS = [
    f"{a}{b}" for a in ("re", "un", "con", "de", "pro") for b in ("fine", "tain", "vert", "scribe", "mote", "late")
]
Figures = dict[str, float]


class Chat(TypedDict):
    messages: Annotated[list[Any], operator.add]


def lines_of(opened: Callable[[Place], AbstractContextManager[Any]]) -> dict[str, Callable[[Place], Figures]]:
    """The two lines, for the saver that `opened` gives."""

    def line(place: Place, *, is_chat: bool) -> Figures:
        with opened(place) as saver:
            return measure(saver, place.size, is_chat=is_chat)

    return {"turns": lambda place: line(place, is_chat=False), "chat": lambda place: line(place, is_chat=True)}


def measure(saver: Any, turns: int, *, is_chat: bool) -> Figures:
    # Here, because a process that is measured from its start must not load them.
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, StateGraph

    chance, took = random.Random(7), []  # noqa: S311

    def turn(state: Chat) -> dict[str, list[Any]]:
        took.append(time.perf_counter())
        return {"messages": [AIMessage(" ".join(chance.choices(WORDS, k=140)))]}

    def more(state: Chat) -> str:
        return "turn" if not is_chat and len(state["messages"]) < turns else "__end__"

    graph = (
        StateGraph(Chat)
        .add_node("turn", turn)
        .add_edge(START, "turn")
        .add_conditional_edges("turn", more)
        .compile(checkpointer=saver)
    )
    config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": turns + 10}
    for _ in range(turns if is_chat else 1):
        graph.invoke({"messages": []}, config, durability="sync")
    took.append(time.perf_counter())
    begun = time.perf_counter()
    for _ in range(READS):
        found = saver.get_tuple(config)
    read = (time.perf_counter() - begun) / READS
    assert len(found.checkpoint["channel_values"]["messages"]) == turns
    each = [after - before for before, after in itertools.pairwise(took)]
    return {"last turn": 1000 * median(each[-LAST:]), "get_tuple": 1000 * read}
