"""Jobs: how far long work has come, and stopping it."""

from __future__ import annotations

from perdure.server.desk import Desk
from perdure.server.http import Answer, Ask
from perdure.server.jobs import Job
from perdure.server.table import Nothing, Route


async def get(ask: Ask[Nothing, None]) -> Answer:
    return Answer(await ask.server.part(Desk).jobs.get(ask.caller, ask.parts["job"]), is_large=True)


async def stop(ask: Ask[Nothing, None]) -> Answer:
    return Answer(await ask.server.part(Desk).jobs.stop(ask.caller, ask.parts["job"]), 202)


ROUTES = (
    Route(
        method="GET",
        path="/v1/jobs/{job}",
        handler=get,
        does="How far a job has come, and its result. It needs the scope that began it.",
        who="anyone",
        answer=Job,
    ),
    Route(
        method="DELETE",
        path="/v1/jobs/{job}",
        handler=stop,
        does="Have a job stop at its next step. It needs the scope that began it.",
        who="anyone",
        answer=Job,
        status=202,
        once="may",
    ),
)
