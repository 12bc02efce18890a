"""A stream of a durable function, followed as plain text. The list of its streams is in journal.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

from perdure._durable import StreamPart, follow_stream, read_stream
from perdure.errors import Conflict, NotFound
from perdure.server.http import Ask, Streamed
from perdure.server.live import Lasting, Live
from perdure.server.nouns.references import glance_at, no_such
from perdure.server.shapes.tasks import Strict
from perdure.server.table import Route

_TEXT = "text/plain; charset=utf-8"
_FOLLOWS_SECONDS = 600.0
_LOOK_SECONDS = 1.0


class TextRange(Strict, frozen=True, kw_only=True):
    """`after` counts characters. Without `number` it is the latest stream of that name."""

    after: int = 0
    number: int | None = None
    follow: bool = True


async def read(ask: Ask[TextRange, None]) -> Streamed:
    task, _ = await glance_at(ask)
    name, query = ask.parts["name"], ask.query
    try:
        first = await read_stream(ask.app.tasks, task, name, after=query.after, number=query.number)
    except NotFound:
        raise no_such("stream") from None
    async with AsyncExitStack() as stack:
        stack.enter_context(ask.server.part(Live).rooms.place_for(ask.caller))
        parts = follow_stream(ask.app.tasks, task, name, after=first.offset, number=query.number)
        headers = {"Perdure-Offset": str(first.offset - len(first.text)), "X-Accel-Buffering": "no"}
        return Streamed(Lasting(_pieces(ask, first, parts), stack.pop_all()), _TEXT, headers=headers)


async def _pieces(
    ask: Ask[TextRange, None], first: StreamPart, parts: AsyncIterator[StreamPart]
) -> AsyncIterator[bytes]:
    """The text until it is complete. It also ends when the task is rolled back, and with it the text that was read."""
    yield first.text.encode()
    if first.is_complete or not ask.query.follow:
        return
    loop, pace = asyncio.get_running_loop(), ask.server.part(Live).pace
    until, check = loop.time() + _FOLLOWS_SECONDS, loop.time() + pace.check
    pending = asyncio.ensure_future(_next(parts))
    try:
        while loop.time() < until and not ask.server.stopping.is_set():
            if loop.time() >= check:
                check = loop.time() + pace.check
                if ask.renew is not None and await ask.renew() is None:
                    return
            await asyncio.wait({pending}, timeout=_LOOK_SECONDS)
            if not pending.done():
                continue
            part = pending.result()
            if part is None:
                return
            if part.text:
                yield part.text.encode()
            pending = asyncio.ensure_future(_next(parts))
    except Conflict:
        return
    finally:
        pending.cancel()
        with suppress(Exception, asyncio.CancelledError):
            await pending


async def _next(parts: AsyncIterator[StreamPart]) -> StreamPart | None:
    return await anext(parts, None)


ROUTES = (
    Route(
        method="GET",
        path="/v1/tasks/{task}/streams/{name}",
        handler=read,
        does="A stream as plain text, followed until it is complete.",
        scopes=("data:read",),
        query=TextRange,
        statuses=(429,),
        streams=True,
        answers=_TEXT,
    ),
)
