"""`app.webhooks`: make, change, rotate and remove webhooks, and look at what was sent.

    made = await app.webhooks.make("https://hooks.example.com/perdure", events=["task.paused", "task.failed"])
    print(made.secret)                    # shown this once; the receiver verifies messages with it

Servers and workers send the messages (perdure/_worker/delivery/hook_sender.py). This module only writes and reads.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure._ground.bridge import Call
from perdure._ground.clock import moment
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding.codec import stored_json
from perdure._ground.ids import new_uid
from perdure._ground.reach import Rules, Sender, new_secret
from perdure._store import DeliveryRow, HookRow, Store
from perdure._tasks.core import StoreOwner, store_of
from perdure._tasks.webhooks import delivery, hook, message
from perdure._tasks.webhooks.delivery import Delivery, DeliveryState, Message
from perdure._tasks.webhooks.hook import HookRecord, MadeWebhook, Webhook, when
from perdure.errors import Conflict, InvalidInput, NotFound

_RECORD = "webhook"
_MOST_HOOKS = 100  # of one namespace
_LONGEST_OVERLAP_MS = 7 * 24 * 3600 * 1000
_MOST_LISTED = 200
_LAST = "~"  # sorts after every id


class KeptHook(NamedTuple):
    """A webhook as it was read: its row and what is sealed in it."""

    row: HookRow
    record: HookRecord

    @property
    def id(self) -> str:
        return self.row.id


async def read_hooks(store: Store) -> list[KeptHook]:
    """The webhooks of the namespace, oldest first."""
    rows = await store.rows(HookRow, "list_webhooks", namespace=store.namespace)
    return [KeptHook(row, open_record(store, row)) for row in rows]


def open_record(store: Store, row: HookRow) -> HookRecord:
    record: HookRecord = store.unseal(bound_to(store.namespace, row.id), _RECORD, row.record, HookRecord)
    return record


def bound_to(namespace: str, id: str) -> str:
    """The place a sealed webhook record is bound to: moved to another place it cannot be opened."""
    return f"webhook:{namespace}:{id}"


async def put_record(store: Store, kept: KeptHook, record: HookRecord) -> bool:
    """Change a webhook from what was read; False when it was changed since."""
    params = {**_columns(store, kept.id, record), "version": kept.row.version}
    return await _write(store, "change_webhook", kept.id, params)


class Webhooks:
    """The webhooks of a namespace."""

    def __init__(self, tasks: StoreOwner, sender: Callable[[], Sender] | None = None) -> None:
        """`sender` gives what checks the address of a webhook."""
        self._store = store_of(tasks)
        self._sender = sender or (lambda: Sender(Rules()))

    async def make(
        self,
        url: str,
        *,
        events: Iterable[str] = ("*",),
        reasons: Iterable[str] = (),
        functions: Iterable[str] = (),
        agents: Iterable[str] = (),
        tags: Mapping[str, str] = {},
        data: bool = False,
        description: str = "",
        once: str | None = None,
    ) -> MadeWebhook:
        """Have events sent to this address, from now on. The answer holds the secret, which is not shown again.

        With `once`, a repeat after a lost answer finds the webhook that the first one made.

        events       dotted names, as in docs/reference/events.md; "*" is all
        reasons      of task.paused, only pauses for these reasons
        functions, agents, tags   only events of tasks that fit all of these
        data         also send what agents wrote: questions, errors, data of events

        Raises:
            AddressRefused: no message would be sent to this address.
            InvalidInput: another setting is not valid, or the namespace has 100 webhooks.
        """
        record = HookRecord(
            url=url,
            secret=new_secret(),
            events=hook.check_events(events),
            reasons=hook.check_reasons(reasons),
            functions=hook.check_names("functions", functions),
            agents=hook.check_names("agents", agents),
            tags=hook.check_tags(tags),
            data=data,
            description=hook.check_description(description),
            made_at=self._store.clock.now_ms(),
            once=once or "",
        )
        await self._check(url)
        there = await read_hooks(self._store)
        if made := [kept for kept in there if once and kept.record.once == once]:
            return MadeWebhook(webhook=self._view(made[0]), secret=made[0].record.secret)
        if len(there) >= _MOST_HOOKS:
            raise InvalidInput(f"the namespace has {_MOST_HOOKS} webhooks", do="remove one that is not used")
        id = f"hook_{new_uid(record.made_at)}"
        await _write(self._store, "add_webhook", id, _columns(self._store, id, record))
        return MadeWebhook(webhook=await self.get(id), secret=record.secret)

    async def list(self) -> Sequence[Webhook]:
        """All webhooks of the namespace, oldest first."""
        return [self._view(kept) for kept in await read_hooks(self._store)]

    async def get(self, id: str) -> Webhook:
        """
        Raises:
            NotFound: the namespace has no such webhook.
        """
        return self._view(await self._kept(id))

    async def change(
        self,
        id: str,
        *,
        version: int | None = None,
        url: str | UnsetType = UNSET,
        events: Iterable[str] | UnsetType = UNSET,
        reasons: Iterable[str] | UnsetType = UNSET,
        functions: Iterable[str] | UnsetType = UNSET,
        agents: Iterable[str] | UnsetType = UNSET,
        tags: Mapping[str, str] | UnsetType = UNSET,
        data: bool | UnsetType = UNSET,
        description: str | UnsetType = UNSET,
        enabled: bool | UnsetType = UNSET,
    ) -> Webhook:
        """Change the given settings and keep the rest. Waiting messages are sent to the new address.

        Raises:
            NotFound: the namespace has no such webhook.
            Conflict: it is no longer at `version`; nothing was changed.
            AddressRefused, InvalidInput: a setting is not valid; nothing was changed.
        """
        new: dict[str, Any] = {}
        if not isinstance(url, UnsetType):
            await self._check(url)
            new["url"] = url
        if not isinstance(events, UnsetType):
            new["events"] = hook.check_events(events)
        if not isinstance(reasons, UnsetType):
            new["reasons"] = hook.check_reasons(reasons)
        if not isinstance(functions, UnsetType):
            new["functions"] = hook.check_names("functions", functions)
        if not isinstance(agents, UnsetType):
            new["agents"] = hook.check_names("agents", agents)
        if not isinstance(tags, UnsetType):
            new["tags"] = hook.check_tags(tags)
        if not isinstance(data, UnsetType):
            new["data"] = data
        if not isinstance(description, UnsetType):
            new["description"] = hook.check_description(description)

        def changed(record: HookRecord) -> HookRecord:
            record = replace(record, **new)
            if isinstance(enabled, UnsetType) or enabled == record.enabled:
                return record
            return hook.enable(record) if enabled else hook.disable(record, self._store.clock.now_ms(), "an operator")

        return await self._update(id, version, changed)

    async def enable(self, id: str) -> Webhook:
        """Send to a webhook that was disabled. Messages that wait since then are sent first.

        Raises:
            NotFound: the namespace has no such webhook.
        """
        enabled = await self.change(id, enabled=True)
        kept = await self._kept(id)
        if kept.row.failing_since is not None:  # the three days begin anew
            marks = {"worker": kept.row.worker, "old_worker": kept.row.worker, "failing_since": None}
            await _write(self._store, "mark_webhook", id, marks)
            enabled = await self.get(id)
        return enabled

    async def disable(self, id: str) -> Webhook:
        """Send nothing more until it is enabled. Events go on being queued; they are kept for 7 days.

        Raises:
            NotFound: the namespace has no such webhook.
        """
        return await self.change(id, enabled=False)

    async def remove(self, id: str, *, version: int | None = None) -> None:
        """Remove a webhook and all its messages.

        Raises:
            NotFound: the namespace has no such webhook.
            Conflict: it is no longer at `version`; nothing was removed.
        """

        async def drop(kept: KeptHook) -> bool:
            return await _write(self._store, "drop_webhook", id, {"version": kept.row.version})

        await self._at_version(id, version, drop)

    async def rotate(self, id: str, overlap: Duration = "24h", *, once: str | None = None) -> MadeWebhook:
        """Give a webhook a new secret, shown this once. For the overlap messages are signed with both.

        With `once`, a repeat after a lost answer gives the secret that the first one made.

        Raises:
            NotFound: the namespace has no such webhook.
            InvalidInput: the overlap is longer than 7 days.
        """
        overlap_ms = int(require_timedelta("overlap", overlap).total_seconds() * 1000)
        if not 0 <= overlap_ms <= _LONGEST_OVERLAP_MS:
            raise InvalidInput("an overlap lasts 0 s to 7 days")
        if once is not None and (kept := await self._kept(id)).record.once == once:
            return MadeWebhook(webhook=self._view(kept), secret=kept.record.secret)
        secret, until = new_secret(), self._store.clock.now_ms() + overlap_ms
        new = {"secret": secret, "former_until": until, "once": once or ""}
        changed = await self._update(id, None, lambda record: replace(record, former=record.secret, **new))
        return MadeWebhook(webhook=changed, secret=secret)

    async def test(self, id: str, *, once: str | None = None) -> Delivery:
        """Queue a ping, which is sent like any message. With `once`, a repeat finds the first one.

        Raises:
            NotFound: the namespace has no such webhook.
            Conflict: it is disabled.
        """
        kept = await self._kept(id)
        now = self._store.clock.now_ms()
        body = message.plain_body(hook.PING, moment(now), {"webhook": {"id": id}})
        return await self._queue(kept, Message(_new_id(now, once), id, hook.PING, body), once)

    async def deliveries(
        self, id: str, *, state: DeliveryState | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[Delivery]:
        """The messages of a webhook, the newest first; `before` is the id of the last one that was seen.

        Raises:
            NotFound: the namespace has no such webhook.
        """
        if not 1 <= limit <= _MOST_LISTED:
            raise InvalidInput(f"limit is {limit}; it lies between 1 and {_MOST_LISTED}")
        await self._kept(id)
        asked = {"namespace": self._store.namespace, "webhook": id, "state": state or "", "limit": limit}
        rows = await self._store.rows(DeliveryRow, "list_deliveries", **asked, before=before or _LAST)
        return [delivery.view(self._store, row) for row in rows]

    async def delivery(self, id: str, message_id: str) -> Delivery:
        """
        Raises:
            NotFound: the webhook has no such message.
        """
        return delivery.view(self._store, await self._row(id, message_id))

    async def replay(self, id: str, message_id: str, *, once: str | None = None) -> Delivery:
        """Queue the same body once more, under a new id. With `once`, a repeat finds the first one.

        Raises:
            NotFound: the webhook has no such message.
            Conflict: the webhook is disabled.
        """
        kept, row = await self._kept(id), await self._row(id, message_id)
        body = delivery.body_of_row(self._store, row)
        new_id = _new_id(self._store.clock.now_ms(), once)
        again = Message(new_id, id, row.event, body, task_uid=row.task_uid, number=row.number)
        return await self._queue(kept, again, once)

    # ── inside ──────────────────────────────────────────────────────────────────────────────────

    async def _check(self, url: str) -> None:
        """
        Raises:
            AddressRefused: no message would be sent there.
        """
        await Call(lambda: _run_apart(self._sender().check(url)))

    async def _queue(self, kept: KeptHook, new: Message, once: str | None) -> Delivery:
        if once is not None:
            for sent in await self.deliveries(kept.id, limit=_MOST_LISTED):
                if sent.id.endswith(_tail(once)):
                    return sent
        if not kept.record.enabled:
            raise Conflict(
                f"webhook {kept.id} is disabled: {kept.record.disabled_why}",
                kept="nothing was queued",
                do=f"`perdure webhooks enable {kept.id}`, then try again",
            )
        await delivery.adding(self._store, new, self._store.clock.now_ms(), kept.id)
        return await self.delivery(kept.id, new.id)

    async def _row(self, id: str, message_id: str) -> DeliveryRow:
        asked = {"namespace": self._store.namespace, "id": message_id}
        rows = await self._store.rows(DeliveryRow, "get_delivery", **asked)
        if not rows or rows[0].webhook != id:
            do = f"`perdure webhooks deliveries {id}` lists them; they are kept for 7 days"
            raise NotFound("delivery", message_id, self._store.place, do=do)
        return rows[0]

    async def _kept(self, id: str) -> KeptHook:
        for kept in await read_hooks(self._store):
            if kept.id == id:
                return kept
        raise NotFound("webhook", id, self._store.place, do="`perdure webhooks list` lists them")

    async def _update(self, id: str, version: int | None, change: Callable[[HookRecord], HookRecord]) -> Webhook:
        async def put(kept: KeptHook) -> bool:
            return await put_record(self._store, kept, change(kept.record))

        await self._at_version(id, version, put)
        return await self.get(id)

    async def _at_version(self, id: str, version: int | None, act: Callable[[KeptHook], Awaitable[bool]]) -> None:
        """Do this to a webhook at the given version, or at whichever it has now."""
        while True:
            kept = await self._kept(id)
            if version is not None and kept.row.version != version:
                raise Conflict(
                    f"webhook {id} is at version {kept.row.version}, not {version}",
                    kept="the webhook as it is",
                    do="look at it, and try again",
                )
            if await act(kept):
                return

    def _view(self, kept: KeptHook) -> Webhook:
        row, record = kept
        rotating = record.former is not None and self._store.clock.now_ms() < record.former_until
        return Webhook(
            id=row.id,
            url=record.url,
            events=record.events,
            reasons=record.reasons,
            functions=record.functions,
            agents=record.agents,
            tags=record.tags,
            data=record.data,
            description=record.description,
            enabled=record.enabled,
            made_at=moment(record.made_at),
            changed_at=moment(row.changed_at),
            made_by=stored_json(row.author, f"the author of webhook {row.id}", dict),
            disabled_at=when(record.disabled_at),
            disabled_why=record.disabled_why,
            failing_since=when(row.failing_since),
            next_try_at=when(row.next_due),
            rotating_until=when(record.former_until) if rotating else None,
            version=row.version,
        )


def _run_apart(work: Coroutine[Any, Any, Any]) -> None:
    """Run it on a separate event loop: callers may be blocking code, or on a loop already."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def _new_id(now_ms: int, once: str | None) -> str:
    """Begins with the moment; ends with what a repeat of the same request finds it by."""
    uid = new_uid(now_ms)
    return f"{message.PREFIX}{uid if once is None else uid[: -len(_tail(once))] + _tail(once)}"


def _tail(once: str) -> str:
    digits = "0123456789abcdefghijklmnopqrstuv"  # as uids are written
    return "".join(digits[byte % len(digits)] for byte in hashlib.sha256(once.encode()).digest()[:12])


def _columns(store: Store, id: str, record: HookRecord) -> dict[str, Any]:
    sealed = store.seal(bound_to(store.namespace, id), _RECORD, record, HookRecord)
    return {"at": store.clock.now_ms(), "author": store.presence.author(), "record": sealed}


async def _write(store: Store, verb: str, id: str, params: dict[str, Any]) -> bool:
    return await store.verb(verb, store.namespace, {"id": id, **params}, key=f"~webhook/{id}") is not None
