"""`PerdureDurability`: the engine that records what an agent does, on Pydantic AI's public durability API."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from pydantic_ai import exceptions
from pydantic_ai.agent.abstract import EventStreamHandler
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    CapabilityOperationId,
    DurabilityEngineSpec,
    DurableOperationId,
    JournalCallableOperationBackend,
    ModelRequestId,
    OperationConfigRole,
    RoleBasedOperationConfig,
    ToolsetCallToolId,
    conversation_id_from_run_id,
)
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.tools import (
    AgentDepsT,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from pydantic_core import to_jsonable_python

import perdure
from perdure import pause, recorded
from perdure.integrations.pydantic_ai import model_errors

Unit: TypeAlias = Mapping[str, Any]  # "kind" ("step" or "effect") and options of @step or @effect
_MOST_RATE_LIMITS = 100  # in a row, for one request
_FAILED = "perdure.model_error"


class PerdureDurability(BaseDurabilityCapability[AgentDepsT]):
    """Record each model request as a step and each tool call as an effect of the durable function around the agent.

    model      options of the steps for model requests, such as {"timeout": "2m"}
    tool       what a tool is when its metadata does not say: {"kind": "effect"} by default
    approvals  a tool that requires approval pauses the task; its question stands in the inbox
    limits     a rate limit of the provider pauses the task until the provider takes requests again
    announce   called with a deferred tool call and the token by which its result is brought:
               `perdure callback TOKEN --value …`, or POST /v1/callbacks/TOKEN

    A single tool is set by its metadata: `metadata={"perdure": {"kind": "step"}}` for a tool that only reads. Options
    of `@effect` stand beside it: {"kind": "effect", "keyed": True}.
    """

    engine_spec = DurabilityEngineSpec(
        engine_name="perdure",
        durable_unit_noun="step",
        durable_container_noun="durable function",
        codec=JSON_CODEC,
        toolset_lifecycles={"function": "enter-always", "mcp": "enter-in-durable-unit", "dynamic": "enter-never"},
        tool_config_key="perdure",
    )

    def __init__(
        self,
        *,
        models: Mapping[str, Model] | None = None,
        event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
        name: str | None = None,
        model: Unit | None = None,
        tool: Unit | None = None,
        approvals: bool = True,
        limits: bool = True,
        announce: Callable[[ToolCallPart, str], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(models=models, event_stream_handler=event_stream_handler, name=name)
        self._model = {"kind": "step", "flush": True, **(model or {})}
        self._tool = {"kind": "effect", **(tool or {})}
        self._approvals, self._limits, self._announce = approvals, limits, announce
        self._has_warned = False

    @property
    def in_durable_context(self) -> bool:
        here = perdure.current()
        if here is None and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "this agent has PerdureDurability and runs outside of a durable function: nothing is recorded. "
                "Call agent.run in a function with @durable, started by app.run.",
                stacklevel=2,
            )
        return here is not None and not here.is_body

    def get_default_run_id(self) -> str | None:
        here = perdure.current()
        return f"{here.task_id}:{recorded.uuid4().hex[:8]}" if here is not None and not here.is_body else None

    def get_default_conversation_id(self, run_id: str) -> str | None:
        return conversation_id_from_run_id(run_id) if self.in_durable_context else None

    async def get_run_start_time(self, run_id: str) -> datetime | None:
        return recorded.now() if self.in_durable_context else None

    def get_durable_operation_backend(self) -> _Journal:
        def of_tool(operation_id: DurableOperationId, tool: Any, name: str) -> dict[str, Any] | Literal[False]:
            if not isinstance(operation_id, ToolsetCallToolId):
                return {"kind": "step"}  # listing tools and checking arguments touch nothing
            resolved = self._build_resolve_tool_config(self._tool)(tool, name)
            return resolved if resolved is False else dict(resolved)

        step = {"kind": "step"}
        config = _Config(model=self._model, event=step, capability=step, tool=self._tool, resolve_tool=of_tool)
        return _Journal(
            agent_name=self.name, default_model_id=self.default_model_id, config=config, pauses_at_limits=self._limits
        )

    def _toolset_base_config(self, kind: Any) -> Any:
        return self._tool

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[AgentDepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Approvals wait in the inbox, deferred tools for a callback. No process is held meanwhile."""
        if not (self._approvals and self.in_durable_context):
            return None
        results = DeferredToolResults()
        for call in requests.approvals:
            asked = f"{call.tool_name}({call.args_as_json_str()})"
            try:
                await pause.approval(f"Run {asked}?")
            except pause.Rejected as no:
                results.approvals[call.tool_call_id] = ToolDenied(no.comment or "A person rejected this call.")
            else:
                results.approvals[call.tool_call_id] = ToolApproved()
        brought = await asyncio.gather(*(self._bring(call) for call in requests.calls))
        results.calls.update(zip((call.tool_call_id for call in requests.calls), brought, strict=True))
        return results

    async def _bring(self, call: ToolCallPart) -> Any:
        """The result of a deferred call, which another system or a person brings."""

        async def announce(token: str) -> None:
            if self._announce is not None:
                await self._announce(call, token)

        return await pause.callback(f"{call.tool_name}({call.args_as_json_str()})", announce=announce)


class _Config(RoleBasedOperationConfig[dict[str, Any]]):
    """A call on a workspace is a keyed effect: cut off, it is made again under its key, and finds its command."""

    def base(self, role: OperationConfigRole, *, operation_id: DurableOperationId) -> dict[str, Any]:
        if isinstance(operation_id, CapabilityOperationId) and operation_id.capability_id == "workspace":
            return {"kind": "effect", "keyed": True}
        return super().base(role, operation_id=operation_id)


class _Journal(JournalCallableOperationBackend[dict[str, Any]]):
    """Runs each operation of an agent as a recorded call."""

    def __init__(self, *, pauses_at_limits: bool, **settings: Any) -> None:
        super().__init__(**settings)
        self._pauses_at_limits = pauses_at_limits

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: dict[str, Any],
    ) -> object:
        if isinstance(operation_id, ModelRequestId):
            return await self._request(name, body, config)

        async def carry_out(**arguments: Any) -> object:
            return await body()

        return await perdure.call(carry_out, name=name, kwargs=_arguments(operation_id, cache_key), **config)

    async def _request(self, name: str, body: Callable[[], Awaitable[object]], config: dict[str, Any]) -> object:
        async def ask() -> object:
            try:
                return await body()
            except exceptions.ModelHTTPError as error:
                return {_FAILED: model_errors.as_data(error)}

        for tries_left in reversed(range(_MOST_RATE_LIMITS)):
            answer = await perdure.call(ask, name=name, raises=model_errors.OTHERS, **config)
            if not (isinstance(answer, dict) and _FAILED in answer):
                return answer
            failed = answer[_FAILED]
            if not (self._pauses_at_limits and tries_left and model_errors.is_rate_limit(failed)):
                raise model_errors.from_data(failed)
            await pause.rate_limit(retry_after=failed["retry_after"], provider=failed["model_name"])
        raise AssertionError("the last try returns or raises")


def _arguments(operation_id: DurableOperationId, cache_key: tuple[object, ...]) -> dict[str, Any]:
    """The arguments of a tool call, for people who read the journal and the inbox."""
    if not isinstance(operation_id, ToolsetCallToolId):
        return {}
    given = cache_key[1] if len(cache_key) > 1 and isinstance(cache_key[1], dict) else {}
    shown: dict[str, Any] = to_jsonable_python(given, fallback=str)
    return shown
