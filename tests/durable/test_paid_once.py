"""What was paid for is not lost to its bookkeeping, and what was said is not cut short."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure, Retry, durable, model_call, stream
from perdure.errors import InvalidInput
from perdure.streams import account_of, follow_stream, read_stream

AT_ONCE = Retry(3, wait=timedelta(0))
REPLY = {"text": "hi", "usage": {"input_tokens": 3, "output_tokens": 4}}


class Client:
    """As a model's client is: nothing that could be stored."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def ask(self, what: Any) -> dict[str, Any]:
        self.asked.append(what)
        return REPLY


@pytest.mark.req("R66")
async def test_a_model_call_may_be_a_method_and_its_prompt_have_any_name(quick_url: str) -> None:
    client = Client()

    class Agent:
        @model_call(model="big-2", retry=AT_ONCE)
        async def ask(self, question: str) -> dict[str, Any]:
            return client.ask(question)

    @durable
    async def work() -> dict[str, Any]:
        return await Agent().ask("what now?")

    async with Perdure(quick_url) as app:
        assert await app.run("t", work) == REPLY
        account = await account_of(app, "t")
        assert account.spent.tokens == 7 and account.calls[0].messages == [{"question": "what now?"}]
    assert client.asked == ["what now?"]


@pytest.mark.req("R66")
async def test_a_reply_is_kept_though_its_prompt_cannot_be(quick_url: str, caplog: pytest.LogCaptureFixture) -> None:
    client = Client()

    @model_call(model="big-2", retry=AT_ONCE, identity=lambda client, question: question)
    async def ask(client: Client, question: str) -> dict[str, Any]:
        return client.ask(question)

    @durable
    async def work() -> dict[str, Any]:
        return await ask(client, "what now?")

    async with Perdure(quick_url) as app:
        assert await app.run("t", work) == REPLY
        account = await account_of(app, "t")
        assert account.spent.tokens == 7 and [call.messages for call in account.calls] == [[]]
    assert client.asked == ["what now?"] and "the prompt of ask is not stored" in caplog.text


@pytest.mark.parametrize("answer", ["nothing of the kind", None, 7])
async def test_a_reply_is_kept_though_what_it_used_is_not_known(
    quick_url: str, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    client = Client()

    @model_call(model="big-2", retry=AT_ONCE, usage=lambda reply: answer or reply["nowhere"])
    async def ask(messages: list[str]) -> dict[str, Any]:
        return client.ask(messages)

    @durable
    async def work() -> dict[str, Any]:
        return await ask(["what now?"])

    async with Perdure(quick_url) as app:
        assert await app.run("t", work) == REPLY
        assert (await account_of(app, "t")).spent.tokens == 0
    assert len(client.asked) == 1 and "the usage of ask is unknown" in caplog.text


# ── streams ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_piece_that_is_none_does_not_end_a_stream(quick_url: str) -> None:
    asked = []

    async def model(prefix: str) -> AsyncIterator[Any]:
        asked.append(str(prefix))
        for piece in ("so ", None, "far"):
            yield piece

    @durable
    async def work() -> str:
        return "".join([piece async for piece in stream("answer", model, retry=AT_ONCE)])

    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput, match="gave NoneType, not str"):
            await app.run("t", work)
        part = await read_stream(app, "t", "answer")
        assert part.text == "so " and not part.is_complete
    assert asked == [""]  # it would give the same again, and cost the same again


async def test_half_a_character_is_refused_and_leaves_no_gap(quick_url: str) -> None:
    async def model(_: str) -> AsyncIterator[str]:
        yield "so "  # is written at once, and the next one when its time has come
        yield "\ud83d"
        with contextlib.suppress(TimeoutError):  # nobody comes here
            await asyncio.wait_for(asyncio.Event().wait(), 0.2)
        yield "far"

    @durable
    async def work() -> str:
        return "".join([piece async for piece in stream("answer", model)])

    async with Perdure(quick_url) as app:
        with pytest.raises(InvalidInput, match="half of a surrogate pair"):
            await app.run("t", work)
        part = await read_stream(app, "t", "answer")
        assert part.text == "so " and not part.is_complete


async def test_an_offset_or_a_number_that_no_stream_can_have_is_refused(quick_url: str) -> None:
    async def model(_: str) -> AsyncIterator[str]:
        yield "so far"

    @durable
    async def work() -> str:
        return "".join([piece async for piece in stream("answer", model)])

    async with Perdure(quick_url) as app:
        await app.run("t", work)
        for odd in ({"after": -3}, {"number": 0}, {"number": -1}):
            with pytest.raises(InvalidInput, match="a stream is read"):
                await read_stream(app, "t", "answer", **odd)
            with pytest.raises(InvalidInput, match="a stream is read"):
                await anext(follow_stream(app, "t", "answer", **odd))
