"""`perdure where`: what a task was in the middle of, read from its journal without running anything.

Frames are the calls under way, outermost first: scopes that have begun something and not ended, an effect with an
intent on record, a step that has recorded progress, a question that waits for its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from shlex import quote
from typing import Any

from msgspec import Struct, field

from perdure._durable.control import cancel_request, why_stopped
from perdure._durable.effects import may_run_until
from perdure._durable.inspect.availability import why_not_checked, why_unclaimed
from perdure._durable.inspect.open_calls import CallFrame, last_returned, open_calls
from perdure._durable.journal import MARKS, read_readable, without_bytes, without_failed
from perdure._ground import codec, envelope
from perdure._ground.clock import moment
from perdure._ground.ids import is_proven_dead
from perdure._ground.known_secrets import redact, redact_value
from perdure._model import FINISHED, Entry, Progress, TaskRecord, name_of
from perdure._store import CallRow, Store
from perdure._tasks import COULD_NOT_BEGIN, Question, Tasks, blockers, current_row, questions_of, read_holder, store_of
from perdure.errors import JournalDamaged, PerdureError

# The beginnings of attempt ends that came from outside the function.
_CUT_OFF = ("its process died", "silent for a whole lease", "stalled", "given up", "interrupted")
_BLOCKED = "it begins when its dependencies have completed"


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
    unseen: str = ""  # what may have been under way without a trace when its attempt was interrupted
    attempts: int = 0
    next: str = ""
    error: str = ""  # the error it failed with, or the error of its last attempt
    traceback: str = ""  # the traceback of that error; its first line names the user's own code
    damaged: Sequence[int] = ()  # positions of journal entries that cannot be read
    uncertain: Sequence[str] = field(default_factory=list)
    thoughts: Sequence[str] = ()  # interrupted lines of thought: "back to X, step 4/6: …"
    children: Sequence[Where] = ()  # its children that have not ended


async def where(tasks: Tasks, id: str) -> Where:
    """What a task is doing, or was in the middle of.

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
    blocked = await blockers(store_of(tasks), id)
    unclaimed = await why_unclaimed(store, call[0]) if call and not holder and record.status == "running" else ""
    if unclaimed and record.attempts and record.attempts[-1].ended == COULD_NOT_BEGIN:
        unclaimed = f"{unclaimed}; {await _why_not_begun(tasks, record)}"
    # A process that has the journal in memory continues; any other would have to read it.
    stuck = readable.damaged and not holder and record.status not in ("completed", "cancelled")
    damage = JournalDamaged(id, *readable.damaged[0]).do if stuck else ""
    stopped = await why_stopped(store, id) if call and not record.is_finished else ""
    stopped = stopped or await _why_to_be_cancelled(store, record, task.uid, holder)
    unchecked = await why_not_checked(store, record.pause) if record.pause is not None and not questions else ""
    children = await store.query("children_of", uid=task.uid)
    return Where(
        id=id,
        status=record.status,
        function=call[0].function if call else None,
        arguments=_arguments(store, task.uid, call[0].arguments) if call else None,
        done=len(ends),
        last=name_of(ends[-1].path) if ends else "",
        last_path=ends[-1].path.removeprefix("|") if ends else "",
        last_at=moment(ends[-1].at) if ends and ends[-1].at else None,
        returned=last_returned(ends),
        frames=frames,
        waits_for=[question.waits_for for question in questions] or _pause_of(record) or blocked,
        percent=record.progress.percent if record.progress else None,
        operation=record.progress.operation if record.progress else "",
        amount=_amount(record.progress),
        holder=holder,
        attempts=len(record.attempts),
        damaged=[position for position, _ in readable.damaged],
        next=stopped or _BLOCKED
        if stopped or blocked
        else damage or unchecked or _next(record, questions, frames, holder, unclaimed),
        error=_error_of(record),
        traceback=_traceback_of(record),
        dead=dead,
        unseen=_unseen(record, frames, ends, dead) if call and not holder and not damage else "",
        uncertain=[frame.name for frame in frames if frame.state == "uncertain"],
        thoughts=[frame.announcement for frame in await task.frames.open()],
        children=[await where(tasks, id) for _, id, status in children if status not in FINISHED],
    )


