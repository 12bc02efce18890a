"""Run a durable function as a part of a graph: its pauses become LangGraph's interrupts, and the other way round.

LangGraph stops a node by raising GraphBubbleUp through it (an interrupt, a Command to the parent graph), and runs the
node again from its beginning when the graph is resumed. The attempt is then given up without an end: its task can be
replayed, and what it recorded does not run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import interrupt

from perdure.integrations.langgraph.thread_keys import name_of, task_id_of
from perdure.memory import owner_prefix
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
        """The result of the attempt; raises the exception that LangGraph raised in it."""
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


class Part(NamedTuple):
    """One call of a thread: its task is a hidden part of the thread's."""

    task_id: str
    name: str
    thread: str
    thread_task: str


def part_of_thread(thread: str, place: str, what: str, prefix: str) -> Part:
    """The part that stands for one place of a thread."""
    task_id = task_id_of(f"{thread}:{place}", prefix)
    return Part(task_id, name_of(what, place, task_id), thread, task_id_of(thread, prefix))


async def run_in_graph(
    app: Perdure,
    part: Part,
    function: DurableFunction[..., Any],
    *args: Any,
    enter: Callable[[Bubble], None],
    is_retry: bool = False,
) -> Any:
    """The result of a durable function. While its task is paused, the graph is interrupted with the question.

    `enter` is called before each attempt, with what hands LangGraph's exceptions out of it. With `is_retry`, LangGraph
    tries a node again: what failed before is called again, and what finished is not.
    """
    await app.tasks.open(part.thread_task, state={"thread_id": part.thread})
    queued = function.options(queue=QUEUE, part_of=part.thread_task, task_name=part.name)
    if is_retry:
        known = await app.tasks.get(part.task_id)
        if known is not None and known.status == "failed":
            await (await app.tasks.open(part.task_id)).resume()
    while True:
        bubble = Bubble()
        enter(bubble)
        stopped = await bubble.watch(app.run_until_paused(part.task_id, queued, *args))
        if stopped.is_finished:
            return stopped.result
        await _ask(app, part.task_id, stopped)


async def _ask(app: Perdure, task_id: str, stopped: Stopped[Any]) -> None:
    """Interrupt the graph until the task's question is answered, here or in perdure's inbox."""
    uncertain = [one for one in await app.effects.of(task_id) if one.state == "uncertain"]
    if not uncertain:
        interrupt({"task": task_id, "waits_for": stopped.waits_for, "answer_with": f"perdure show {task_id}"})
        return
    first = uncertain[0]
    question = {
        "question": f"Did {first.call} happen? {await _why(app, task_id, first.key)}",
        "task": task_id,
        "call": first.call,
        "key": first.key,
        "choices": list(CHOICES),
    }
    place = f"{owner_prefix('execution', task_id)}lg/asked/{first.key}/{first.tries}"
    async for answer in _answers(app, place, question):
        choice, value = (answer.get("choice"), answer.get("value")) if isinstance(answer, dict) else (answer, None)
        if choice in CHOICES:  # anything else asks again
            await app.effects.settle(task_id, choice, value=value, key=first.key)
            return


async def _answers(app: Perdure, place: str, question: Mapping[str, Any]) -> AsyncIterator[Any]:
    """The answers to this question; interrupts the graph after the last one.

    LangGraph hands a node its answers by their order, and hands them out again when the node is run again. Those that
    come before the question was put were given to others: to the tool's own interrupts, or to the same question about
    an earlier try. One of them is not taken for an answer to this one. How many they are is kept at `place`.
    """
    of_others = await app.storage.get(place)
    heard = 0
    while True:
        try:
            answer = interrupt(question)
        except GraphInterrupt:
            if of_others is None:
                await app.storage.put(place, heard)
            raise
        heard += 1
        if of_others is not None and heard > of_others:
            yield answer


async def _why(app: Perdure, task_id: str, key: str) -> str:
    """Why the outcome is not known, as the inbox tells it."""
    for item in (await app.inbox.page(kinds=["effect"], task=task_id)).items:
        if item.effect is not None and item.effect.key == key and item.effect.why:
            return f"Its outcome is not known: {item.effect.why[:500]}."
    return "Its process ended before it said so."
