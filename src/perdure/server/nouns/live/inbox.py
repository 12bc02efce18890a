"""The inbox: everything that waits for a person, and deciding it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import structs

from perdure._tasks import Kept, Shelf
from perdure.errors import Conflict, InvalidInput, NotFound
from perdure.server.desk import Desk
from perdure.server.http import (
    Answer,
    Ask,
    answered_before,
    listed,
    page_limit,
    read_cursor,
    sign_cursor,
    was_done,
)
from perdure.server.nouns.references import no_such, task_of
from perdure.server.shapes.cuts import cut
from perdure.server.shapes.inbox import (
    Approval,
    GivenAnswer,
    InboxQuery,
    NewCallback,
    NewToken,
    Pause,
    Rejection,
    Settlement,
    Snooze,
    pause_for,
)
from perdure.server.shapes.tasks import Listed
from perdure.server.table import Nothing, Route
from perdure.types import InboxItem

_MOST_SNOOZED = 1000  # of one person
Snoozed = dict[str, int]  # until when, by the id of the pause


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


async def page(ask: Ask[InboxQuery, None]) -> Answer:
    query = ask.query
    bound = structs.replace(query, cursor=None, limit=50)  # what a cursor belongs to
    cursor = await read_cursor(ask, "inbox", bound, query.cursor)
    try:
        found = await ask.app.inbox.page(
            kinds=query.kind or None, task=query.task, limit=page_limit(ask, query.limit), cursor=cursor
        )
    except NotFound:
        raise no_such("task") from None
    hidden = {} if query.snoozed else await _put_off(ask)
    more = await sign_cursor(ask, "inbox", bound, found.cursor)
    return listed(ask, [_shown(ask, item) for item in found.items if item.id not in hidden], more)


async def get(ask: Ask[Nothing, None]) -> Answer:
    return Answer(pause_for(ask.caller, await _found(ask)))


async def of_task(ask: Ask[Nothing, None]) -> Answer:
    task = await task_of(ask)
    return listed(ask, [_shown(ask, item) for item in await ask.app.inbox.of(task)])


async def _found(ask: Ask[Any, Any]) -> InboxItem:
    try:
        return await ask.app.inbox.get(ask.parts["pause"])
    except NotFound:
        raise no_such("question") from None


def _shown(ask: Ask[Any, Any], item: InboxItem) -> Any:
    return cut(pause_for(ask.caller, item), f"/v1/inbox/{item.id}")


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────


async def approve(ask: Ask[Nothing, Approval]) -> Answer:
    said = ask.body
    return await _decide(ask, ask.app.inbox.approve, comment=said.comment, edited=said.edited)


async def reject(ask: Ask[Nothing, Rejection]) -> Answer:
    return await _decide(ask, ask.app.inbox.reject, comment=ask.body.comment)


async def answer(ask: Ask[Nothing, GivenAnswer]) -> Answer:
    said = ask.body
    return await _decide(ask, ask.app.inbox.answer, value=said.value, comment=said.comment)


async def settle(ask: Ask[Nothing, Settlement]) -> Answer:
    said = ask.body
    return await _decide(ask, ask.app.inbox.settle, choice=said.choice, value=said.value, comment=said.comment)


async def _decide(ask: Ask[Any, Any], verb: Callable[..., Awaitable[InboxItem]], **said: Any) -> Answer:
    try:
        item = await verb(ask.parts["pause"], by=ask.caller.name, once=ask.once, **said)
    except NotFound:
        raise no_such("question") from None
    except InvalidInput as refused:
        raise refused if ask.caller.reads_data else _without_words(refused) from None
    return Answer(pause_for(ask.caller, item))


def _without_words(refused: InvalidInput) -> InvalidInput:
    """The refusal without the question's text and schema."""
    places = [{"path": error["path"], "message": "it does not fit"} for error in refused.errors]
    return InvalidInput("the answer does not fit the question", kept=refused.kept, errors=places)


# ── putting off ──────────────────────────────────────────────────────────────────────────────────


