"""The streams of a durable function over HTTP: plain text, followed, and continued by offset."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2

from perdure import Perdure, durable, stream
from perdure.streams import Prefix
from tests.server.streaming import PATIENCE, a_server
from tests.support.waiting import look_again

gates: dict[str, asyncio.Event] = {}


@durable
async def answering(name: str) -> str:
    async def model(prefix: Prefix) -> AsyncIterator[str]:
        yield "één "
        await gates[name].wait()
        yield "zwei "
        yield "τρία"

    return "".join([piece async for piece in stream("answer", model)])


def read(address: str, after: int, upto: int | None = None) -> str:
    """The text after an offset: all of it, or so many characters."""
    with (
        httpx2.Client(timeout=PATIENCE, trust_env=False) as client,
        client.stream("GET", f"{address}/v1/tasks/job/streams/answer?after={after}") as answer,
    ):
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["perdure-offset"] == str(after)
        text = ""
        for piece in answer.iter_text():
            text += piece
            if upto is not None and len(text) >= upto:
                break
        return text


async def test_a_stream_is_followed_as_text_and_continued_by_its_offset(shared_url):
    gates["job"] = asyncio.Event()
    with a_server(shared_url) as (address, _), httpx2.Client(base_url=address, trust_env=False) as client:
        async with Perdure(shared_url) as app:
            running = asyncio.ensure_future(app.run("job", answering, "job"))
            while (
                await asyncio.to_thread(lambda: client.get("/v1/tasks/job/streams/answer?follow=0").status_code) == 404
            ):
                await look_again()
            assert await asyncio.to_thread(read, address, 0, 4) == "één "
            rest = asyncio.ensure_future(asyncio.to_thread(read, address, 4))
            gates["job"].set()
            assert await rest == "zwei τρία"
            assert await running == "één zwei τρία"
        (info,) = client.get("/v1/tasks/job/streams").json()["items"]
        assert (info["name"], info["length"], info["is_complete"]) == ("answer", 13, True)
        assert client.get("/v1/tasks/job/streams/nothing").status_code == 404


async def test_streams_are_data(shared_url):
    with a_server(shared_url, frozenset({"tasks:read"})) as (address, _), httpx2.Client(trust_env=False) as client:
        async with Perdure(shared_url) as app:
            await app.tasks.create("job", state={})
        for path in ("streams", "streams/answer"):
            assert client.get(f"{address}/v1/tasks/job/{path}").status_code == 403
