"""A Pydantic AI agent inside a durable function. Kill it at any line it prints, and start it again.

    pip install 'perdure[pydantic-ai]'
    python examples/pydantic_ai_agent.py

It looks a price up, pays, and asks before it refunds. The model is scripted, so that it runs offline. Killed while it
pays, it does not pay again by itself: `perdure inbox` shows the question, and `perdure answer order-7 done` settles it.
When it asks for approval, `perdure approve order-7` lets it continue; no process has to wait for that.
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from perdure import Perdure, durable
from perdure.integrations.pydantic_ai import PerdureDurability


async def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    answered = sum(isinstance(message, ModelResponse) for message in messages)
    print("model call", answered + 1, flush=True)
    calls = [
        ToolCallPart("price_of", {"order": "ord-7"}, tool_call_id="call-1"),
        ToolCallPart("pay", {"order": "ord-7", "cents": 4200}, tool_call_id="call-2"),
        ToolCallPart("refund", {"order": "ord-7", "cents": 200}, tool_call_id="call-3"),
    ]
    return ModelResponse(parts=[calls[answered] if answered < len(calls) else TextPart("Order ord-7 is settled.")])


agent = Agent(FunctionModel(script), name="clerk", capabilities=[PerdureDurability()])


@agent.tool_plain(metadata={"perdure": {"kind": "step"}})  # it only reads: cut off, it runs again
async def price_of(order: str) -> int:
    """Look up the price of an order."""
    print("looking up", flush=True)
    return 4400


@agent.tool_plain  # an effect: never repeated silently
async def pay(order: str, cents: int) -> str:
    """Pay for an order."""
    print("paying", flush=True)
    await asyncio.sleep(1)
    print("paid", flush=True)
    return "paid"


@agent.tool_plain(requires_approval=True)  # waits in the inbox
async def refund(order: str, cents: int) -> str:
    """Give money back."""
    print("refunded", flush=True)
    return "refunded"


@durable
async def handle_order(order: str) -> str:
    return (await agent.run(f"Settle order {order}.")).output


async def main() -> None:
    async with Perdure() as app:
        stopped = await app.run_until_paused("order-7", handle_order, "ord-7")
        if stopped.is_paused:
            print("waits:", stopped.pause.message if stopped.pause else "")
        else:
            print(stopped.result)


asyncio.run(main())
