"""`DurableAgent`: run an agent of Strands inside a durable function."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python
from strands import Agent
from strands.agent import AgentResult
from strands.interrupt import Interrupt, InterruptException
from strands.middleware import (
    ExecuteToolContext,
    ExecuteToolStage,
    InvokeModelContext,
    InvokeModelStage,
    ModelStopReason,
    ToolResultEvent,
    TypedEvent,
)
from strands.types.exceptions import (
    ContextWindowOverflowException,
    MaxTokensReachedException,
    ModelThrottledException,
)

import perdure
from perdure import pause
from perdure._ground.encoding.key_parts import quoted
from perdure.errors import EffectUncertain, InvalidInput, StepFailed
from perdure.integrations.item_list import ItemList
from perdure.integrations.tool_options import How, options_of

if TYPE_CHECKING:
    from perdure import Perdure

# What Strands answers by itself: it waits and asks again, or shortens the conversation.
_OF_THE_MODEL = (ModelThrottledException, ContextWindowOverflowException, MaxTokensReachedException)


class DurableAgent:
    """An agent, for a durable function's own code.

        agent = DurableAgent(lambda: Agent(model=model, tools=[look_up, pay]), how={"look_up": "step"}, approve=["pay"])

    make_agent  makes the agent. Strands keeps a conversation in the agent itself, so each attempt begins with a new one
    how         what a tool is, by its name: "step" for one that only reads, "plain" for one that is not recorded, or a
                mapping with "kind" and options of `@effect`. A tool is an effect unless it says otherwise
    approve     the names of tools that a person has to allow: the task pauses, and the question is in the inbox
    session     keeps the messages in `app`'s store under this id, and continues them in the next run
    """

    def __init__(
        self,
        make_agent: Callable[[], Agent],
        *,
        how: Mapping[str, How] | None = None,
        approve: Iterable[str] = (),
        app: Perdure | None = None,
        session: str | None = None,
    ) -> None:
        self._make, self._how, self._approve = make_agent, dict(how or {}), frozenset(approve)
        for name, one in self._how.items():
            options_of(name, one)  # or InvalidInput, before Strands makes a text for the model of it
        self._messages: ItemList | None = None
        if session is not None:
            if app is None:
                raise InvalidInput("a session needs the app that keeps it", do="give app= beside session=")
            self._messages = ItemList(app.storage, f"strands-session/{quoted(session)}/")

    async def run(self, prompt: Any, **options: Any) -> AgentResult:
        """The agent's result, after all of its questions were answered. Options are those of `invoke_async`."""
        agent = self._make()
        if self._messages is not None:
            agent.messages[:] = await perdure.call(self._messages.get, name="strands.messages")
        before = len(agent.messages)
        agent.add_middleware(InvokeModelStage, _model)
        agent.add_middleware(ExecuteToolStage, self._tool)
        result = await agent.invoke_async(prompt, **options)
        while result.stop_reason == "interrupt" and perdure.current() is not None:
            result = await agent.invoke_async([await _answer(one) for one in result.interrupts], **options)
        if self._messages is not None:
            await _keep(self._messages, agent.messages[before:])
        return result

    async def _tool(self, context: ExecuteToolContext, call_next: Any) -> AsyncIterator[TypedEvent]:
        name, here = context.tool_use["name"], perdure.current()
        options = options_of(name, self._how.get(name, "effect"))
        if here is None or here.is_body or context.tool is None:
            async for event in call_next(context):
                yield event
            return
        if name in self._approve and (why := await _refusal(context)) is not None:
            yield _error(context, why)
            return
        if options["kind"] == "plain":
            async for event in call_next(context):
                yield event
            return
        live = _Live(call_next(context))

        async def carry_out(**arguments: Any) -> Any:
            return await live.outcome()

        shown = to_jsonable_python(context.tool_use["input"], fallback=str)
        shown = shown if isinstance(shown, dict) else {"input": shown}
        try:
            async for event in live.beside(perdure.call(carry_out, name=name, kwargs=shown, **options)):
                yield event
            told = live.told
        except (StepFailed, EffectUncertain) as failed:  # the model is told; the second: a person said that it failed
            yield _error(context, failed.what, failed)
            return
        if isinstance(told, dict) and "interrupt" in told:
            raise InterruptException(Interrupt(**told["interrupt"]))
        yield ToolResultEvent({**_result(told), "toolUseId": context.tool_use["toolUseId"]})