async def snooze(ask: Ask[Nothing, Snooze]) -> Answer:
    if ask.body.until.tzinfo is None:
        raise InvalidInput("until has no time zone", do="write a moment: 2026-11-17T12:00:00Z")
    pause, until = await _found(ask), round(ask.body.until.timestamp() * 1000)
    shelf, now = _shelf(ask), ask.server.clock.now_ms()

    def changed(before: Snoozed | None) -> tuple[Snoozed, int | None]:
        kept = {id: moment for id, moment in (before or {}).items() if moment > now and id != pause.id}
        if len(kept) >= _MOST_SNOOZED:
            raise Conflict(f"{_MOST_SNOOZED:,} questions are put off already", do="decide some of them")
        return {**kept, pause.id: until}, None

    await shelf.update(_person(ask), changed)
    return Answer(None, 204)


async def _put_off(ask: Ask[Any, Any]) -> Snoozed:
    """What the caller has put off, and until when."""
    kept: Kept[Snoozed] | None = await _shelf(ask).get(_person(ask))
    now = ask.server.clock.now_ms()
    return {} if kept is None else {id: until for id, until in kept.value.items() if until > now}


def _shelf(ask: Ask[Any, Any]) -> Shelf[Snoozed]:
    return ask.server.part(Desk).vault.shelf("snoozed", Snoozed)


def _person(ask: Ask[Any, Any]) -> str:
    whose = "\0".join((ask.caller.namespace, ask.caller.how, ask.caller.name))
    return hashlib.sha256(whose.encode()).hexdigest()


# ── other systems ────────────────────────────────────────────────────────────────────────────────


async def token(ask: Ask[Nothing, NewToken]) -> Answer:
    task = await task_of(ask)
    if (await _found(ask)).uid != task.uid:
        raise no_such("question")
    if await was_done(ask, task.uid):
        raise answered_before()  # with a token that nobody can be told again
    made = await ask.app.inbox.token(ask.parts["pause"], signed=ask.body.signed)
    return _shown_once(made.token, made.secret)


async def task_token(ask: Ask[Nothing, None]) -> Answer:
    task = await task_of(ask)
    if await was_done(ask, task.uid):
        raise answered_before()
    return _shown_once(await task.callback_token())


def _shown_once(token: str, secret: str = "") -> Answer:
    value = NewCallback(token=token, address=f"/v1/callbacks/{token}", secret=secret)
    return Answer(value, 201, is_secret=True)


def _verb(name: str, does: str, handler: Any, body: Any, **more: Any) -> Route:
    settings: dict[str, Any] = {"scopes": ("inbox:decide",), "answer": Pause, "statuses": (409,), "once": "may", **more}
    return Route(method="POST", path=f"/v1/inbox/{{pause}}/{name}", handler=handler, does=does, body=body, **settings)


ROUTES = (
    Route(
        method="GET",
        path="/v1/inbox",
        handler=page,
        does="What waits for a person, the soonest to expire first.",
        scopes=("tasks:read",),
        query=InboxQuery,
        answer=Listed[Pause],
    ),
    Route(
        method="GET",
        path="/v1/inbox/{pause}",
        handler=get,
        does="One question with all that is known of it, also when it is decided.",
        scopes=("data:read",),
        answer=Pause,
    ),
    _verb("approve", "Say yes to an approval.", approve, Approval),
    _verb("reject", "Say no to an approval.", reject, Rejection),
    _verb("answer", "Answer a question.", answer, GivenAnswer),
    _verb("settle", "Say what became of an uncertain effect.", settle, Settlement),
    _verb(
        "snooze",
        "Hide a question from the caller's own list until a moment.",
        snooze,
        Snooze,
        scopes=("tasks:read",),
        answer=None,
        status=204,
        once="no",
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task}/pauses",
        handler=of_task,
        does="Every pause of a task, open and ended, also those that end by themselves.",
        scopes=("tasks:read",),
        answer=Listed[Pause],
    ),
    Route(
        method="POST",
        path="/v1/tasks/{task}/token",
        handler=task_token,
        does="A token that another system may answer by what a task waits for, or will; it is shown once.",
        scopes=("tasks:write",),
        answer=NewCallback,
        status=201,
        statuses=(409,),
        once="may",
    ),
    Route(
        method="POST",
        path="/v1/tasks/{task}/pauses/{pause}/token",
        handler=token,
        does="One more token that another system may answer a pause by; it is shown once.",
        scopes=("tasks:control",),
        body=NewToken,
        answer=NewCallback,
        status=201,
        statuses=(409,),
    ),
)
