"""The second try of a request whose server died: was it done, and what had its answer been?

A server that is killed between a write and its answer leaves the write. Whoever repeats the request, with its key, may
find that it is refused now because it was done: 409, 412, 404. One rule for all routes: everything that a request with
a key writes is signed with a mark of the key. If the task of the address, or a value of the namespace, has that
signature, the request was carried out, and its answer is what a GET of the same thing answers now. A DELETE that finds
nothing has what it asked for.

Owns that rule. When it is asked is decided in repeats.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from perdure._tasks import find_row, has_signed, store_of
from perdure.server.credentials import Vault
from perdure.server.http.problems import from_exception
from perdure.server.http.repeats import answered_before
from perdure.server.http.requests import Answer, Ask
from perdure.server.nouns.references import uid_in
from perdure.server.table import Route, routes

_REFUSED = (404, 409, 410, 412)  # what a request may be told because it was done before


async def answer_of_first_try(route: Route, ask: Ask[Any, Any], mark: str, error: Exception) -> Answer | None:
    """The answer that the first try would have given; None when this error has another cause."""
    status = from_exception(error).status
    if status not in _REFUSED:
        return None
    if route.method == "DELETE" and status in (404, 410):
        return Answer(status=route.status)
    # The task of the address; else the one in the way, which the first try may have made.
    task = ask.parts.get("task") or getattr(error, "task_id", None)
    return await _what_is_there(route, ask) if await _has_done(ask, task, mark) else None


async def was_done(ask: Ask[Any, Any], uid: str) -> bool:
    """True if an earlier try of this very request has changed this task."""
    return bool(ask.mark) and await has_signed(store_of(ask.app.tasks), ask.mark, uid)


async def _has_done(ask: Ask[Any, Any], task: str | None, mark: str) -> bool:
    store, owners = store_of(ask.app.tasks), [f"namespace:{ask.caller.namespace}"]
    if ask.server.has_desk:
        owners.append(ask.server.part(Vault).owner)
    if task is not None:
        row = None if uid_in(task) else await find_row(store, task)
        owners.append(uid_in(task) or (row.uid if row else ""))
    return any([await has_signed(store, mark, owner) for owner in owners])


async def _what_is_there(route: Route, ask: Ask[Any, Any]) -> Answer:
    """The answer of the GET that shows what this route answers with.

    Raises:
        HttpProblem: none shows it.
    """
    if route.answer is None:
        return Answer(status=route.status)
    for shown in routes():
        if shown.method == "GET" and shown.answer is route.answer and (parts := _parts(route, shown, ask)) is not None:
            seen = await shown.handler(replace(ask, parts=parts, query=shown.query(), body=None, once=None, match=None))
            assert isinstance(seen, Answer)
            return replace(seen, status=route.status)
    raise answered_before()


def _parts(route: Route, shown: Route, ask: Ask[Any, Any]) -> Mapping[str, str] | None:
    """The parts of the GET's address: a thing above this one, or the one that the body of a POST names."""
    above = shown.segments == route.segments[: len(shown.segments)]
    below = shown.segments[:-1] == route.segments and hasattr(ask.body, shown.segments[-1].strip("{}"))
    if not above and not below:
        return None
    last = shown.segments[-1].strip("{}")
    return {**ask.parts, last: getattr(ask.body, last)} if below else ask.parts
