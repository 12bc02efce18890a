"""`perdure where`: what a task was in the middle of, read from its journal without running anything.

Frames are the calls under way, outermost first: scopes that have begun something and not ended, an effect with an
intent on record, a step that has recorded progress, a question that waits for its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from perdure._durable.effects import may_run_until
from perdure._durable.inspect.open_calls import CallFrame, last_returned, open_calls
from perdure._durable.inspect.situation import decide, gather, with_journal
from perdure._durable.journal import MARKS, read_readable, without_bytes, without_failed
from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._ground.ids import is_proven_dead
from perdure._ground.secrets import envelope
from perdure._ground.secrets.known_secrets import redact, redact_value
from perdure._model import FINISHED, Entry, Progress, Situation, TaskRecord, name_of
from perdure._store import CallRow, ChildRow, Store
from perdure._tasks import Tasks, blockers, current_row, questions_of, read_holder, store_of
from perdure.errors import PerdureError

# The beginnings of attempt ends that came from outside the function.
_CUT_OFF = ("its process died", "silent for a whole lease", "stalled", "given up", "interrupted")
_MOST_CHILDREN = 100


class Where(Struct, frozen=True, kw_only=True):
    """The answer to "what was I in the middle of doing?"."""

    id: str
    status: str
    function: str | None
    arguments: Any
    done: int  # how many calls have ended
    last: str  # the name of the newest of them
    last_path: str = ""  # and its path: chapter#7
    last_at: datetime | None
    returned: Sequence[str] = ()  # recent results, the newest last: chapter#7 -> 'done'
    frames: Sequence[CallFrame] = ()
    waits_for: Sequence[str] = ()
    percent: float | None = None
    operation: str = ""
    amount: str = ""  # 9/10
    holder: str = ""  # the process that works on it; "" when there is none
    dead: str = ""  # the process that worked on it and died without giving it back
    unseen: str = ""  # calls that may have been under way unrecorded when its attempt was interrupted
    attempts: int = 0
    situation: Situation
    next: str = ""  # what happens next, or what ends its situation
    error: str = ""  # the error it failed with, or the error of its last attempt
    traceback: str = ""  # the traceback of that error; its first line names the user's own code
    damaged: Sequence[int] = ()  # positions of journal entries that cannot be read
    uncertain: Sequence[str] = field(default_factory=list)
    thoughts: Sequence[str] = ()  # interrupted lines of thought: "back to X, step 4/6: …"
    children: Sequence[Where] = ()  # its children that have not ended


async def where(tasks: Tasks, id: str, *, depth: int = 8) -> Where:
    """What a task is doing, or was in the middle of; with its open children, down to `depth` generations.

    Raises:
        NotFound: there is no such task.
    """
    store = store_of(tasks)
    task = await tasks.handle(id)
    record = await task.record()
    row = await current_row(store, id, task.uid)
    readable = await read_readable(store, task.uid, row.line)
    entries = [entry for _, entry in await without_failed(store, task.uid, readable.entries)]
    questions = await questions_of(store, id, task.uid, has_ended=record.is_finished)
    call = await store.rows(CallRow, "get_call", uid=task.uid)
    ends = [entry for entry in entries if entry.kind == "result" and entry.op not in MARKS]
    holder, dead = await who_works_on(store, task.uid)
    at_work = record.attempts[-1].epoch if holder and record.attempts else None
    frames = open_calls(entries, questions, at_work=at_work, until=await may_run_until(store, task.uid, entries))
    facts = (await gather(store, [task.uid]))[task.uid]
    found = decide(await with_journal(store, task.uid, facts, entries, readable.damaged))
    return Where(
        id=id,
        status=record.status,
        situation=found,
        function=call[0].function if call else None,
        arguments=shown_arguments(store, task.uid, call[0].arguments) if call else None,
        done=len(ends),
        last=name_of(ends[-1].path) if ends else "",
        last_path=ends[-1].path.removeprefix("|") if ends else "",
        last_at=moment(ends[-1].at) if ends and ends[-1].at else None,
        returned=last_returned(ends),
        frames=frames,
        waits_for=[question.waits_for for question in questions]
        or _pause_of(record)
        or await blockers(store_of(tasks), id),
        percent=record.progress.percent if record.progress else None,
        operation=record.progress.operation if record.progress else "",
        amount=_amount(record.progress),
        holder=holder,
        attempts=len(record.attempts),
        damaged=[position for position, _ in readable.damaged],
        next=found.next,
        error=_error_of(record),
        traceback=_traceback_of(record),
        dead=dead,
        unseen=_unseen(record, frames, ends, dead) if call and not holder and found.cause != "damaged" else "",
        uncertain=[frame.name for frame in frames if frame.state == "uncertain"],
        thoughts=[frame.announcement for frame in await task.frames.open()],
        children=await _children(tasks, task.uid, depth),
    )


async def _children(tasks: Tasks, uid: str, depth: int) -> list[Where]:
    if depth < 1:
        return []
    children = await store_of(tasks).rows(ChildRow, "children_of", uid=uid)
    open_ = [child.id for child in children if child.status not in FINISHED]
    return [await where(tasks, id, depth=depth - 1) for id in open_[:_MOST_CHILDREN]]


def _amount(progress: Progress | None) -> str:
    if progress is None or progress.done is None:
        return ""
    return f"{progress.done:,}" if progress.total is None else f"{progress.done:,}/{progress.total:,}"


def shown_arguments(store: Store, uid: str, sealed: bytes) -> Any:
    """The arguments for people to look at, without secrets. Of unknown classes, their fields."""
    try:
        named = codec.decode(envelope.unseal(sealed, kind="arguments", bound_to=uid, ring=store.ring))
        return redact_value({name: without_bytes(codec.peek(value)) for name, value in named.items()})
    except PerdureError as error:
        return error.what


def _unseen(record: TaskRecord, frames: Sequence[CallFrame], ends: Sequence[Entry], dead: str) -> str:
    """What is known about an interrupted attempt without a call under way: an effect would have left its intent."""
    was_cut_off = bool(dead) or (bool(record.attempts) and record.attempts[-1].ended.startswith(_CUT_OFF))
    if record.status != "running" or frames or not was_cut_off:
        return ""
    after = ends[-1].path.removeprefix("|") if ends else "it began"
    return (
        f"nothing is on record after {after}: no effect was under way; a step may have been, for less than half a "
        "second or while it blocked the event loop, and is run again"
    )


async def who_works_on(store: Store, uid: str) -> tuple[str, str]:
    """The process that works on the task, and the last one if it is proven dead. At most one of them is not None."""
    holder = await read_holder(store, uid)
    if holder.is_free or holder.process is None:
        return "", ""
    who = f"{holder.user} (pid {holder.process.pid} on {holder.process.host})"
    return ("", who) if is_proven_dead(holder.process, same_machine=store.engine.is_local) else (who, "")


def _error_of(record: TaskRecord) -> str:
    if record.status != "failed":
        details = record.pause.details if record.pause is not None and record.is_paused else {}
        return redact(str(details.get("error") or ""))
    error = record.error
    if not isinstance(error, dict):
        return redact(str(error))
    return redact(": ".join(str(error[part]) for part in ("type", "message") if error.get(part)))


def _traceback_of(record: TaskRecord) -> str:
    """The traceback of a failed task, or of the attempt that made it pause."""
    if record.status == "failed":
        return str(record.error.get("traceback") or "") if isinstance(record.error, dict) else ""
    if record.pause is not None and record.is_paused and "effect" not in record.pause.details:  # shown with the call
        return str(record.pause.details.get("traceback") or "")
    return ""


def _pause_of(record: TaskRecord) -> list[str]:
    return [record.pause.message] if record.pause else []
