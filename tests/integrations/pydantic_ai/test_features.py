"""What the guide says of streams, deferred tools, fallback models and rate limits."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, CallDeferred, ModelHTTPError, ModelRateLimitError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from perdure import Perdure, durable, pause
from perdure.integrations.pydantic_ai import PerdureDurability


async def test_deferred_tools_wait_side_by_side_for_callbacks_and_replay_asks_no_model_again(folder: Any) -> None:
    happened: Counter[str] = Counter()
    tokens: dict[str, str] = {}

    async def full(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        happened["overloaded"] += 1
        raise ModelHTTPError(status_code=529, model_name="full")

    async def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        answered = sum(isinstance(message, ModelResponse) for message in messages)
        happened[f"model {answered}"] += 1
        if answered:
            return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])  # type: ignore[union-attr]
        return ModelResponse(parts=[ToolCallPart("build", {"n": n}, tool_call_id=f"b{n}") for n in (1, 2)])

    async def tell(call: ToolCallPart, token: str) -> None:
        tokens[call.tool_call_id] = token

    model = FallbackModel(FunctionModel(full, model_name="full"), FunctionModel(script, model_name="script"))
    agent = Agent(model, name="builder", capabilities=[PerdureDurability(announce=tell)])

    @agent.tool_plain
    async def build(n: int) -> str:
        raise CallDeferred

    @durable
    async def work() -> str:
        return (await agent.run("build")).output

    async with Perdure(folder / "p.db") as app:
        stopped = await app.run_until_paused("w", work)
        assert stopped.is_paused and stopped.pause is not None and stopped.pause.reason == "external_dependency"
        assert set(tokens) == {"b1", "b2"}
        for name, token in tokens.items():
            assert await app.tasks.deliver(token, f"{name} is green")
        assert await app.run("w", work) == "b1 is green"
        assert happened == {"overloaded": 2, "model 0": 1, "model 1": 1}  # one refusal for each request, none replayed


async def test_a_streamed_run_gives_its_events_once_and_none_in_a_replay(folder: Any) -> None:
    happened: Counter[str] = Counter()
    texts: list[str] = []

    async def script(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        answered = sum(isinstance(message, ModelResponse) for message in messages)
        happened[f"model {answered}"] += 1
        if answered:
            yield "all "
            yield "done"
        else:
            yield {0: DeltaToolCall(name="ship", json_args="{}", tool_call_id="s")}

    async def watch(ctx: Any, events: Any) -> None:
        async for event in events:
            happened[event.event_kind] += 1

    agent = Agent(
        FunctionModel(stream_function=script),
        name="streamer",
        capabilities=[PerdureDurability(event_stream_handler=watch)],
    )

    @agent.tool_plain
    async def ship() -> str:
        happened["ship"] += 1
        return "shipped"

    @durable
    async def work() -> str:
        async with agent.run_stream("ship it") as result:
            texts.append(str(await result.get_output()))
        await pause.approval("Go on?")
        return texts[-1]

    async with Perdure(folder / "p.db") as app:
        assert (await app.run_until_paused("w", work)).is_paused
        before = Counter(happened)
        assert before["part_start"] == 2 and before["function_tool_call"] == 1  # one for each request, and the tool
        (question,) = (await app.inbox.page()).items
        await app.inbox.approve(question.id)
        assert await app.run("w", work) == "all done"
        assert happened == before and before["model 0"] == before["model 1"] == before["ship"] == 1
        assert texts == ["all done"] * 2


@pytest.mark.parametrize("limits", [True, False])
async def test_a_rate_limit_pauses_the_task_or_is_raised(folder: Any, limits: bool) -> None:
    happened: Counter[str] = Counter()

    async def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        happened["asked"] += 1
        if happened["asked"] == 1:
            limit = {"status_code": 429, "model_name": "m", "retry_after": 3600.0}
            raise ModelHTTPError.for_category(ModelRateLimitError, **limit)
        return ModelResponse(parts=[TextPart("after the limit")])

    agent = Agent(FunctionModel(script), name="patient", capabilities=[PerdureDurability(limits=limits)])

    @durable
    async def work() -> str:
        try:
            return (await agent.run("hello")).output
        except ModelRateLimitError as error:
            return f"raised {error.retry_after}"

    async with Perdure(folder / "p.db") as app:
        stopped = await app.run_until_paused("w", work)
        if limits:
            assert stopped.pause is not None and stopped.pause.reason == "rate_limit" and happened["asked"] == 1
            assert stopped.pause.due_at is not None  # when the provider said
            assert stopped.pause.due_at - stopped.pause.since >= timedelta(hours=1)
        else:
            assert stopped.result == "raised 3600.0"


async def test_an_agent_outside_of_a_durable_function_runs_and_warns_once() -> None:
    agent = Agent(TestModel(), name="plain", capabilities=[PerdureDurability()])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        await agent.run("hello")
        await agent.run("hello")
    assert len([one for one in told if "nothing is recorded" in str(one.message)]) == 1
