"""`DurableAgent`: run an agent of the Agent Framework inside a durable function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    Message,
    MiddlewareFailure,
)
from pydantic_core import to_jsonable_python

import perdure
from perdure import pause, recorded
from perdure.errors import EffectUncertain, InvalidInput, PerdureError, StepFailed
from perdure.integrations.tool_options import How, options_of

Next = Callable[[], Awaitable[None]]


class DurableAgent:
    """An agent, for a durable function's own code.

    Each model call is a step. Each function tool is an effect unless `how` says otherwise, by the tool's name:
    `how={"search": "step", "pay": {"kind": "effect", "keyed": True}}`. A tool that requires approval pauses the task,
    and its question stands in the inbox. Outside of a durable function it is the agent as it was.
    """

    def __init__(self, agent: Agent[Any], *, how: Mapping[str, How] | None = None) -> None:
        self.agent = agent
        for name, one in (how or {}).items():
            options_of(name, one)  # or InvalidInput, before the framework makes a text for the model of it
        self._middleware = [_RecordedModel(), _RecordedTools(how or {})]

    async def run(
        self, messages: str | Message | Sequence[str | Message], *, session: AgentSession | None = None, **options: Any
    ) -> AgentResponse[Any]:
        """The agent's answer, after all of its questions were decided."""
        if options.get("stream"):
            raise InvalidInput(
                "a recorded run cannot be streamed", do="leave `stream` out, or call the agent's own run"
            )
        if perdure.current() is None:
            plain: AgentResponse[Any] = await self.agent.run(messages, session=session, **options)
            return plain
        talk = session or self.agent.create_session(session_id=str(recorded.uuid4()))
        more = {**options, "session": talk, "middleware": [*(options.get("middleware") or ()), *self._middleware]}
        answer: AgentResponse[Any] = await self.agent.run(messages, **more)
        while asked := [one for one in answer.user_input_requests if one.type == "function_approval_request"]:
            said = [one.to_function_approval_response(await _is_approved(one)) for one in asked]
            answer = await self.agent.run(Message("user", said), **more)
        return answer


async def _is_approved(request: Content) -> bool:
    call = request.function_call
    assert call is not None
    try:
        await pause.approval(f"Run {call.name}({call.arguments})?")
    except pause.Rejected:
        return False
    return True


class _RecordedModel(ChatMiddleware):
    """Each call of the model is a step."""

    async def process(self, context: ChatContext, call_next: Next) -> None:
        here = perdure.current()
        if here is None or here.is_body:
            return await call_next()

        async def ask() -> Any:
            await call_next()
            assert isinstance(context.result, ChatResponse)
            return context.result.to_dict()

        context.result = ChatResponse.from_dict(await perdure.call(ask, name="agent_framework.model", flush=True))
        return None


class _RecordedTools(FunctionMiddleware):
    """Each call of a tool is recorded below the framework's text for errors, which invites the model to try again."""

    def __init__(self, how: Mapping[str, How]) -> None:
        self._how = how

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        name, here = context.function.name, perdure.current()
        options = options_of(name, self._how.get(name, "effect"))
        if here is None or here.is_body or options["kind"] == "plain":
            return await call_next()

        async def carry_out(**arguments: Any) -> Any:
            await call_next()
            return _stored(context.result)

        arguments = to_jsonable_python(dict(context.arguments), fallback=str)
        try:
            context.result = _result(await perdure.call(carry_out, name=name, kwargs=arguments, **options))
        except (StepFailed, EffectUncertain):  # the model is told; the second: a person said that it failed
            raise
        except PerdureError as problem:  # the framework would tell the model of anything else, and go on
            raise MiddlewareFailure(problem.what) from problem
        return None


def _stored(result: Any) -> dict[str, Any]:
    if isinstance(result, list) and all(isinstance(one, Content) for one in result):
        return {"contents": [one.to_dict() for one in result]}
    return {"value": to_jsonable_python(result, fallback=str)}


def _result(told: Any) -> Any:
    """The result of a tool. A person who settled the call can have given a plain value, or none."""
    if isinstance(told, dict) and "contents" in told:
        return [Content.from_dict(one) for one in told["contents"]]
    if isinstance(told, dict) and "value" in told:
        return told["value"]
    return "It happened. Its result is not known." if told is None else str(told)
