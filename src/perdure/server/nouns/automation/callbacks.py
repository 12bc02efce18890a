"""Callbacks: the answer of another system, by a token that is its credential.

A token is unguessable, good once, and in no log: logs name routes, never paths. An unknown one is answered after a
fixed time, so that the answer's speed does not tell whether the task behind it exists.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any
from weakref import WeakKeyDictionary

from perdure._ground.reach import is_signed
from perdure._model import hash_of_token, task_of_token
from perdure._store import TaskRow
from perdure._tasks import store_of
from perdure.errors import InvalidInput, NotAllowed, NotFound
from perdure.server.access import Rates
from perdure.server.http import Answer, Ask, HttpProblem, Services, read_json
from perdure.server.nouns.references import no_such
from perdure.server.shapes.inbox import Counted
from perdure.server.table import Nothing, Raw, Route

_LARGEST = 1_000_000  # bytes of an answer
_REFUSED_AFTER = 0.025  # seconds: longer than looking a token up takes
_PER_TOKEN, _PER_ADDRESS = 10, 50  # a second

_rates: WeakKeyDictionary[Services, tuple[Rates, Rates]] = WeakKeyDictionary()


async def deliver(ask: Ask[Nothing, None]) -> Answer:
    token, began = ask.parts["token"], asyncio.get_running_loop().time()
    _spend(ask, token)
    assert ask.content is not None
    body = b"".join([piece async for piece in ask.content])
    value = read_json(body, depth=ask.server.settings.depth) if body else None
    try:
        return Answer(Counted(await _deliver(ask, token, value, body)))
    except NotFound:
        await asyncio.sleep(_left(began))
        raise no_such("callback") from None


async def _deliver(ask: Ask[Any, Any], token: str, value: Any, body: bytes) -> bool:
    now = ask.server.clock.now_ms() / 1000

    def is_good(secret: str) -> bool:
        return is_signed([secret], ask.headers, body, now)

    space = await _namespace_of(ask, token)
    app = ask.server.app_of(space)
    try:
        is_counted = await app.inbox.deliver(token, value, by="callback", is_signed=is_good)
        if not is_counted:
            ask.server.telemetry.of(space).count("duplicates_prevented", "callback")
        return is_counted
    except NotAllowed as refused:
        raise HttpProblem(
            401,
            "bad_signature",
            refused.what,
            kept="nothing was written",
            do="sign the answer, as Standard Webhooks says",
        ) from None
    except InvalidInput as refused:  # without the words of the question
        raise InvalidInput(
            "the value does not fit what was asked",
            kept="nothing was written; the token is still good",
            errors=refused.errors,
        ) from None


async def _namespace_of(ask: Ask[Any, Any], token: str) -> str:
    """Where the task of the token is; our own if there is none, so that both ways are equally long."""
    uid, store = task_of_token(token), store_of(ask.app.tasks)
    row = await store.row(TaskRow, "get_task_by_uid", uid=uid or "")
    return row.namespace if row is not None else ask.caller.namespace


def _left(began: float) -> float:
    """Seconds until the next multiple of the fixed time."""
    spent = asyncio.get_running_loop().time() - began
    return math.ceil(spent / _REFUSED_AFTER) * _REFUSED_AFTER - spent


def _spend(ask: Ask[Any, Any], token: str) -> None:
    by_token, by_address = _rates.setdefault(
        ask.server, (Rates(_PER_TOKEN, _PER_TOKEN), Rates(_PER_ADDRESS, _PER_ADDRESS))
    )
    now = ask.server.clock.boottime()
    wait = max(by_address.take(ask.caller.address, now), by_token.take(hash_of_token(token) or "", now))
    if wait > 0:
        raise HttpProblem(
            429,
            "too_many_requests",
            "callbacks come too often",
            do="wait, and ask less often",
            headers={"Retry-After": str(math.ceil(wait))},
        )


ROUTES = (
    Route(
        method="POST",
        path="/v1/callbacks/{token}",
        handler=deliver,
        does="Bring the answer of another system, by the token it was given.",
        who="token",
        body=Raw,
        body_limit=_LARGEST,
        answer=Counted,
        statuses=(401, 409),
        headers={"webhook-id": "may", "webhook-timestamp": "may", "webhook-signature": "may"},
    ),
)
