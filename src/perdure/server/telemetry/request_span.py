"""One span of OpenTelemetry per request: the route, never the path, with a link to each task it was about."""

from __future__ import annotations

import time
from collections.abc import Sequence

from perdure._ground import traces

_MOST_LINKS = 32


def tell_request(route: str, status: int, seconds: float, traceparent: str, uids: Sequence[str]) -> None:
    """Tell of a request that has been answered, in the trace that its `traceparent` names. Does nothing in a program
    without OpenTelemetry."""
    if (tracer := traces.tracer()) is None:
        return
    end = time.time_ns()
    about = {"http.route": route, "http.response.status_code": status}
    tracer.start_span(
        route,
        context=traces.context_of(traceparent),
        kind=traces.server_kind(),
        start_time=end - int(seconds * 1e9),
        attributes=about,
        links=[traces.link_to(uid) for uid in dict.fromkeys(uids[:_MOST_LINKS])],
    ).end(end)
