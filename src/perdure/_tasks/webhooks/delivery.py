"""Messages to webhooks as the store keeps them: add one, see which are due, record how a try ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from perdure._ground.clock import moment
from perdure._store import DeliveryRow, Store, Write
from perdure._tasks.webhooks.hook import when

DeliveryState = Literal["due", "delivered", "failed"]
_BODY, _ANSWER = "hook body", "hook answer"


class TryOutcome(Struct, frozen=True):
    """The receiver's answer to the newest try."""

    trouble: str  # why there is no good answer; empty after one
    answer: str  # its first 2 kB


class Delivery(Struct, frozen=True, kw_only=True):
    """One message to one webhook. The id is the same in every try."""

    id: str
    webhook: str
    event: str
    task_uid: str  # empty: it is not about a task
    number: int  # of the event; it orders the messages of a task
    state: DeliveryState  # due: it is sent at `due_at`. failed: no try is left
    tries: int
    made_at: datetime
    due_at: datetime | None
    sent_at: datetime | None  # the newest try
    took_ms: int | None
    status: int | None  # of the newest answer
    trouble: str
    answer: str
    body: str


class Message(Struct, frozen=True):
    """A message to be kept."""

    id: str
    webhook: str
    event: str
    body: bytes
    task_uid: str = ""
    number: int = 0


def adding(store: Store, message: Message, now_ms: int, key: str) -> Write:
    """The write that keeps a message, due at once. `key` is what else is written in order with it."""
    params = {
        "id": message.id,
        "webhook": message.webhook,
        "task_uid": message.task_uid,
        "number": message.number,
        "event": message.event,
        "at": now_ms,
        "due_at": now_ms,
        "body": store.seal(message.id, _BODY, message.body, bytes),
    }
    return store.verb("add_delivery", store.namespace, params, key=key)


async def due(store: Store, webhook: str, by_ms: int, limit: int) -> Sequence[DeliveryRow]:
    """The messages of a webhook that are due, the longest due first."""
    asked = {"namespace": store.namespace, "webhook": webhook, "by": by_ms, "limit": limit}
    return await store.rows(DeliveryRow, "due_deliveries", **asked)


def body_of_row(store: Store, row: DeliveryRow) -> bytes:
    body: bytes = store.unseal(row.id, _BODY, row.body, bytes)
    return body


async def record_try(
    store: Store,
    row: DeliveryRow,
    *,
    state: DeliveryState,
    due_at: int | None,
    status: int | None,
    took_ms: int,
    outcome: TryOutcome,
) -> bool:
    """Keep how a try ended; durable when this returns. False when another process has recorded the same try."""
    params = {
        "id": row.id,
        "tries": row.tries,
        "state": state,
        "due_at": due_at,
        "status": status,
        "at": store.clock.now_ms(),
        "took_ms": took_ms,
        "answer": store.seal(row.id, _ANSWER, outcome, TryOutcome),
    }
    return await store.verb("record_delivery", store.namespace, params, key=row.id) is not None


def view(store: Store, row: DeliveryRow) -> Delivery:
    outcome = TryOutcome("", "") if row.answer is None else store.unseal(row.id, _ANSWER, row.answer, TryOutcome)
    return Delivery(
        id=row.id,
        webhook=row.webhook,
        event=row.event,
        task_uid=row.task_uid,
        number=row.number,
        state=row.state,  # type: ignore[arg-type]
        tries=row.tries,
        made_at=moment(row.made_at),
        due_at=when(row.due_at),
        sent_at=when(row.sent_at),
        took_ms=row.took_ms,
        status=row.status,
        trouble=outcome.trouble,
        answer=outcome.answer,
        body=body_of_row(store, row).decode("utf-8", "replace"),
    )
