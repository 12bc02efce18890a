"""`DurableRunner`: run an OpenAI agent inside a durable function."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    Model,
    RunConfig,
    RunContextWrapper,
    Runner,
    RunResult,
    RunResultStreaming,
)
from agents.items import ToolApprovalItem
from agents.memory import Session
from agents.run_state import RunState

import perdure
from perdure import pause
from perdure.integrations.openai_agents.mcp_servers import recorded_server
from perdure.integrations.openai_agents.models import DurableProvider, recorded_model
from perdure.integrations.openai_agents.session import RecordedSession
from perdure.integrations.openai_agents.tools import recorded_tool
from perdure.integrations.tool_options import How


class DurableRunner:
    """`Runner` with the same arguments, for a durable function's own code.

    Each model call is a step. Each function tool is an effect unless `how` says otherwise, by the tool's name:
    `how={"search": "step", "pay": {"kind": "effect", "keyed": True}}`. A tool that needs approval pauses the task, and
    its question stands in the inbox. Handoffs are followed. Outside of a durable function it is the plain `Runner`.
    """

    @classmethod
    async def run(
        cls,
        starting_agent: Agent[Any],
        input: Any,
        *,
        how: Mapping[str, How] | None = None,
        run_config: RunConfig | None = None,
        session: Session | None = None,
        **options: Any,
    ) -> RunResult:
        if perdure.current() is None:
            return await Runner.run(starting_agent, input, run_config=run_config, session=session, **options)
        agent = _recorded(starting_agent, how or {}, {})
        more = {**options, "run_config": _config(run_config), "session": RecordedSession.of(session)}
        result = await Runner.run(agent, input, **more)
        while result.interruptions:
            result = await Runner.run(agent, await _decided(result), **more)
        return result

    @classmethod
    def run_streamed(
        cls,
        starting_agent: Agent[Any],
        input: Any,
        *,
        how: Mapping[str, How] | None = None,
        run_config: RunConfig | None = None,
        session: Session | None = None,
        **options: Any,
    ) -> RunResultStreaming:
        """The events of a streamed run: live the first time, recorded in a replay. Approvals stay with the caller."""
        agent = _recorded(starting_agent, how or {}, {})
        more = {**options, "run_config": _config(run_config), "session": RecordedSession.of(session)}
        return Runner.run_streamed(agent, input, **more)


def _config(config: RunConfig | None) -> RunConfig:
    config = config or RunConfig()
    model = recorded_model(config.model) if isinstance(config.model, Model) else config.model
    return dataclasses.replace(config, model=model, model_provider=DurableProvider(config.model_provider))


def _recorded(agent: Agent[Any], how: Mapping[str, How], known: dict[int, Agent[Any]]) -> Agent[Any]:
    """A copy of the agent, and of those it may hand over to, whose models and tools are recorded."""
    if id(agent) in known:
        return known[id(agent)]
    copy = known[id(agent)] = agent.clone()
    copy.tools = [
        recorded_tool(tool, how.get(tool.name)) if isinstance(tool, FunctionTool) else tool for tool in agent.tools
    ]
    if isinstance(agent.model, Model):
        copy.model = recorded_model(agent.model)
    copy.handoffs = [
        _recorded(one, how, known) if isinstance(one, Agent) else _recorded_handoff(one, how, known)
        for one in agent.handoffs
    ]
    copy.mcp_servers = [recorded_server(server, how) for server in agent.mcp_servers]
    return copy


def _recorded_handoff(
    handoff: Handoff[Any, Any], how: Mapping[str, How], known: dict[int, Agent[Any]]
) -> Handoff[Any, Any]:
    """A handoff whose agent is recorded. What it does by itself, such as `on_handoff`, is not."""
    invoke = handoff.on_invoke_handoff

    async def hand_over(context: RunContextWrapper[Any], arguments: str) -> Any:
        return _recorded(await invoke(context, arguments), how, known)

    return dataclasses.replace(handoff, on_invoke_handoff=hand_over)


async def _decided(result: RunResult) -> RunState[Any]:
    """The state of the run with every interruption approved or rejected, by a person."""
    state = result.to_state()
    for item in result.interruptions:
        try:
            await pause.approval(_question(item))
        except pause.Rejected as no:
            state.reject(item, rejection_message=no.comment or "A person rejected this call.")
        else:
            state.approve(item)
    return state


def _question(item: ToolApprovalItem) -> str:
    return f"Run {item.name}({item.arguments})?"
