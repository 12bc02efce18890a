"""Metrics of the caller's namespace and of this server, for Prometheus."""

from __future__ import annotations

from collections.abc import AsyncIterator

from perdure.server.requests import Ask, Streamed
from perdure.server.table import Nothing, Route

_MEDIA = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(ask: Ask[Nothing, None]) -> Streamed:
    return Streamed(_once(await ask.server.telemetry.text(ask.caller.namespace, ask.app)), _MEDIA)


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
