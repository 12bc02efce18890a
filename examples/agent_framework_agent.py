"""An agent of the Agent Framework inside a durable function. Kill it at any line it prints, and start it again.

    pip install 'perdure[agent-framework]'
    python examples/agent_framework_agent.py

It looks a price up and pays. The model is scripted, so that it runs offline and needs no key. Killed while it pays, it
does not pay again by itself: `perdure inbox` shows the question, and `perdure answer order-7 done` settles it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from perdure import Perdure, durable
from perdure.integrations.agent_framework import DurableAgent


class ScriptedModel(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> ChatResponse:
        answered = sum(one.type == "function_result" for message in messages for one in message.contents)
        print("model call", answered + 1, flush=True)
        script: list[Any] = [
            [Content.from_function_call("call-1", "price_of", arguments={"order": "ord-7"})],
            [Content.from_function_call("call-2", "pay", arguments={"order": "ord-7", "cents": 4200})],
            ["Order ord-7 is paid."],
        ]
        return ChatResponse(messages=[Message("assistant", script[answered])])


@tool
async def price_of(order: str) -> int:
    """Look up the price of an order."""
    print("looking up", flush=True)
    return 4200


@tool
async def pay(order: str, cents: int) -> str:
    """Pay for an order."""
    print("paying", flush=True)
    await asyncio.sleep(1)
    print("paid", flush=True)
    return "paid"


# `price_of` only reads: cut off, it runs again. `pay` is an effect, which is never repeated silently.
agent = DurableAgent(Agent(client=ScriptedModel(), tools=[price_of, pay]), how={"price_of": "step"})


@durable
async def handle_order(order: str) -> str:
    return (await agent.run(f"Pay order {order}.")).text


async def main() -> None:
    async with Perdure() as app:
        stopped = await app.run_until_paused("order-7", handle_order, "ord-7")
        if stopped.is_paused:
            print("waits:", stopped.pause.message if stopped.pause else "")
        else:
            print(stopped.result)


asyncio.run(main())
