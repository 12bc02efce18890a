"""Measure the cost of an adapter whose durability is off, beside the same agent without the adapter.

One run of an agent is a model call, three tools side by side, and a model call; the model is a script. For the Claude
Agent SDK, whose agent is another program, that program is the script. CPU time of this process is measured, because
the two differ by microseconds. A framework that is not installed is left out. Pydantic AI has no budget: any capability
costs a few percent of such a run, and leaving the capability out costs nothing.
"""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from perdure.bench.figures import Budget, Figure, figure_of
from perdure.bench.rounds import take_turns

if TYPE_CHECKING:
    from perdure import Perdure

Run = Callable[[], Awaitable[object]]
_MOST = 1.01
_TOOLS = 3
_CLI = Path(__file__).with_name("claude_script.py")


async def off_path(quick: bool) -> list[Figure]:
    """A line for each framework that is installed."""
    figures = []
    with ExitStack() as until_done:
        cli = _script_cli(until_done.enter_context(tempfile.TemporaryDirectory(prefix="perdure-bench-")))
        makers: dict[str, tuple[str, Callable[[bool], Run]]] = {
            "LangGraph": ("langchain", _langgraph),
            "Pydantic AI": ("pydantic_ai", _pydantic_ai),
            "OpenAI Agents": ("agents", _openai_agents),
            "Agent Framework": ("agent_framework", _agent_framework),
            "Strands Agents": ("strands", _strands),
            "Claude Agent SDK": ("claude_agent_sdk", lambda is_ours: _claude(cli, is_ours)),
        }
        for name, (module, make) in makers.items():
            if find_spec(module) is not None:
                most = None if make is _pydantic_ai else _MOST
                figures.append(await _beside(name, make(False), make(True), most, quick))
    return figures


async def _beside(name: str, bare: Run, ours: Run, most: float | None, quick: bool) -> Figure:
    times = 10 if quick else 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # make sure that nothing is recorded
        rounds = await take_turns(
            5 if quick else 15, {"floor": lambda: _cpu_ms(bare, times), "ours": lambda: _cpu_ms(ours, times)}
        )
    budget = None if most is None else Budget(rounds["floor"].median * most, f"≤ {most} × floor")
    what = f"{name}: an agent's run with {_TOOLS} tools, durability off"
    return figure_of("adapters", what, "ms", rounds, floor_is="the same agent without perdure, CPU time", budget=budget)


async def _cpu_ms(run: Run, times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.process_time()
        await run()
        taken.append((time.process_time() - began) * 1000)
    return median(taken)


def _langgraph(is_ours: bool) -> Run:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool

    from perdure.integrations.langgraph import DurableTools

    class Script(GenericFakeChatModel):
        messages: Any = iter(())

        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
            calls: Any = [{"name": "look", "args": {"x": x}, "id": str(x)} for x in range(_TOOLS)]
            is_over = isinstance(messages[-1], ToolMessage)
            says = AIMessage("done") if is_over else AIMessage("", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=says)])

    @tool
    async def look(x: int) -> str:
        """Look at a thing."""
        return f"seen {x}"

    agent = create_agent(Script(), [look], middleware=[DurableTools(None)] if is_ours else [])
    return lambda: agent.ainvoke({"messages": [HumanMessage("go")]})


def _pydantic_ai(is_ours: bool) -> Run:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from perdure.integrations.pydantic_ai import PerdureDurability

    def script(messages: Any, info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("look", {"x": x}) for x in range(_TOOLS)])

    capabilities = [PerdureDurability[None]()] if is_ours else []
    agent = Agent(FunctionModel(script), name="bench", capabilities=capabilities)

    @agent.tool_plain
    async def look(x: int) -> str:
        return f"seen {x}"

    return lambda: agent.run("go")


