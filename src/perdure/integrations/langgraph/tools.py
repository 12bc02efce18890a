"""`DurableTools`: middleware for `create_agent` and deep agents. A tool that was cut off is not repeated silently."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from perdure import durable, effect, step
from perdure._ground.bridge import on_a_loop
from perdure.errors import EffectUncertain, StepFailed
from perdure.integrations.langgraph.graph_attempts import Bubble, part_of_thread, run_in_graph
from perdure.integrations.langgraph.thread_lease import inner_app
from perdure.integrations.tool_options import How, options_of

if TYPE_CHECKING:
    from perdure import Perdure
    from perdure.sync import Perdure as BlockingPerdure

Told: TypeAlias = "ToolMessage | Command[Any]"
Handler: TypeAlias = Callable[[ToolCallRequest], Awaitable[Told]]

_serde = JsonPlusSerializer()
_BUBBLED = ("perdure.bubbled", b"")  # recorded when LangGraph stopped the tool: it is run again when the graph resumes


class _Call(NamedTuple):
    work: Callable[[], Awaitable[Told]]
    unit: Callable[..., Awaitable[tuple[str, bytes]]]
    bubble: Bubble


_call: ContextVar[_Call] = ContextVar("perdure_langgraph_tool_call")


@durable(name="langgraph.tool_call")
async def _run_tool(name: str, args: dict[str, Any]) -> tuple[str, bytes]:
    while (told := await _call.get().unit(**args)) == _BUBBLED:
        await _call.get().bubble.leave()  # an earlier attempt's is passed over: the tool is run again
    return told


def _unit(tool: str, how: How) -> Callable[..., Awaitable[tuple[str, bytes]]]:
    """The recorded form of a tool's call."""
    options = options_of(tool, how)
    kind = options.pop("kind")

    async def carry_out(**args: Any) -> tuple[str, bytes]:
        call = _call.get()
        try:
            return _serde.dumps_typed(await call.work())
        except GraphBubbleUp as error:
            call.bubble.note(error)
            return _BUBBLED

    decorate = effect if kind == "effect" else step
    recorded: Callable[..., Awaitable[tuple[str, bytes]]] = decorate(name=tool, **options)(carry_out)
    return recorded


class DurableTools(AgentMiddleware[Any, Any]):
    """Record each tool call of an agent, so that a process that dies repeats no finished one.

        durable = DurableTools(app, look_up="step")
        agent = create_agent(model, tools, middleware=[durable], checkpointer=PerdureSaver(app))

    A tool is an *effect* unless it is said otherwise: cut off half-way, it interrupts the graph and a person says
    `done`, `retry` or `fail` (`Command(resume="done")`, or perdure's inbox). A *step* may be repeated: use it for tools
    that only read. A *plain* tool is not recorded. A mapping gives options of `@effect`, as in
    `pay={"kind": "effect", "verify": find_payment}`. Without an app (`None`) every tool is plain: that switches
    durability off.
    """

    def __init__(
        self, app: Perdure | BlockingPerdure | None, *, default: How = "effect", prefix: str = "lg", **tools: How
    ) -> None:
        super().__init__()
        self._app: Perdure | None = None if app is None else inner_app(app)
        self._default, self._prefix, self._tools = default, prefix, tools
        self._units: dict[str, Callable[..., Awaitable[tuple[str, bytes]]]] = {}

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Told:
        if self._app is None:
            return await handler(request)

        async def work() -> Told:
            return await handler(request)

        return await self._wrap(self._app, request, work)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Told]) -> Told:
        if self._app is None:
            return handler(request)

        async def work() -> Told:
            return handler(request)

        return on_a_loop(self._wrap(self._app, request, work))

    async def _wrap(self, app: Perdure, request: ToolCallRequest, work: Callable[[], Awaitable[Told]]) -> Told:
        call, how = request.tool_call, self._tools.get(request.tool_call["name"], self._default)
        thread = request.runtime.config.get("configurable", {}).get("thread_id")
        if options_of(call["name"], how)["kind"] == "plain" or thread is None:
            return await work()
        unit = self._units.get(call["name"]) or self._units.setdefault(call["name"], _unit(call["name"], how))

        def enter(bubble: Bubble) -> None:
            _call.set(_Call(work, unit, bubble))

        part = part_of_thread(str(thread), _place(request), call["name"], self._prefix)
        try:
            typed = await run_in_graph(app, part, _run_tool, call["name"], call["args"], enter=enter)
        except (StepFailed, EffectUncertain) as failed:  # the second: a person said that it failed
            return ToolMessage(failed.what, tool_call_id=call["id"], name=call["name"], status="error")
        if not isinstance(typed, tuple | list):  # a person settled it with a plain result, or with none
            text = "It happened. Its result is not known." if typed is None else str(typed)
            return ToolMessage(text, tool_call_id=call["id"], name=call["name"])
        told: Told = _serde.loads_typed((typed[0], typed[1]))
        return told


def _place(request: ToolCallRequest) -> str:
    """The identity of this call within its thread, the same after a restart.

    Some models count their calls anew in each message, or give one id to two calls of a message. So the message that
    makes the call is a part of it, and so are the arguments where the message has other calls of the same id.
    """
    call = request.tool_call
    for message in reversed(_messages(request.state)):
        same = [one for one in getattr(message, "tool_calls", None) or () if one["id"] == call["id"]]
        if same:
            others = any((one["name"], one["args"]) != (call["name"], call["args"]) for one in same)
            said = repr((call["name"], call["args"])) if others else ""
            return f"{call['id']}:{_digest(f'{message.id}{said}')}"
    return str(call["id"])


def _messages(state: Any) -> list[Any]:
    if isinstance(state, list):
        return state
    found = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    return list(found or ())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
