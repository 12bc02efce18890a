"""`app.situation` and `app.situations`: why tasks are, or are not, running."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from perdure._durable.effects import may_run_until
from perdure._durable.inspect.open_calls import open_calls
from perdure._durable.inspect.situation.fact_reader import call_of, gather, last_path_of, uncertain_of
from perdure._durable.inspect.situation.facts import Facts, without_data
from perdure._durable.inspect.situation.rows import decide
from perdure._durable.journal import MARKS, read_readable, without_failed
from perdure._model import FINISHED, Entry, Situation
from perdure._store import Store
from perdure._tasks import Tasks, find_row, store_of
from perdure.errors import JournalDamaged, KeyMissing, NotFound

_AT_REST = ("waiting", "stuck", "starting")


class HasUid(Protocol):
    """A task as a list or a record has it."""

    @property
    def uid(self) -> str: ...


async def situation_of(tasks: Tasks, id: str) -> Situation:
    """Why a task is, or is not, running.

    Raises:
        NotFound: there is no such task.
    """
    store = store_of(tasks)
    row = await find_row(store, id)
    if row is None:
        raise NotFound("task", id, store.place)
    return decide(await all_facts(store, row.uid))


async def situation_by_uid(tasks: Tasks, uid: str, *, tells_data: bool = True) -> Situation:
    """The same for the task with this uid, which can be in history. Without `tells_data` the sentences leave out text
    written by agents.

    Raises:
        NotFound: there is no such task.
    """
    facts = await all_facts(store_of(tasks), uid)
    return decide(facts if tells_data else without_data(facts))


async def situations_of(tasks: Tasks, items: Iterable[HasUid], *, tells_data: bool = True) -> Mapping[str, Situation]:
    """The situations of several tasks, by uid, with as many queries as for one. Only the ends of their journals are
    read. Without `tells_data` the sentences leave out what agents wrote."""
    found = await gather(store_of(tasks), [item.uid for item in items])
    return {uid: decide(facts if tells_data else without_data(facts)) for uid, facts in found.items()}


async def all_facts(store: Store, uid: str) -> Facts:
    """Everything known about one task, with its whole journal.

    Raises:
        NotFound: there is no such task.
    """
    facts = (await gather(store, [uid])).get(uid)
    if facts is None:
        raise NotFound("task", uid, store.place)
    if not facts.is_function or facts.status in ("completed", "cancelled"):
        return facts
    try:
        readable = await read_readable(store, uid, facts.line)
        entries = [entry for _, entry in await without_failed(store, uid, readable.entries)]
    except KeyMissing as error:
        return replace(facts, sealed=f"sealed with key {error.key_id}, which is not here")
    return await with_journal(store, uid, facts, entries, readable.damaged)


async def with_journal(
    store: Store, uid: str, facts: Facts, entries: Sequence[Entry], damaged: Sequence[tuple[int, str]]
) -> Facts:
    """The facts with what the whole journal adds."""
    epoch = facts.epoch if facts.at_work is not None else None
    frames = open_calls(entries, [], at_work=epoch, until=await may_run_until(store, uid, entries))
    ends = [entry for entry in entries if entry.kind == "result" and entry.op not in MARKS]
    facts = replace(
        facts, calls=len(ends), call=call_of(frames), uncertain=uncertain_of(frames), last_path=last_path_of(entries)
    )
    if not damaged or facts.status in FINISHED - {"failed"}:
        return facts
    position, problem = damaged[0]
    said = f"entry {position} of its journal cannot be read"
    return replace(facts, damaged=said, damaged_do=JournalDamaged(facts.id, position, problem).do or "")


async def why_not_at_work(store: Store, uid: str) -> str:
    """Why no worker carries on a task that is ready; empty when one does, or when the task waits for something."""
    facts = (await gather(store, [uid]))[uid]
    if facts.status != "running" or not facts.is_function or (facts.holder is not None):
        return ""
    found = decide(facts)
    return found.next if found.kind in _AT_REST else ""