def _openai_agents(is_ours: bool) -> Run:
    from agents import Agent, Model, RunConfig, Runner, Usage, function_tool
    from agents.items import ModelResponse
    from agents.testing import assistant_message, function_call

    from perdure.integrations.openai_agents import DurableRunner, durable_tool

    class Script(Model):
        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
            is_over = isinstance(input, list) and len(input) > 1
            calls = [function_call("look", {"x": x}, call_id=str(x)) for x in range(_TOOLS)]
            says: Any = [assistant_message("done")] if is_over else calls
            return ModelResponse(output=says, usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    async def look(x: int) -> str:
        """Look at a thing."""
        return f"seen {x}"

    agent = Agent(name="bench", model=Script(), tools=[(durable_tool if is_ours else function_tool)(look)])
    runner, config = DurableRunner if is_ours else Runner, RunConfig(tracing_disabled=True)
    return lambda: runner.run(agent, "go", run_config=config)


def _agent_framework(is_ours: bool) -> Run:
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

    from perdure.integrations.agent_framework import DurableAgent

    class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
        async def _inner_get_response(self, *, messages: Any, **options: Any) -> ChatResponse:
            is_over = any(one.type == "function_result" for message in messages for one in message.contents)
            calls = [Content.from_function_call(str(x), "look", arguments={"x": x}) for x in range(_TOOLS)]
            said: Any = ["done"] if is_over else calls
            return ChatResponse(messages=[Message("assistant", said)])

    @tool
    async def look(x: int) -> str:
        """Look at a thing."""
        return f"seen {x}"

    agent: Any = Agent(client=Script(), tools=[look])
    if is_ours:
        agent = DurableAgent(agent)
    return lambda: agent.run("go")


def _strands(is_ours: bool) -> Run:
    from strands import Agent, tool
    from strands.models import Model

    from perdure.integrations.strands import DurableAgent

    class Script(Model):  # type: ignore[misc]
        def update_config(self, **config: Any) -> None: ...

        def get_config(self) -> dict[str, Any]:
            return {}

        def structured_output(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            is_over = any("toolResult" in block for one in messages for block in one["content"])
            yield {"messageStart": {"role": "assistant"}}
            for x in range(1 if is_over else _TOOLS):
                start = {} if is_over else {"toolUse": {"toolUseId": str(x), "name": "look"}}
                part = {"text": "done"} if is_over else {"toolUse": {"input": json.dumps({"x": x})}}
                yield {"contentBlockStart": {"start": start}}
                yield {"contentBlockDelta": {"delta": part}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn" if is_over else "tool_use"}}

    async def look(x: int) -> str:
        """Look at a thing."""
        return f"seen {x}"

    look_tool = tool(look)

    def make_agent() -> Agent:
        return Agent(model=Script(), tools=[look_tool], callback_handler=None)

    if is_ours:
        return lambda: DurableAgent(make_agent).run("go")
    return lambda: make_agent().invoke_async("go")


def _script_cli(folder: str) -> Path:
    """A program that speaks as Claude Code does."""
    program = Path(folder, "claude")
    command = shlex.join([sys.executable, "-I", "-S", str(_CLI), str(_TOOLS)])
    program.write_text(f"#!/bin/sh\nexec {command}\n", encoding="utf-8")
    program.chmod(0o700)
    return program


def _claude(cli: Path, is_ours: bool) -> Run:
    from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool

    from perdure.integrations.claude_agent import DurableClaude

    @tool("look", "Look at a thing", {"x": int})
    async def look(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"seen {args['x']}"}]}

    options, no_app = ClaudeAgentOptions(cli_path=cli), cast("Perdure", None)
    if is_ours:
        claude = DurableClaude(no_app, options, tools={"shop": [look]})
        return lambda: claude.run("go")

    async def run() -> None:
        servers: Any = {"shop": create_sdk_mcp_server("shop", tools=[look])}
        plain = ClaudeAgentOptions(cli_path=cli, mcp_servers=servers, allowed_tools=["mcp__shop__look"])
        async for _ in query(prompt="go", options=plain):
            pass

    return run
