"""What the guide says of histories, of settled tools, and of an agent outside of a durable function."""

from __future__ import annotations

from typing import Any

import pytest
from agent_framework import Agent, BaseChatClient, ChatMiddlewareLayer, ChatResponse, FunctionInvocationLayer, Message
from agent_framework import tool as function_tool

from perdure import Perdure, durable
from perdure.errors import InvalidInput
from perdure.integrations.agent_framework import DurableAgent, PerdureHistory
from tests.integrations.agent_framework.agents import call


class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Calls `pay` once, then repeats what it was told."""

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> ChatResponse:
        told = [one.result for message in messages for one in message.contents if one.type == "function_result"]
        says: Any = [f"told: {told[-1]}"] if told else [call("pay", "pay-1", cents=5)]
        return ChatResponse(messages=[Message("assistant", says)])


def agent_with(ran: list[str], **options: Any) -> Agent[Any]:
    @function_tool
    async def pay(cents: int) -> str:
        """Pay."""
        ran.append("pay")
        if len(ran) == 1:
            raise TimeoutError("no answer from the bank")
        return "paid"

    return Agent(client=Script(), tools=[pay], **options)


@pytest.mark.parametrize(
    "choice, value, told",
    [
        ("done", "receipt 7", "receipt 7"),
        ("done", None, "It happened. Its result is not known."),
        ("retry", None, "paid"),
    ],
)
async def test_the_model_is_told_what_a_person_says_of_a_tool(
    folder: Any, choice: Any, value: str | None, told: str
) -> None:
    ran: list[str] = []
    agent = DurableAgent(agent_with(ran))

    @durable
    async def work() -> str:
        return (await agent.run("go")).text

    async with Perdure(folder / "p.db") as app:
        assert (await app.run_until_paused("w", work)).is_paused
        (question,) = (await app.inbox.page()).items
        await app.inbox.settle(question.id, choice, value=value)
        assert await app.run("w", work) == f"told: {told}"
    assert len(ran) == (2 if choice == "retry" else 1)


async def test_outside_of_a_durable_function_the_agent_is_as_it_was(folder: Any) -> None:
    ran: list[str] = []
    async with Perdure(folder / "p.db") as app:
        inner = agent_with(ran, context_providers=[PerdureHistory(app)])
        answer = await DurableAgent(inner).run("go", session=inner.create_session(session_id="s"))
        assert "Error" in answer.text and ran == ["pay"]  # the framework's own text for errors
        assert len(await PerdureHistory(app).get_messages("s")) == 4
        with pytest.raises(InvalidInput):
            await PerdureHistory(app).get_messages(None)


async def test_what_cannot_be_recorded_is_refused_before_the_model_hears_of_it() -> None:
    with pytest.raises(InvalidInput):
        DurableAgent(agent_with([]), how={"pay": "twice"})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput):
        await DurableAgent(agent_with([])).run("go", stream=True)
