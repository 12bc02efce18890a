"""What the guide says of handoffs, agents as tools, MCP servers and streams; each is replayed without a second call."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest
from agents import (
    Agent,
    RunConfig,
    ToolGuardrailFunctionOutput,
    Usage,
    function_tool,
    handoff,
    tool_input_guardrail,
)
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from mcp.types import CallToolResult, Tool

from perdure import Perdure, durable, pause
from perdure.integrations.openai_agents import DurableRunner, durable_tool

QUIET = RunConfig(tracing_disabled=True)


class Shop(MCPServer):
    """A server in this process that counts."""

    def __init__(self, happened: Counter[str]) -> None:
        super().__init__()
        self.happened = happened

    @property
    def name(self) -> str:
        return "shop"

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any, **__: Any) -> list[Tool]:
        self.happened["listed"] += 1
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        reads = {"name": "price", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
        return [Tool.model_validate(reads), Tool.model_validate({"name": "buy", "inputSchema": schema})]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        self.happened[tool_name] += 1
        if tool_name == "buy" and self.happened["buy"] == 1:
            raise TimeoutError("no answer from the shop")
        return CallToolResult.model_validate({"content": [{"type": "text", "text": f"{tool_name} ok"}]})

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("is_made", [True, False])
async def test_handoffs_agents_as_tools_and_mcp_servers_are_recorded(folder: Any, is_made: bool) -> None:
    happened: Counter[str] = Counter()

    @durable_tool
    async def note(text: str) -> str:
        """Note something."""
        happened["note"] += 1
        return "noted"

    helper_model = ScriptedModel([[assistant_message("advice")]])
    helper = Agent(name="helper", model=helper_model)
    buyer_model = ScriptedModel(
        [
            [function_call("price", {}, call_id="p")],
            [function_call("buy", {}, call_id="b")],
            [function_call("note", {"text": "x"}, call_id="n")],
            [assistant_message("bought")],
        ]
    )
    buyer = Agent(name="buyer", model=buyer_model, tools=[note], mcp_servers=[Shop(happened)])
    first_model = ScriptedModel(
        [[function_call("advise", {"input": "?"}, call_id="a")], [function_call("transfer_to_buyer", {}, call_id="h")]]
    )
    first = Agent(
        name="first",
        model=first_model,
        tools=[helper.as_tool("advise", "Ask for advice")],
        handoffs=[handoff(buyer) if is_made else buyer],
    )

    @durable
    async def work() -> str:
        result = await DurableRunner.run(first, "buy it", run_config=QUIET)
        await pause.approval("Go on?")
        return str(result.final_output)

    async with Perdure(folder / "p.db") as app:
        assert (await app.run_until_paused("w", work)).is_paused
        (question,) = (await app.inbox.page()).items
        assert question.kind == "effect" and happened["buy"] == 1  # the model was not told to try again
        await app.inbox.settle(question.id, "done")
        assert (await app.run_until_paused("w", work)).is_paused
        (question,) = (await app.inbox.page()).items
        await app.inbox.approve(question.id)
        assert await app.run("w", work) == "bought"
        assert sorted(one.name for one in await app.effects.of("w")) == ["advise", "buy", "note"]  # `price` only reads
    assert happened == {"listed": happened["listed"], "price": 1, "buy": 1, "note": 1}
    assert [len(model.calls) for model in (first_model, helper_model, buyer_model)] == [2, 1, 4]


async def test_a_tool_keeps_its_guardrails_and_a_replay_counts_what_the_model_cost(folder: Any) -> None:
    ran: list[str] = []

    @tool_input_guardrail
    def no_more_than_ten(data: Any) -> ToolGuardrailFunctionOutput:
        if "99" in data.context.tool_arguments:
            return ToolGuardrailFunctionOutput.reject_content("too much")
        return ToolGuardrailFunctionOutput.allow()

    @function_tool(tool_input_guardrails=[no_more_than_ten])
    async def pay(cents: int) -> str:
        """Pay."""
        ran.append(f"paid {cents}")
        return "paid"

    class Charging(ScriptedModel):
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            response = await super().get_response(*args, **kwargs)
            return dataclasses.replace(response, usage=Usage(requests=1, total_tokens=5))

    says = [[function_call("pay", {"cents": n}, call_id=str(n))] for n in (99, 5)]
    agent = Agent(name="clerk", model=Charging([*says, [assistant_message("done")]]), tools=[pay])

    @durable
    async def work() -> list[Any]:
        result = await DurableRunner.run(agent, "pay", run_config=QUIET)
        await pause.approval("Go on?")
        told = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
        return [result.context_wrapper.usage.total_tokens, *told]

    async with Perdure(folder / "p.db") as app:
        assert (await app.run_until_paused("w", work)).is_paused
        await app.inbox.approve((await app.inbox.page()).items[0].id)
        assert await app.run("w", work) == [15, "too much", "paid"]
    assert ran == ["paid 5"]


class Elsewhere:
    """A session of another kind, whose service breaks once after it has added."""

    def __init__(self) -> None:
        self.session_id, self.session_settings = "elsewhere", None
        self.items: list[Any] = []
        self.calls: list[str] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        self.calls.append("get")
        return list(self.items)

    async def add_items(self, items: list[Any]) -> None:
        self.calls.append("add")
        self.items += items
        if self.calls.count("add") == 1:
            raise TimeoutError("no answer from the service")

    async def pop_item(self) -> Any:
        return self.items.pop()

    async def clear_session(self) -> None:
        self.items.clear()


async def test_a_session_of_another_kind_is_asked_about_and_read_once(folder: Any) -> None:
    agent = Agent(name="clerk", model=ScriptedModel([[assistant_message("done")]]))
    session = Elsewhere()

    @durable
    async def work() -> str:
        result = await DurableRunner.run(agent, "hello", session=session, run_config=QUIET)
        return str(result.final_output)

    async with Perdure(folder / "p.db") as app:
        stopped = await app.run_until_paused("w", work)
        assert stopped.is_paused and session.calls.count("add") == 1  # it does not know keys, so it is not called again
        await app.inbox.settle((await app.inbox.page()).items[0].id, "done")
        assert await app.run("w", work) == "done"
    assert session.calls.count("get") == 1 and session.items[0]["content"] == "hello"
    assert len(session.items) == 2


async def test_a_tool_made_by_durable_tool_is_an_effect_and_a_person_may_say_why_not(folder: Any) -> None:
    @durable_tool
    async def pay() -> str:
        """Pay."""
        raise TimeoutError("no answer from the bank")

    @function_tool(needs_approval=True)
    async def refund() -> str:
        """Refund."""
        return "refunded"

    calls = [[function_call(name, {}, call_id=name)] for name in ("pay", "refund")]
    agent = Agent(name="clerk", model=ScriptedModel([*calls, [assistant_message("done")]]), tools=[pay, refund])

    @durable
    async def work() -> list[str]:
        result = await DurableRunner.run(agent, "pay", run_config=QUIET)
        return [item.output for item in result.new_items if item.type == "tool_call_output_item"]

    async with Perdure(folder / "p.db") as app:
        assert (await app.run_until_paused("w", work)).is_paused
        (question,) = (await app.inbox.page()).items
        assert question.kind == "effect"
        await app.inbox.settle(question.id, "done", value="receipt 7")
        assert (await app.run_until_paused("w", work)).is_paused
        await app.inbox.reject((await app.inbox.page()).items[0].id, comment="not before Monday")
        assert await app.run("w", work) == ["receipt 7", "not before Monday"]


async def test_a_streamed_run_is_not_asked_again_in_a_replay(folder: Any) -> None:
    model = ScriptedModel([[function_call("ship", {}, call_id="s")], [assistant_message("sent")]])
    happened: Counter[str] = Counter()

    @durable_tool
    async def ship() -> str:
        """Ship it."""
        happened["ship"] += 1
        return "shipped"

    agent = Agent(name="clerk", model=model, tools=[ship])

    @durable
    async def work() -> list[str]:
        result = DurableRunner.run_streamed(agent, "ship it", run_config=QUIET)
        seen = [event.type async for event in result.stream_events()]
        await pause.approval("Go on?")
        return [str(result.final_output), *seen]

    async with Perdure(folder / "p.db") as app:
        assert (await app.run_until_paused("w", work)).is_paused
        (question,) = (await app.inbox.page()).items
        await app.inbox.approve(question.id)
        told = await app.run("w", work)
    assert told[0] == "sent" and "raw_response_event" in told
    assert happened["ship"] == 1 and len(model.calls) == 2
