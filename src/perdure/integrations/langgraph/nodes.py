"""`durable_node`: the steps and effects inside a node of a graph are recorded, and finished ones do not run again."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import ExecutionInfo, get_runtime

from perdure import durable
from perdure.errors import InvalidInput
from perdure.integrations.langgraph.graph_attempts import Bubble, part_of_thread, run_in_graph
from perdure.integrations.langgraph.thread_lease import inner_app

if TYPE_CHECKING:
    from perdure import Perdure
    from perdure.sync import Perdure as BlockingPerdure

P = ParamSpec("P")
R = TypeVar("R")
_serde = JsonPlusSerializer()


class _Node(NamedTuple):
    body: Callable[[], Awaitable[Any]]
    bubble: Bubble


_node: ContextVar[_Node] = ContextVar("perdure_langgraph_node")


@durable(name="langgraph.node")
async def _run_node() -> tuple[str, bytes]:
    node = _node.get()
    try:
        return _serde.dumps_typed(await node.body())
    except GraphBubbleUp as error:
        node.bubble.note(error)
        await node.bubble.leave()
        raise AssertionError("an attempt that was given up went on") from error


def durable_node(
    app: Perdure | BlockingPerdure | None, *, prefix: str = "lg"
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Make an async node durable: each execution of it is a task of its own, `lg:<thread>:<place in the graph>`.

    Without an app (`None`) the node stays as it is: that switches durability off.

        @durable_node(app)
        async def pay(state: State) -> dict:
            receipt = await charge(state["order"])       # an @effect: never repeated silently
            if not interrupt(f"Ship after {receipt}?"):  # LangGraph's own interrupts work as before
                ...

    The node's state is not stored again: LangGraph's checkpoint has it. An effect whose outcome is unknown interrupts
    the graph; `Command(resume="done")`, "retry" or "fail" settles it, and so does perdure's inbox.
    """

    def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        if app is None:
            return function
        inner = inner_app(app)

        @functools.wraps(function)
        async def node(*args: P.args, **kwargs: P.kwargs) -> R:
            async def body() -> R:
                return await function(*args, **kwargs)

            def enter(bubble: Bubble) -> None:
                _node.set(_Node(body, bubble))

            info = _place()
            part = part_of_thread(str(info.thread_id), info.checkpoint_ns, _name(function), prefix)
            typed = await run_in_graph(inner, part, _run_node, enter=enter, is_retry=info.node_attempt > 1)
            result: R = _serde.loads_typed(typed)
            return result

        return node

    return decorate


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "node"))


def _place() -> ExecutionInfo:
    info = get_runtime().execution_info
    if info is None or info.thread_id is None:
        raise InvalidInput(
            "a durable node needs a thread", do="compile the graph with a checkpointer and give it a thread_id"
        )
    return info