class _Live:
    """The events of a tool or a model call that is under way, and what is recorded of it in the end."""

    def __init__(self, events: Any) -> None:
        self._events, self._queue = events, asyncio.Queue[TypedEvent | None]()
        self.told: Any = None

    async def outcome(self) -> dict[str, Any]:
        """Carry it out. What the tool raised is raised here, below the text that Strands makes of it."""
        found: ToolResultEvent | None = None
        async for event in self._events:
            if isinstance(event, ToolResultEvent):
                found = event
            elif asked := getattr(event, "interrupts", None):  # it is run again when the agent is told the answer
                return {"interrupt": asked[0].to_dict()}
            else:
                self._queue.put_nowait(event)
        assert found is not None
        if found.exception is not None:
            raise found.exception
        return {"result": dict(found.tool_result)}

    async def response(self) -> list[Any]:
        found: ModelStopReason | None = None
        async for event in self._events:
            if isinstance(event, ModelStopReason):
                found = event
            else:
                self._queue.put_nowait(event)
        assert found is not None
        return [found.stop_reason, dict(found.message), dict(found.usage), dict(found.metrics)]

    async def beside(self, call: Any) -> AsyncIterator[TypedEvent]:
        """The events while the call is made; none in a replay. Its result is in `told` afterwards."""
        work = asyncio.ensure_future(call)
        work.add_done_callback(lambda _: self._queue.put_nowait(None))
        try:
            while (event := await self._queue.get()) is not None:
                yield event
            self.told = await work
        finally:
            work.cancel()


async def _model(context: InvokeModelContext, call_next: Any) -> AsyncIterator[TypedEvent]:
    """Each call of the model is a step."""
    here = perdure.current()
    if here is None or here.is_body:
        async for event in call_next(context):
            yield event
        return
    live = _Live(call_next(context))
    async for event in live.beside(perdure.call(live.response, name="strands.model", flush=True, raises=_OF_THE_MODEL)):
        yield event
    stop_reason, message, usage, metrics = live.told
    yield ModelStopReason(stop_reason, message, usage, metrics)


async def _refusal(context: ExecuteToolContext) -> str | None:
    """Why a person refused the call; None if they allowed it."""
    try:
        await pause.approval(f"Run {context.tool_use['name']}({context.tool_use['input']})?")
    except pause.Rejected as no:
        return no.comment or "A person rejected this call."
    return None


async def _answer(interrupt: Interrupt) -> dict[str, Any]:
    """An interrupt of the agent's own: a person answers it with a text."""
    question = interrupt.name if interrupt.reason is None else f"{interrupt.name}: {interrupt.reason}"
    said = await pause.input(question, str)
    return {"interruptResponse": {"interruptId": interrupt.id, "response": said}}


async def _keep(messages: ItemList, fresh: list[Any]) -> None:
    if perdure.current() is None:
        return await messages.add(fresh)

    async def keep() -> None:
        await messages.add(fresh)

    return await perdure.call(keep, name="strands.keep", kind="effect", keyed=True)


def _error(context: ExecuteToolContext, text: str, error: Exception | None = None) -> ToolResultEvent:
    told = {"toolUseId": context.tool_use["toolUseId"], "status": "error", "content": [{"text": text}]}
    return ToolResultEvent(told, exception=error)


def _result(told: Any) -> dict[str, Any]:
    """The result of a tool. A person who settled the call can have given a plain value, or none."""
    if isinstance(told, dict) and "result" in told:
        return dict(told["result"])
    text = "It happened. Its result is not known." if told is None else str(told)
    return {"status": "success", "content": [{"text": text}]}
