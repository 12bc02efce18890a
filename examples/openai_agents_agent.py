"""An OpenAI agent inside a durable function. Kill it at any line it prints, and start it again.

    pip install 'perdure[openai-agents]'
    python examples/openai_agents_agent.py

It looks a price up and pays. The model is scripted, so that it runs offline and needs no key. Killed while it pays, it
does not pay again by itself: `perdure inbox` shows the question, and `perdure answer order-7 done` settles it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, Model, RunConfig, Usage
from agents.items import ModelResponse
from agents.testing import assistant_message, function_call

from perdure import Perdure, durable
from perdure.integrations.openai_agents import DurableRunner, durable_tool


class ScriptedModel(Model):
    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        outputs = [one for one in input if one.get("type") == "function_call_output"] if isinstance(input, list) else []
        print("model call", len(outputs) + 1, flush=True)
        script: list[Any] = [
            [function_call("price_of", {"order": "ord-7"}, call_id="call-1")],
            [function_call("pay", {"order": "ord-7", "cents": 4200}, call_id="call-2")],
            [assistant_message("Order ord-7 is paid.")],
        ]
        return ModelResponse(output=script[len(outputs)], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("this script does not stream")


@durable_tool(how="step")  # it only reads: cut off, it runs again
async def price_of(order: str) -> int:
    """Look up the price of an order."""
    print("looking up", flush=True)
    return 4200


@durable_tool  # an effect: never repeated silently
async def pay(order: str, cents: int) -> str:
    """Pay for an order."""
    print("paying", flush=True)
    await asyncio.sleep(1)
    print("paid", flush=True)
    return "paid"


agent = Agent(name="clerk", model=ScriptedModel(), tools=[price_of, pay])


@durable
async def handle_order(order: str) -> str:
    result = await DurableRunner.run(agent, f"Pay order {order}.", run_config=RunConfig(tracing_disabled=True))
    return str(result.final_output)


async def main() -> None:
    async with Perdure() as app:
        stopped = await app.run_until_paused("order-7", handle_order, "ord-7")
        if stopped.is_paused:
            print("waits:", stopped.pause.message if stopped.pause else "")
        else:
            print(stopped.result)


asyncio.run(main())