def _amount(progress: Progress | None) -> str:
    if progress is None or progress.done is None:
        return ""
    return f"{progress.done:,}" if progress.total is None else f"{progress.done:,}/{progress.total:,}"


def _arguments(store: Store, uid: str, sealed: bytes) -> Any:
    """The arguments for people to look at, without secrets. Of unknown classes, their fields."""
    try:
        named = codec.decode(envelope.unseal(sealed, kind="arguments", bound_to=uid, ring=store.ring))
        return redact_value({name: without_bytes(codec.peek(value)) for name, value in named.items()})
    except PerdureError as error:
        return error.what


def _unseen(record: TaskRecord, frames: Sequence[CallFrame], ends: Sequence[Entry], dead: str) -> str:
    """What is known of an interrupted attempt without a call under way: an effect would have left its intent."""
    was_cut_off = bool(dead) or (bool(record.attempts) and record.attempts[-1].ended.startswith(_CUT_OFF))
    if record.status != "running" or frames or not was_cut_off:
        return ""
    after = ends[-1].path.removeprefix("|") if ends else "it began"
    return (
        f"nothing is on record after {after}: no effect was under way; a step may have been, for less than half a "
        "second or while it blocked the event loop, and is run again"
    )


async def who_works_on(store: Store, uid: str) -> tuple[str, str]:
    """The process that works on the task, and the one that did and is proven dead: one of them, or neither."""
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


async def _why_not_begun(tasks: Tasks, record: TaskRecord) -> str:
    """Why the last attempt did not reach its function: for example wrong code, or changed surroundings."""
    last = record.attempts[-1]
    events = [event for event in await tasks.events(record.id) if event.kind == "attempt ended"]
    why = events[-1].data.get("why") if events else None
    return f"its last attempt (pid {last.pid} on {last.host}) {COULD_NOT_BEGIN}: {why or 'the reason is not known'}"


async def _why_to_be_cancelled(store: Store, record: TaskRecord, uid: str, holder: str) -> str:
    """What will happen to a cancel request that is not fulfilled yet."""
    if record.status in ("completed", "cancelled") or await cancel_request(store, uid) is None:
        return ""
    if holder:
        return "it is being cancelled"
    return "it is to be cancelled, by the next worker that knows its effects, or the program that started it, run again"


def _pause_of(record: TaskRecord) -> list[str]:
    return [record.pause.message] if record.pause else []


def _end_of_pause(record: TaskRecord) -> str:
    if record.pause is not None and record.pause.details.get("advice"):
        return f"{record.pause.details['advice']}; then `perdure resume {quote(record.id)}`"
    if record.pause is not None and record.pause.reason == "human_approval":
        return "perdure approve or perdure reject"
    is_looked_at = record.pause is not None and record.pause.next_look_at is not None
    return "it continues by itself, or perdure resume" if is_looked_at else "perdure resume"


def _settled_first(frame: CallFrame, unclaimed: str) -> str:
    """What must happen before a task with an uncertain effect continues, and which worker could take it."""
    first = f"whether {frame.name} happened is settled first"
    if frame.until is not None:
        latest = f"{frame.until:%Y-%m-%d %H:%M:%S} UTC"
        first += f" when its process has ended, which may still be alive, or at {latest} at the latest"
    return f"{first}. And {unclaimed}" if unclaimed and not unclaimed.startswith("a worker takes it") else first


def _next(
    record: TaskRecord, questions: Sequence[Question], frames: Sequence[CallFrame], holder: str, unclaimed: str
) -> str:
    if record.status == "failed":
        return f"nothing by itself: `perdure resume {quote(record.id)}` begins a new attempt"
    if record.is_finished:
        return f"nothing: it {'was' if record.status == 'cancelled' else 'has'} {record.status}"
    if questions or record.is_paused:
        return questions[0].way_on if questions else _end_of_pause(record)
    uncertain = [frame for frame in frames if frame.state == "uncertain"]
    if uncertain:
        return _settled_first(uncertain[0], unclaimed)
    if holder:
        return "it continues where it is"
    return unclaimed or "the next attempt continues after the last call that ended"
