"""Run a durable function as a part of a graph: its pauses become LangGraph's interrupts, and the other way round.

LangGraph stops a node by raising GraphBubbleUp through it (an interrupt, a Command to the parent graph), and runs the
node again from its beginning when the graph is resumed. The attempt is then given up without an end: its task can be
replayed, and what it recorded does not run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from perdure.types import DurableFunction, Stopped

if TYPE_CHECKING:
    from perdure import Perdure

# No worker serves this queue: only the process that runs the graph has what the function needs.
QUEUE = "perdure.langgraph"
CHOICES = ("done", "retry", "fail")


class Bubble:
    """Carries what LangGraph raised inside an attempt out of it."""

    def __init__(self) -> None:
        self._noted: GraphBubbleUp | None = None
        self._raised: asyncio.Future[GraphBubbleUp] = asyncio.get_running_loop().create_future()

    def note(self, error: GraphBubbleUp) -> None:
        """Keep what was raised until `leave`."""
        self._noted = error

    async def leave(self) -> None:
        """Have the attempt given up if something was noted in it: then this never returns, it is cancelled."""
        if self._noted is not None:
            if not self._raised.done():
                self._raised.set_result(self._noted)
            await asyncio.Event().wait()

    async def watch(self, work: Awaitable[Stopped[Any]]) -> Stopped[Any]:
        """How the attempt ended; raises what LangGraph raised in it."""
        attempt: asyncio.Future[Stopped[Any]] = asyncio.ensure_future(work)
        both: set[asyncio.Future[Any]] = {attempt, self._raised}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not self._raised.done():
                return await attempt
        finally:
            if not attempt.done():
                attempt.cancel()
                await asyncio.gather(attempt, return_exceptions=True)
        raise self._raised.result()


async def run_in_graph(
    app: Perdure, task_id: str, function: DurableFunction[..., Any], *args: Any, enter: Callable[[Bubble], None]
) -> Any:
    """The result of a durable function. While its task is paused, the graph is interrupted with the question.

    `enter` is called before each attempt, with what hands LangGraph's exceptions out of it.
    """
    queued = function.options(queue=QUEUE)
    while True:
        bubble = Bubble()
        enter(bubble)
        stopped = await bubble.watch(app.run_until_paused(task_id, queued, *args))
        if stopped.is_finished:
            return stopped.result
        await _ask(app, task_id, stopped)


async def _ask(app: Perdure, task_id: str, stopped: Stopped[Any]) -> None:
    """Interrupt the graph until the task's question is answered, here or in perdure's inbox."""
    uncertain = [one for one in await app.effects.of(task_id) if one.state == "uncertain"]
    if not uncertain:
        interrupt({"task": task_id, "waits_for": stopped.waits_for, "answer_with": f"perdure show {task_id}"})
        return
    first = uncertain[0]
    answer = interrupt(
        {
            "question": f"Did {first.call} happen? Its process ended before it said so.",
            "task": task_id,
            "call": first.call,
            "key": first.key,
            "choices": list(CHOICES),
        }
    )
    choice, value = (answer.get("choice"), answer.get("value")) if isinstance(answer, dict) else (answer, None)
    if choice in CHOICES:  # anything else asks again
        await app.effects.settle(task_id, choice, value=value, key=first.key)
