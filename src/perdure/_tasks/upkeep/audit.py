"""Check that the recorded events have not been rewritten.

Each task's events form a chain, and its head is in the task's row; a deleted task leaves its head in a tombstone.
Anyone who can write to the store can forge both. So heads can be exported and kept elsewhere: compared with them, even
a rewrite of a whole chain shows, and so does a task removed without a tombstone.

Owns what is compared with what. perdure/_model/records/event.py walks a chain.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

from perdure._ground.bridge import Call
from perdure._ground.clock import moment
from perdure._ground.secrets import envelope
from perdure._model import ChainCheck, Link
from perdure._model import verify as walk
from perdure._store import EventRow, Store, TaskRow
from perdure._tasks.task_walk import every_task
from perdure._tasks.upkeep.steps import Steps, StopUpkeep, Tell
from perdure.errors import InvalidInput, KeyMissing, NotFound, RecordDamaged

_PAGE = 500
_HASH_BYTES = 32
FORMAT = 1

WITHOUT_HEADS = (
    "no heads were given: a chain that was rewritten as a whole, or a task removed together with its "
    "tombstone, shows only against heads kept outside the store (`perdure audit export`)"
)


class Broken(NamedTuple):
    """The first record of a task that does not fit; `event` is None when no single event is to blame."""

    task_id: str
    uid: str
    event: int | None
    problem: str


@dataclass(slots=True)
class Audit:
    """The result of a check: the number of records, the first that does not match, and those that could not be read."""

    tasks: int = 0
    events: int = 0
    tombstones: int = 0
    compared: int = 0  # heads from outside that were looked up
    broken: list[Broken] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    stopped: bool = False  # by `tell`: the tasks after it were not looked at

    @property
    def is_whole(self) -> bool:
        return not self.broken


class Head(NamedTuple):
    """The length of a task's chain when heads were exported."""

    uid: str
    id: str
    events: int
    head: bytes


class Tombstone(NamedTuple):
    """The columns of read_tombstones.sql."""

    uid: str
    namespace: str
    id: str
    status: str
    event_count: int
    event_head: bytes
    created_at: int
    deleted_at: int
    author: str


async def verify(
    store: Store,
    ids: Sequence[str] | None = None,
    *,
    heads: Mapping[str, Any] | None = None,
    tell: Tell | None = None,
) -> Audit:
    """Check the chains of these tasks (None: of all), their tombstones, and both against exported heads. `tell` hears
    of every task, and stops the work by returning False (steps.py).

    Raises:
        NotFound: there is no task, and no tombstone, of an id that was given.
        InvalidInput: `heads` is not what `export_heads` gives.
    """
    audit = Audit()
    try:
        await _verify(store, ids, heads, audit, Steps(tell))
    except StopUpkeep:
        audit.stopped = True
        audit.unseen.append("the tasks after the one at which the audit was stopped")
    return audit


async def _verify(
    store: Store, ids: Sequence[str] | None, heads: Mapping[str, Any] | None, audit: Audit, steps: Steps
) -> None:
    outside = [head for head in _parse(heads) if ids is None or head.id in ids] if heads is not None else None
    wanted = {head.uid: head for head in outside or ()}
    tombstones = {t.uid: t for t in await _tombstones(store) if ids is None or t.id in ids}
    seen: set[str] = set()
    async for row in _rows(store, ids, {tombstone.id for tombstone in tombstones.values()}):
        seen.add(row.uid)
        await _check_task(store, row, wanted.get(row.uid), audit)
        if row.uid in tombstones:
            audit.broken.append(Broken(row.id, row.uid, None, "it has a tombstone, and is here all the same"))
        steps.take("chains", row.id)
    for tombstone in tombstones.values():
        _check_tombstone(tombstone, wanted.get(tombstone.uid), audit)
    for head in wanted.values():
        audit.compared += 1
        if head.uid not in seen and head.uid not in tombstones and not await _came_to_rest(store, head, audit):
            what = f"it had {head.events} events when heads were exported, and is gone without a tombstone"
            audit.broken.append(Broken(head.id, head.uid, None, what))
    if outside is None:
        audit.unseen.append(WITHOUT_HEADS)


async def export_heads(store: Store) -> dict[str, Any]:
    """The head of every task's chain, deleted ones' too, as JSON; to be kept where the agent cannot write."""
    heads = {row.uid: Head(row.uid, row.id, row.event_count, row.event_head) for row in await _all(store)}
    heads.update({t.uid: Head(t.uid, t.id, t.event_count, t.event_head) for t in await _tombstones(store)})
    return {
        "format": FORMAT,
        "store": store.place,
        "namespace": store.namespace,
        "exported_at": moment(store.clock.now_ms()).isoformat(),
        "tasks": [
            {"uid": head.uid, "id": head.id, "count": head.events, "head": head.head.hex()} for head in heads.values()
        ],
    }


def _parse(heads: Mapping[str, Any]) -> list[Head]:
    try:
        if heads["format"] != FORMAT:
            raise InvalidInput(f"these heads have format {heads['format']!r}", do="use the perdure that exported them")
        return [Head(t["uid"], t["id"], int(t["count"]), bytes.fromhex(t["head"])) for t in heads["tasks"]]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"this is not an export of heads: {error!r}", do="make one with `perdure audit export`"
        ) from None


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


