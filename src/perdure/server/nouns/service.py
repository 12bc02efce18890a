"""The server itself: whether it lives, whether it can work, what it is."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version

from msgspec import Struct

from perdure._ground.clock import moment
from perdure.server.requests import Answer, Ask
from perdure.server.table import Nothing, Route


class About(Struct, frozen=True):
    """What this server is."""

    perdure: str
    namespace: str
    at: datetime
    page_limit: int
    body_limit: int
    read_only: bool


async def healthz(_: Ask[Nothing, None]) -> Answer:
    return Answer("ok")


async def readyz(ask: Ask[Nothing, None]) -> Answer:
    await ask.app.tasks.list(limit=1)
    return Answer("ok")


async def about(ask: Ask[Nothing, None]) -> Answer:
    settings = ask.server.settings
    now = moment(ask.server.clock.now_ms())
    return Answer(
        About(
            version("perdure"), ask.caller.namespace, now, settings.page_limit, settings.body_limit, settings.read_only
        )
    )


ROUTES = (
    Route(method="GET", path="/healthz", handler=healthz, does="Whether the process lives.", who="nobody", answer=str),
    Route(
        method="GET",
        path="/readyz",
        handler=readyz,
        does="Whether the store can be used.",
        who="nobody",
        answer=str,
        statuses=(503,),
    ),
    Route(
        method="GET",
        path="/v1",
        handler=about,
        does="What this server is: version, time, limits.",
        who="anyone",
        answer=About,
    ),
)
