"""Send the messages of webhooks that are due, and record how each try ended.

The answer decides: 2xx is success, 410 disables the webhook, anything else is tried again by the schedule of
perdure/_tasks/webhooks/retries.py. A webhook whose every try failed for three days is disabled. A process that dies
between the sending and the record has sent a message that the next process sends again, under the same id: at least
once.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress

from perdure._ground import crash_points as crash
from perdure._ground.clock import moment
from perdure._ground.reach import Reply, Sender, sign
from perdure._ground.secrets.known_secrets import redact
from perdure._ground.traces import traceparent
from perdure._store import DeliveryRow
from perdure._tasks import (
    HOOK_DISABLED,
    DeliveryState,
    HookFacts,
    HookMessage,
    KeptHook,
    Tasks,
    TryOutcome,
    adding_delivery,
    body_of_delivery,
    delay_after,
    disable_hook,
    due_deliveries,
    hook_wants,
    message_id,
    patience_asked,
    plain_hook_body,
    put_hook,
    read_hooks,
    record_try,
    store_of,
)
from perdure.errors import PerdureError

log = logging.getLogger("perdure.webhooks")

# Messages of one webhook that are under way at a time; the sender allows 2 per host and 8 in all.
_AT_ONCE = 2
GIVE_UP_MS = 3 * 24 * 3600 * 1000
_MOST_ANSWER = 2048
_NOBODY = HookFacts(None, "", {})


class HookSending:
    """Sends to the webhooks whose post this process holds."""

    def __init__(self, tasks: Tasks, sender: Sender, tried: Callable[[str], None]) -> None:
        """`tried` is called when a try has ended, with the state of its message, or '' when that was not recorded."""
        self._store, self._sender, self._tried = store_of(tasks), sender, tried
        self._under_way: dict[str, asyncio.Task[None]] = {}  # by the id of the message
        self._busy: dict[str, int] = {}  # by webhook

    async def begin(self, hook: KeptHook) -> None:
        """Begin to send what is due, as far as there is room."""
        room = _AT_ONCE - self._busy.get(hook.id, 0)
        now = self._store.clock.now_ms()
        if not hook.record.enabled or room <= 0 or hook.row.next_due is None or hook.row.next_due > now:
            return
        for row in await due_deliveries(self._store, hook.id, now, _AT_ONCE * 2):
            if row.id in self._under_way or room <= 0:
                continue
            room -= 1
            self._busy[hook.id] = self._busy.get(hook.id, 0) + 1
            task = asyncio.create_task(self._send(hook, row), name=f"perdure message {row.id}")
            self._under_way[row.id] = task

    async def end(self) -> None:
        """Stop. A message whose answer was not recorded is sent again by the next process."""
        running = list(self._under_way.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _send(self, hook: KeptHook, row: DeliveryRow) -> None:
        state = ""
        try:
            state = await self._try(hook, row)
        except PerdureError as error:
            log.warning("could not record a try of message %s: %s", row.id, error.what)
        except Exception:
            log.exception("a try of message %s failed", row.id)
        finally:
            self._under_way.pop(row.id, None)
            self._busy[hook.id] -= 1
            self._tried(state)

    async def _try(self, hook: KeptHook, row: DeliveryRow) -> str:
        body = body_of_delivery(self._store, row)
        began = time.monotonic()
        reply = await self._sender.post(hook.record.url, self._headers(hook, row, body), body)
        took_ms = int((time.monotonic() - began) * 1000)
        crash.place("webhooks.before_record")
        return await self._record(hook, row, reply, took_ms)

    def _headers(self, hook: KeptHook, row: DeliveryRow, body: bytes) -> dict[str, str]:
        now = self._store.clock.now_ms()
        signed = sign(hook.record.secrets(now), row.id, now // 1000, body)
        traced = {"traceparent": traceparent(row.task_uid)} if row.task_uid else {}
        return {"Content-Type": "application/json", **traced, **signed}

    async def _record(self, hook: KeptHook, row: DeliveryRow, reply: Reply, took_ms: int) -> str:
        now = self._store.clock.now_ms()
        tries = row.tries + 1
        text = reply.body[:_MOST_ANSWER].decode("utf-8", "replace")
        trouble = reply.trouble or ("" if reply.is_good else f"status {reply.status}")
        for secret in hook.record.secrets(now):
            text = text.replace(secret, "[secret]")
        outcome = TryOutcome(redact(trouble), redact(text))
        due_at = None
        if not reply.is_good:
            patience = patience_asked(reply.status, reply.headers, now / 1000)
            delay = delay_after(tries, patience=patience, dice=random.random())  # noqa: S311
            due_at = None if delay is None or reply.status == 410 else now + int(delay * 1000)
        state: DeliveryState = "delivered" if reply.is_good else "failed" if due_at is None else "due"
        if not await record_try(
            self._store, row, state=state, due_at=due_at, status=reply.status, took_ms=took_ms, outcome=outcome
        ):
            return ""
        if reply.is_good:
            await self._has_gone_well(hook)
        elif reply.status == 410:
            await self._disable(hook, "the receiver answered 410 Gone")
        else:
            await self._has_failed(hook, now, outcome.trouble)
        return state

    # ── what many tries say of a webhook ────────────────────────────────────────────────────────

    async def _has_gone_well(self, hook: KeptHook) -> None:
        await self._mark(hook.id, lambda since: None)

    async def _has_failed(self, hook: KeptHook, now_ms: int, trouble: str) -> None:
        since = await self._mark(hook.id, lambda since: now_ms if since is None else since)
        if since is not None and now_ms - since >= GIVE_UP_MS:
            await self._disable(hook, f"every try failed for 3 days; the last one: {trouble}"[:300])

    async def _mark(self, id: str, change: Callable[[int | None], int | None]) -> int | None:
        """Change since when a webhook fails. Returns the new value."""
        for kept in await read_hooks(self._store):
            if kept.id == id:
                old, new = kept.row.failing_since, change(kept.row.failing_since)
                if new != old:
                    marks = {"id": id, "worker": kept.row.worker, "old_worker": kept.row.worker, "failing_since": new}
                    await self._store.verb("mark_webhook", self._store.namespace, marks, key=f"~webhook/{id}")
                return new
        return None

    async def _disable(self, hook: KeptHook, why: str) -> None:
        """Disable a webhook, and tell the others."""
        for kept in await read_hooks(self._store):
            if kept.id != hook.id or not kept.record.enabled:
                continue
            now = self._store.clock.now_ms()
            if not await put_hook(self._store, kept, disable_hook(kept.record, now, why)):
                return await self._disable(hook, why)  # changed meanwhile
            log.warning("webhook %s is disabled: %s; `perdure webhooks enable %s` sends again", hook.id, why, hook.id)
            await self._tell_others(hook.id, kept.row.version, why, now)
        return None

    async def _tell_others(self, id: str, version: int, why: str, now_ms: int) -> None:
        body = plain_hook_body(HOOK_DISABLED, moment(now_ms), {"webhook": {"id": id, "why": why}})
        for other in await read_hooks(self._store):
            if other.id != id and other.record.enabled and hook_wants(other.record, HOOK_DISABLED, None, _NOBODY):
                told = message_id(other.id, id, version, now_ms)
                with suppress(PerdureError):
                    await adding_delivery(
                        self._store, HookMessage(told, other.id, HOOK_DISABLED, body), now_ms, f"~webhook/{other.id}"
                    )
