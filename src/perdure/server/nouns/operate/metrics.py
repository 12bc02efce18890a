"""Metrics of the caller's namespace and of this server, for Prometheus."""

from __future__ import annotations

from collections.abc import AsyncIterator

from perdure.server.http import Ask, Streamed
from perdure.server.live import Live
from perdure.server.overview import Overviews
from perdure.server.table import Nothing, Route
from perdure.server.telemetry import Sight

_MEDIA = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(ask: Ask[Nothing, None]) -> Streamed:
    space, live = ask.caller.namespace, ask.server.part(Live)
    overview = await ask.server.part(Overviews).of(ask.app, tells_data=False)
    text = await ask.server.telemetry.text(space, ask.app, Sight(overview, live.rooms.taken_in(space)))
    return Streamed(_once(text), _MEDIA)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        handler=metrics,
        does="What this server counts, as Prometheus text.",
        scopes=("tasks:read",),
        answers="text/plain",
    ),
)
