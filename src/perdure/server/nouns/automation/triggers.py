"""Triggers: what an event from outside leads to; and the events themselves, which come in here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from perdure._durable import FunctionInfo, IncomingEvent, Received, definition_version
from perdure._model import Trigger
from perdure.errors import InvalidInput, NotFound, StaleVersion
from perdure.server.http import Answer, Ask, HttpProblem, listed, page_limit, read_cursor, sign_cursor, version_tag
from perdure.server.nouns.references import no_such
from perdure.server.shapes.automation import NewEvent, NewTrigger, TriggerBody, TriggerShown, trigger_shown
from perdure.server.shapes.cuts import cut
from perdure.server.shapes.tasks import Listed, Strict
from perdure.server.table import Nothing, Route

_LONGEST_RATE = 366 * 24 * 3600.0  # seconds
_MOST_SCHEMA = 64 * 1024


class ReceivedRange(Strict, frozen=True, kw_only=True):
    limit: int = 50
    cursor: str | None = None


async def listing(ask: Ask[Nothing, None]) -> Answer:
    return listed(ask, [trigger_shown(id, one) for id, one in (await ask.app.triggers.list()).items()])


async def make(ask: Ask[Nothing, NewTrigger]) -> Answer:
    new = ask.body
    try:
        made = await _store(ask, new.id, new, 0)
    except StaleVersion:
        raise HttpProblem(
            409, "already_exists", f"there is a trigger {new.id!r} already", do="choose another id, or PUT it"
        ) from None
    return _shown(new.id, made, 201)


async def get(ask: Ask[Nothing, None]) -> Answer:
    return _shown(ask.parts["id"], await _existing(ask))


async def put(ask: Ask[Nothing, TriggerBody]) -> Answer:
    before = await _existing(ask)
    if before.source != "event":
        raise InvalidInput(
            "a trigger of a file or a folder is changed on its own machine", do="use `perdure trigger add`"
        )
    return _shown(ask.parts["id"], await _store(ask, ask.parts["id"], ask.body, ask.match))


async def remove(ask: Ask[Nothing, None]) -> Answer:
    await _existing(ask)
    await ask.app.triggers.remove(ask.parts["id"], if_version=ask.match)
    return Answer(None, 204)


async def pause(ask: Ask[Nothing, None]) -> Answer:
    await _existing(ask)
    await ask.app.triggers.pause(ask.parts["id"])
    return _shown(ask.parts["id"], await _existing(ask))


async def resume(ask: Ask[Nothing, None]) -> Answer:
    await _existing(ask)
    await ask.app.triggers.resume(ask.parts["id"])
    return _shown(ask.parts["id"], await _existing(ask))


async def send(ask: Ask[Nothing, NewEvent]) -> Answer:
    """The event's id is the sender's: in the body, or as a webhook or an Idempotency-Key has it."""
    headers = ask.headers
    id = ask.body.id or headers.get("webhook-id") or headers.get("idempotency-key")
    try:
        got = await ask.app.events.send(ask.parts["name"], ask.body.data, id=id)
    except NotFound:
        raise HttpProblem(404, "not_found", "no trigger wants this event", do="make a trigger for it first") from None
    if not got.is_new:
        ask.server.telemetry.of(ask.caller.namespace).count("duplicates_prevented", "event")
    return Answer(got, 202 if got.is_new else 200)


async def received(ask: Ask[ReceivedRange, None]) -> Answer:
    after = await read_cursor(ask, "events", None, ask.query.cursor) or ""
    limit = page_limit(ask, ask.query.limit)
    found = await ask.app.events.list(limit=limit + 1, after=after)
    last = found[limit - 1].key if len(found) > limit else None
    return listed(ask, [cut(one) for one in found[:limit]], await sign_cursor(ask, "events", None, last))


async def functions(ask: Ask[Nothing, None]) -> Answer:
    return listed(ask, await ask.app.functions())


async def _store(ask: Ask[Any, Any], id: str, body: TriggerBody, version: int | None) -> Trigger:
    rate = body.rate
    if rate is not None and not (1 <= rate.most <= 1_000_000 and 0 < rate.per <= _LONGEST_RATE):
        raise InvalidInput("rate is not one", do='write {"most": 10, "per": 60} for ten a minute')
    if body.schema is not None and len(str(body.schema)) > _MOST_SCHEMA:
        raise InvalidInput(f"schema is larger than {_MOST_SCHEMA:,} characters")
    return await ask.app.triggers.add(
        id,
        body.event,
        function=body.function,
        version=body.version,
        arguments=body.arguments,
        takes=body.takes,
        queue=body.queue,
        priority=body.priority,
        task=body.task,
        signal=body.signal,
        rate=None if rate is None else (rate.most, timedelta(seconds=rate.per)),
        schema=body.schema,
        if_version=version,
    )


async def _existing(ask: Ask[Any, Any]) -> Trigger:
    found = await ask.app.triggers.get(ask.parts["id"])
    if found is None:
        raise no_such("trigger")
    return found


def _shown(id: str, found: Trigger, status: int = 200) -> Answer:
    return Answer(trigger_shown(id, found), status, version_tag(definition_version(found)))


def _route(method: Any, path: str, does: str, handler: Any, **more: Any) -> Route:
    scope = "tasks:read" if method == "GET" else "schedules:write"
    settings: dict[str, Any] = {"scopes": (scope,), "answer": TriggerShown, **more}
    return Route(method=method, path=f"/v1/triggers{path}", handler=handler, does=does, **settings)


ROUTES = (
    _route("GET", "", "The triggers.", listing, answer=Listed[TriggerShown]),
    _route("POST", "", "Make a trigger.", make, body=NewTrigger, status=201, once="may"),
    _route("GET", "/{id}", "One trigger.", get),
    _route("PUT", "/{id}", "Change a trigger.", put, body=TriggerBody, match="must", once="may"),
    _route("DELETE", "/{id}", "Remove a trigger. The tasks it has started stay.", remove, answer=None, status=204,
           match="must", once="may"),
    _route("POST", "/{id}/pause", "Have events wait until a trigger is resumed.", pause, once="may"),
    _route("POST", "/{id}/resume", "Act on events again, those that wait too.", resume, once="may"),
    Route(
        method="POST",
        path="/v1/events/{name}",
        handler=send,
        does="Send an event in. One with an id that is known is stored once.",
        scopes=("events:send",),
        body=NewEvent,
        answer=Received,
        status=202,
        statuses=(200,),
        once="may",
        headers={"webhook-id": "may"},
    ),
    Route(
        method="GET",
        path="/v1/events",
        handler=received,
        does="The events that came in, and what became of them.",
        scopes=("data:read",),
        query=ReceivedRange,
        answer=Listed[IncomingEvent],
    ),
    Route(
        method="GET",
        path="/v1/functions",
        handler=functions,
        does="The durable functions that live workers know, and what they take.",
        scopes=("tasks:read",),
        answer=Listed[FunctionInfo],
    ),
)  # fmt: skip