async def _all(store: Store) -> list[TaskRow]:
    return [row async for row in every_task(store, store.namespace)]


async def _rows(store: Store, ids: Sequence[str] | None, deleted: set[str]) -> AsyncIterator[TaskRow]:
    if ids is None:
        async for row in every_task(store, store.namespace):
            yield row
        return
    for id in dict.fromkeys(ids):
        found = await store.rows(TaskRow, "get_history", namespace=store.namespace, id=id)
        if not found and id not in deleted:
            raise NotFound("task", id, store.place)
        for row in found:
            yield row


async def _tombstones(store: Store) -> list[Tombstone]:
    return await store.rows(Tombstone, "read_tombstones", namespace=store.namespace)


def _links(store: Store, uid: str, after: int = 0) -> Iterator[Link]:
    """A task's events in order, read in pages; blocking."""
    while page := store.engine.query("read_events", {"uid": uid, "after": after, "limit": _PAGE}):
        for found in page:
            row = EventRow(*found)
            yield Link(row.number, row.at, row.kind, row.author, _body(store, uid, row), row.digest, row.hash)
        after = page[-1][0]


def _body(store: Store, uid: str, row: EventRow) -> bytes | None:
    try:
        return envelope.unseal(row.body, kind="event", bound_to=uid, ring=store.ring)
    except KeyMissing:
        return None
    except RecordDamaged:
        return b""  # no event has an empty body, so its digest will not fit


# ── comparing ────────────────────────────────────────────────────────────────────────────────────


async def _check_task(store: Store, row: TaskRow, head: Head | None, audit: Audit) -> None:
    check, at_head = await Call(lambda: _walk(store, row, head))
    if check.broken_at is None and await Call(lambda: _has_more(store, row)):
        check = ChainCheck(check.events, check.events + 1, "an event stands after the head", check.unseen, check.head)
    if check.broken_at is not None and not await _is_still_there(store, row.uid):
        return  # deleted while we were reading; its tombstone is looked at the next time
    audit.tasks += 1
    audit.events += check.events
    if check.unseen:
        audit.unseen.append(f"task {row.id!r}: the bodies of {check.unseen} events, whose key is not here")
    if check.broken_at is not None:
        audit.broken.append(Broken(row.id, row.uid, check.broken_at, check.problem))
    elif head is not None and at_head != head.head:
        problem = f"event {head.events} is not the one it was when heads were exported: the chain was rewritten"
        if check.events < head.events:
            problem = f"it had {head.events} events when heads were exported, and has {check.events} now"
        audit.broken.append(Broken(row.id, row.uid, min(head.events, check.events + 1), problem))


def _walk(store: Store, row: TaskRow, head: Head | None) -> tuple[ChainCheck, bytes | None]:
    """The chain up to the count in the row, and the hash of the event that an exported head names."""
    at_head: list[bytes] = []

    def noted() -> Iterator[Link]:
        # The task may continue while we read: later events than its row are not looked at.
        for link in takewhile(lambda link: link.number <= row.event_count, _links(store, row.uid)):
            if head is not None and link.number == head.events:
                at_head.append(link.hash)
            yield link

    return walk(row.uid, noted(), row.event_count, row.event_head), at_head[0] if at_head else None


def _has_more(store: Store, row: TaskRow) -> bool:
    """True if there are events beyond the head that will never be in the row."""
    if not store.engine.query("read_events", {"uid": row.uid, "after": row.event_count, "limit": 1}):
        return False
    now = store.engine.query("get_task_by_uid", {"uid": row.uid})
    return bool(now) and TaskRow(*now[0]).event_count == row.event_count


async def _is_still_there(store: Store, uid: str) -> bool:
    return bool(await store.query("get_task_by_uid", uid=uid))


def _check_tombstone(tombstone: Tombstone, head: Head | None, audit: Audit) -> None:
    audit.tombstones += 1
    problem = ""
    if tombstone.event_count < 1 or len(tombstone.event_head) != _HASH_BYTES:
        problem = "its tombstone holds no head"
    elif tombstone.deleted_at < tombstone.created_at:
        problem = "its tombstone says that it was deleted before it was made"
    elif head is not None and tombstone.event_count < head.events:
        problem = f"it had {head.events} events when heads were exported; its tombstone knows {tombstone.event_count}"
    elif head is not None and tombstone.event_count == head.events and tombstone.event_head != head.head:
        problem = "its tombstone has another head than the exported one"
    if problem:
        audit.broken.append(Broken(tombstone.id, tombstone.uid, None, problem))
    elif head is not None and tombstone.event_count > head.events:
        after = tombstone.event_count - head.events
        audit.unseen.append(f"task {tombstone.id!r} is deleted: the {after} events after its exported head")


async def _came_to_rest(store: Store, head: Head, audit: Audit) -> bool:
    """True if the task was deleted while we were reading."""
    found = next((t for t in await _tombstones(store) if t.uid == head.uid), None)
    if found is not None:
        _check_tombstone(found, head, audit)
    return found is not None
