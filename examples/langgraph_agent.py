"""A LangGraph agent with tools. Kill it at any line it prints, and start it again.

    pip install 'perdure[langgraph]' langchain
    python examples/langgraph_agent.py

It looks a price up, pays, and says what it did. The model is scripted, so that it runs offline; every other part is
real. Killed while it pays, it does not pay again by itself: it asks whether the payment happened, and you answer
`done`, `retry` or `fail` as its argument:

    python examples/langgraph_agent.py done
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.types import Command

from perdure import Perdure
from perdure.integrations.langgraph import DurableTools, PerdureSaver


class ScriptedModel(GenericFakeChatModel):
    """Calls both tools, one after the other, then ends."""

    messages: Any = iter(())

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        answered = [message for message in messages if isinstance(message, ToolMessage)]
        print("model call", len(answered) + 1, flush=True)
        calls = [
            {"name": "price_of", "args": {"order": "ord-7"}, "id": "call-1"},
            {"name": "pay", "args": {"order": "ord-7", "cents": 4200}, "id": "call-2"},
        ]
        if len(answered) < len(calls):
            reply = AIMessage("", tool_calls=[calls[len(answered)]])
        else:
            reply = AIMessage(f"Order ord-7: {answered[-1].content}")
        return ChatResult(generations=[ChatGeneration(message=reply)])


@tool
async def price_of(order: str) -> str:
    """Look up the price of an order."""
    print("looking up", flush=True)
    return "4200 cents"


@tool
async def pay(order: str, cents: int) -> str:
    """Pay for an order."""
    print("paying", flush=True)
    await asyncio.sleep(1)  # the payment is on its way: kill it here
    print("paid", flush=True)
    return f"paid {cents} cents"


async def main() -> None:
    async with Perdure() as app:
        saver = PerdureSaver(app)
        agent = create_agent(
            ScriptedModel(),
            [price_of, pay],
            middleware=[DurableTools(app, price_of="step")],  # it only reads; pay is an effect
            checkpointer=saver,
        )
        thread: Any = {"configurable": {"thread_id": "order-7"}}
        async with saver.thread("order-7"):  # one process at a time
            before = await agent.aget_state(thread)
            given: Any = None if before.created_at else {"messages": [HumanMessage("Buy order ord-7.")]}
            if before.interrupts and sys.argv[1:]:
                given = Command(resume=sys.argv[1])
            told = await agent.ainvoke(given, thread, durability="sync")
        for question in told.get("__interrupt__", ()):
            print(question.value["question"], "Answer with:", ", ".join(question.value["choices"]))
        print(told["messages"][-1].content)


asyncio.run(main())
