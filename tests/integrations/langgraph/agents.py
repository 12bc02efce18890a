"""Agents that the crash tests kill: an agent with tools, a graph with durable nodes, a conversation."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from perdure import Perdure, effect, step
from perdure.integrations.langgraph import DurableTools, PerdureSaver, durable_node
from tests.integrations.crash_kit import Fate, Ledger
from tests.support.processes import Link

THREAD = {"configurable": {"thread_id": "t/1"}}


class ScriptedModel(GenericFakeChatModel):
    """Looks twice, pays once, asks whether to ship, and is done. It counts its calls in the ledger."""

    messages: Any = iter(())
    ledger: Any = None
    fate: Any = None

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        answered = sum(isinstance(message, ToolMessage) for message in messages)
        self.ledger.note(f"model {answered}")
        self.fate.passes(f"model {answered}")
        says = {
            0: AIMessage("", tool_calls=[call("look", "a", x=1), call("look", "b", x=2)]),
            2: AIMessage("", tool_calls=[call("pay", "c", cents=5)]),
            3: AIMessage("", tool_calls=[call("ship", "d", to="ada")]),
        }.get(answered, AIMessage("done"))
        return ChatResult(generations=[ChatGeneration(message=says)])


def call(name: str, id: str, **args: Any) -> Any:
    return {"name": name, "args": args, "id": id}


def tools_of(ledger: Ledger, fate: Fate) -> Sequence[Any]:
    @tool
    async def look(x: int) -> str:
        """Look at a thing."""
        ledger.note(f"look {x}")
        fate.passes(f"look {x}")
        return f"seen {x}"

    @tool
    async def pay(cents: int) -> str:
        """Pay."""
        ledger.note("pay")
        fate.passes("pay")
        return "paid"

    @tool
    async def ship(to: str) -> str:
        """Ship, after somebody agreed."""
        agreed = interrupt(f"ship to {to}?")
        ledger.note("ship")
        return f"shipped: {agreed}"

    return look, pay, ship


class MortalSaver(PerdureSaver):
    """Dies when LangGraph writes down what a tool returned: perdure knows the outcome, the graph does not."""

    fate: Fate

    async def aput_writes(self, config: Any, writes: Any, *how: Any, **more: Any) -> None:
        for message in [one for _, value in writes if isinstance(value, list) for one in value]:
            if isinstance(message, ToolMessage):
                self.fate.passes(f"{message.name} returned")
        await super().aput_writes(config, writes, *how, **more)


async def agent_with_tools(
    link: Link, url: str, path: Path, point: str, answers: Sequence[str] = (), make: Any = create_agent
) -> Any:
    """Answers interrupts with `answers`, in order; what is asked when there are none left."""
    ledger, fate = Ledger(path), Fate(point)
    async with Perdure(url) as app:
        saver = MortalSaver(app)
        saver.fate = fate
        agent = make(
            ScriptedModel(ledger=ledger, fate=fate),
            tools_of(ledger, fate),
            middleware=[DurableTools(app, look="step")],
            checkpointer=saver,
        )
        return await converse(agent, {"messages": [HumanMessage("go")]}, answers, fate)


async def deep_agent(link: Link, url: str, path: Path, point: str, answers: Sequence[str] = ()) -> Any:
    """The same agent as a deep agent."""
    return await agent_with_tools(link, url, path, point, answers, create_deep_agent)


async def converse(graph: Any, first: Any, answers: Sequence[Any], fate: Fate) -> Any:
    snapshot = await graph.aget_state(THREAD)
    given = None if snapshot.created_at else first  # None: go on; an interrupt that is open is raised again
    left = list(answers)
    while True:
        out = await graph.ainvoke(given, THREAD, durability="sync")
        snapshot = await graph.aget_state(THREAD)
        if not snapshot.next:
            return [message.content for message in out["messages"]][-1] if "messages" in out else out["seen"]
        (asked,) = [one.value for one in snapshot.interrupts]
        fate.passes("asked")
        if not left:
            return asked
        given = Command(resume=left.pop(0))


class Seen(TypedDict):
    seen: Annotated[list[str], operator.add]


async def graph_with_nodes(link: Link, url: str, path: Path, point: str, answers: Sequence[str] = ()) -> Any:
    """draft (two steps) → pay (effects around an interrupt) → tell."""
    ledger, fate = Ledger(path), Fate(point)

    @step(flush=True)
    async def think(number: int) -> str:
        ledger.note(f"think {number}")
        return f"thought {number}"

    @effect(keyed=True)
    async def charge(cents: int) -> str:
        ledger.note(f"charge {cents}")
        await asyncio.sleep(0)
        return f"receipt {cents}"

    @effect
    async def mail(to: str) -> str:
        ledger.note(f"mail {to}")
        fate.passes("in mail")
        return "sent"

    async with Perdure(url) as app:

        @durable_node(app)
        async def draft(state: Seen) -> dict[str, list[str]]:
            first = await think(1)
            fate.passes("thought 1")
            second = await think(2)
            fate.passes("thought 2")
            return {"seen": [first, second]}

        @durable_node(app)
        async def pay(state: Seen) -> dict[str, list[str]]:
            receipt = await charge(100)
            await think(3)  # the outcome of the effect before it is on disk
            fate.passes("charged")
            agreed = interrupt(f"ship after {receipt}?")
            fate.passes("answered")
            return {"seen": [receipt, agreed, await charge(7)]}

        @durable_node(app)
        async def tell(state: Seen) -> dict[str, list[str]]:
            return {"seen": [str(await mail("ada"))]}

        graph = (
            StateGraph(Seen)
            .add_node("draft", draft)
            .add_node("pay", pay)
            .add_node("tell", tell)
            .add_edge(START, "draft")
            .add_edge("draft", "pay")
            .add_edge("pay", "tell")
            .compile(checkpointer=PerdureSaver(app))
        )
        return await converse(graph, {"seen": []}, answers, fate)


async def nested_graph(link: Link, url: str, path: Path, point: str, answers: Sequence[str] = ()) -> Any:
    """A graph in a graph: the inner node pays around an interrupt, and sends the outer graph on by a command."""
    ledger, fate = Ledger(path), Fate(point)

    @effect
    async def pay(cents: int) -> str:
        ledger.note(f"pay {cents}")
        fate.passes(f"pay {cents}")
        return f"paid {cents}"

    @step(flush=True)
    async def settle() -> None:
        """Afterwards the outcome of the effect before it is on disk."""

    async with Perdure(url) as app:

        @durable_node(app)
        async def inner(state: Seen) -> Command[str]:
            first = await pay(1)
            await settle()
            fate.passes("between")
            agreed = interrupt(f"more after {first}?")
            fate.passes("answered")
            said = [first, agreed, await pay(2)]
            return Command(graph=Command.PARENT, goto="tell", update={"seen": said})

        @durable_node(app)
        async def tell(state: Seen) -> dict[str, list[str]]:
            return {"seen": [await pay(3)]}

        below = StateGraph(Seen).add_node("inner", inner).add_edge(START, "inner").compile()
        graph = (
            StateGraph(Seen)
            .add_node("below", below, destinations=("tell",))
            .add_node("tell", tell)
            .add_edge(START, "below")
            .compile(checkpointer=PerdureSaver(app))
        )
        return await converse(graph, {"seen": []}, answers, fate)
