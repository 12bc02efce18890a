"""`DurableTools`: middleware for `create_agent` and deep agents. A tool that was cut off is not repeated silently."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from perdure import durable, effect, step
from perdure._ground.bridge import on_a_loop
from perdure.errors import InvalidInput, StepFailed
from perdure.integrations.langgraph.graph_attempts import Bubble, run_in_graph
from perdure.integrations.langgraph.thread_keys import task_id_of
from perdure.integrations.langgraph.thread_lease import inner_app

if TYPE_CHECKING:
    from perdure import Perdure
    from perdure.sync import Perdure as BlockingPerdure

Told: TypeAlias = "ToolMessage | Command[Any]"
Handler: TypeAlias = Callable[[ToolCallRequest], Awaitable[Told]]
How: TypeAlias = Literal["effect", "step", "plain"] | Mapping[str, Any]

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
    """What a tool's call is recorded as."""
    options = {"kind": how} if isinstance(how, str) else dict(how)
    kind = options.pop("kind", "effect")
    if kind not in ("effect", "step"):
        raise InvalidInput(f"tool {tool!r} cannot be {kind!r}", do="say 'effect', 'step' or 'plain'")

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
    `pay={"kind": "effect", "verify": find_payment}`.
    """

    def __init__(
        self, app: Perdure | BlockingPerdure, *, default: How = "effect", prefix: str = "lg", **tools: How
    ) -> None:
        super().__init__()
        self._app: Perdure = inner_app(app)
        self._default, self._prefix, self._tools = default, prefix, tools
        self._units: dict[str, Callable[..., Awaitable[tuple[str, bytes]]]] = {}

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Told:
        async def work() -> Told:
            return await handler(request)

        return await self._wrap(request, work)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Told]) -> Told:
        async def work() -> Told:
            return handler(request)

        return on_a_loop(self._wrap(request, work))

    async def _wrap(self, request: ToolCallRequest, work: Callable[[], Awaitable[Told]]) -> Told:
        call, how = request.tool_call, self._tools.get(request.tool_call["name"], self._default)
        thread = request.runtime.config.get("configurable", {}).get("thread_id")
        if how == "plain" or thread is None:
            return await work()
        unit = self._units.get(call["name"]) or self._units.setdefault(call["name"], _unit(call["name"], how))

        def enter(bubble: Bubble) -> None:
            _call.set(_Call(work, unit, bubble))

        task_id = task_id_of(f"{thread}:{call['id']}", self._prefix)
        try:
            typed = await run_in_graph(self._app, task_id, _run_tool, call["name"], call["args"], enter=enter)
        except StepFailed as failed:
            return ToolMessage(str(failed), tool_call_id=call["id"], name=call["name"], status="error")
        if not isinstance(typed, tuple | list):  # a person settled it with a plain result, or with none
            text = "It happened. Its result is not known." if typed is None else str(typed)
            return ToolMessage(text, tool_call_id=call["id"], name=call["name"])
        told: Told = _serde.loads_typed((typed[0], typed[1]))
        return told
