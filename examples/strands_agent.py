"""An agent of Strands inside a durable function. Kill it at any line it prints, and start it again.

    pip install 'perdure[strands]'
    python examples/strands_agent.py

It looks a price up and pays. The model is scripted, so that it runs offline and needs no key. Killed while it pays, it
does not pay again by itself: `perdure inbox` shows the question, and `perdure answer order-7 done` settles it.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from strands import Agent, tool
from strands.models import Model

from perdure import Perdure, durable
from perdure.integrations.strands import DurableAgent


class ScriptedModel(Model):
    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        answered = sum("toolResult" in block for message in messages for block in message["content"])
        print("model call", answered + 1, flush=True)
        calls: Any = [("price_of", {"order": "ord-7"}), ("pay", {"order": "ord-7", "cents": 4200})]
        yield {"messageStart": {"role": "assistant"}}
        if answered < len(calls):
            name, arguments = calls[answered]
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"call-{answered}", "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Order ord-7 is paid."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if answered < len(calls) else "end_turn"}}


@tool
async def price_of(order: str) -> str:
    """Look up the price of an order."""
    print("looking up", flush=True)
    return "4200"


@tool
async def pay(order: str, cents: int) -> str:
    """Pay for an order."""
    print("paying", flush=True)
    await asyncio.sleep(1)
    print("paid", flush=True)
    return "paid"


def make_agent() -> Agent:
    return Agent(model=ScriptedModel(), tools=[price_of, pay], callback_handler=None)


# `price_of` only reads: cut off, it runs again. `pay` is an effect, which is never repeated silently.
agent = DurableAgent(make_agent, how={"price_of": "step"})


@durable
async def handle_order(order: str) -> str:
    return str(await agent.run(f"Pay order {order}.")).strip()


async def main() -> None:
    async with Perdure() as app:
        stopped = await app.run_until_paused("order-7", handle_order, "ord-7")
        if stopped.is_paused:
            print("waits:", stopped.pause.message if stopped.pause else "")
        else:
            print(stopped.result)


asyncio.run(main())
