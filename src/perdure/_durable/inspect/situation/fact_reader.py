"""Read what is known of several tasks: eight queries at most, however many tasks there are.

Of a journal only the last entries are read, which name the call under way. `situation` of one task reads the whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from perdure._durable.control import CANCEL
from perdure._durable.inspect.open_calls import CallFrame, open_calls
from perdure._durable.inspect.situation import texts, workers
from perdure._durable.inspect.situation.facts import (
    CallFact,
    Facts,
    LiveWorker,
    OpenQuestion,
    SwitchFact,
    Uncertain,
)
from perdure._durable.journal import MARKS, shown_data
from perdure._ground.clock import moment
from perdure._ground.encoding.codec import stored_json
from perdure._ground.exception_text import in_one_line
from perdure._ground.secrets import envelope
from perdure._ground.secrets.known_secrets import redact
from perdure._model import (
    FINISHED,
    Asked,
    Config,
    Entry,
    HeldBy,
    LastError,
    Pause,
    Progress,
    kind_of_pause,
    of_pause,
    open_entry,
    pause_kind,
)
from perdure._store import Reading, Row, SituationRow, Store, SwitchRow, TaskQuestion, WorkerRow
from perdure._tasks import COULD_NOT_BEGIN, TASK_TOPIC, Question, as_question
from perdure.errors import InvalidInput, KeyMissing, PerdureError, RecordDamaged

T = TypeVar("T")
_MOST = 1000  # tasks at once
_TAIL = 32  # entries of a journal
_EVENTS_LOOKED_AT = 20  # of each task
_EVENTS = ("attempt ended", "stalled", "cancel asked for", "cancelled")


class _Read(NamedTuple):
    """The rows that were read, in one go."""

    rows: Sequence[SituationRow]
    pauses: Mapping[str, Sequence[TaskQuestion]]
    cancels: Mapping[str, Sequence[Row]]
    events: Mapping[str, Sequence[Row]]
    tails: Mapping[str, Sequence[Row]]
    statuses: Mapping[str, str]
    switches: Sequence[SwitchRow]
    workers: Sequence[WorkerRow]


async def gather(store: Store, uids: Sequence[str]) -> dict[str, Facts]:
    """The facts of these tasks, by uid; a missing task is left out."""
    now = moment(await store.wall_ms())
    found: dict[str, Facts] = {}
    for start in range(0, len(uids), _MOST):
        part = list(uids[start : start + _MOST])
        read = await store.look(partial(_read, store.namespace, part))
        holders = workers.look(store, read.workers)
        live = workers.live_workers(store, read.workers)
        found |= {row.uid: _Gathering(store, read, row, now, holders, live).facts() for row in read.rows}
    return found


def _read(namespace: str, uids: Sequence[str], engine: Reading) -> _Read:
    rows = [SituationRow(*row) for row in engine.query("situations_of", {"uids": json.dumps(uids)})]
    live = [row.uid for row in rows if row.status not in FINISHED]
    functions = [row.uid for row in rows if row.function is not None]
    told = [row.uid for row in rows if row.status == "cancelled"] + live
    held = [row.uid for row in rows if row.function is not None and row.status == "running"]
    pauses = {
        uid: [TaskQuestion(*one) for one in found]
        for uid, found in _by_task(engine, "open_pauses_of", functions).items()
    }
    ids = {id for row in rows if row.depends_on != "[]" and row.started_at is None for id in _needs(row)}
    topics = {one.topic or "" for found in pauses.values() for one in found}
    ids |= {topic.removeprefix(TASK_TOPIC) for topic in topics if topic.startswith(TASK_TOPIC)}
    return _Read(
        rows=rows,
        pauses=pauses,
        cancels=_by_task(engine, "signals_named", [uid for uid in live if uid in set(functions)], name=CANCEL),
        events=_by_task(engine, "recent_events_of", told, kinds=json.dumps(_EVENTS), look=_EVENTS_LOOKED_AT),
        tails=_by_task(engine, "journal_tails", held, count=_TAIL),
        statuses=_statuses(engine, namespace, ids),
        switches=[SwitchRow(*row) for row in engine.query("read_switches", {"namespace": namespace})] if live else [],
        workers=[WorkerRow(*row) for row in engine.query("read_workers", {})] if live else [],
    )


def _by_task(engine: Reading, query: str, uids: Sequence[str], **params: Any) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    if uids:
        for row in engine.query(query, {"uids": json.dumps(list(uids)), **params}):
            found.setdefault(row[0], []).append(row)
    return found


def _statuses(engine: Reading, namespace: str, ids: set[str]) -> dict[str, str]:
    if not ids:
        return {}
    return dict(engine.query("statuses_of", {"namespace": namespace, "ids": json.dumps(sorted(ids))}))


def _needs(row: SituationRow) -> list[str]:
    try:
        found: list[str] = stored_json(row.depends_on, "what a task depends on", list)
    except RecordDamaged:
        return []
    return found


class _Gathering:
    """From the rows of one task to its facts."""

    def __init__(
        self,
        store: Store,
        read: _Read,
        row: SituationRow,
        now: datetime,
        holders: Mapping[str, HeldBy],
        live: Sequence[LiveWorker],
    ) -> None:
        self._store, self._read, self._row, self._now = store, read, row, now
        self._holder = holders.get(row.worker) if row.worker is not None else None
        self._live = live
        self._damaged = self._sealed = ""

    def facts(self) -> Facts:
        row, is_finished = self._row, self._row.status in FINISHED
        pause = self._pause()
        kind = self._kind(pause)
        entries = self._tail()
        epoch = row.epoch if self._holder is not None and self._holder.state != "dead" else None
        frames = open_calls(entries, [], at_work=epoch) if entries else []
        cancel = self._read.cancels.get(row.uid)
        facts = Facts(
            id=row.id,
            status=row.status,  # type: ignore[arg-type]
            now=self._now,
            created_at=moment(row.created_at),
            updated_at=moment(row.updated_at),
            started_at=_moment(row.started_at),
            finished_at=_moment(row.finished_at),
            attempts=row.attempts,
            result=self._result(),
            error=self._error(pause),
            function=row.function,
            line=row.line,
            epoch=row.epoch or 0,
            version=row.version or 1,
            queue=row.queue or "",
            not_before=_moment(row.not_before),
            call=call_of(frames),
            last_path=last_path_of(entries),
            uncertain=uncertain_of(frames),
            last_process=f"pid {row.pid} on {row.host}",
            switch=self._switch() if not is_finished else None,
            cancel_asked_at=_moment(cancel[0][2]) if cancel else None,
            is_cancelling=bool(cancel),
            pause=pause if row.status == "paused" else None,
            pause_kind=kind,
            dependencies={id: self._read.statuses.get(id) for id in _needs(row)} if row.started_at is None else {},
            policy=self._config().dependency_policy,
            awaited=self._read.statuses,
            holder=self._holder,
            held_since=_moment(row.taken_at),
            progress=self._unsealed("progress", row.progress, Progress),
            workers=self._live,
            **self._told(),
        )
        questions = self._questions(facts)
        return replace(facts, questions=questions, damaged=self._damaged, sealed=self._sealed)

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    def _unsealed(self, kind: str, sealed: bytes | None, type_: Any = Any) -> Any:
        if sealed is None:
            return None
        return self._readable(lambda: self._store.unseal(self._row.uid, kind, sealed, type_))

    def _readable(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except (KeyMissing, RecordDamaged, InvalidInput):
            return None

    def _pause(self) -> Pause | None:
        row = self._row
        if row.pause is None or row.status != "paused":
            return None
        try:
            pause: Pause = self._store.unseal(row.uid, "pause", row.pause, Pause)
        except KeyMissing as error:
            self._sealed = _sealed_with(error)
            return None
        except (RecordDamaged, InvalidInput):
            text = "(what it waits for is damaged)"
            return Pause(reason=row.pause_reason, message=text, since=moment(row.updated_at), by={})  # type: ignore[arg-type]
        return pause

    def _kind(self, pause: Pause | None) -> Any:
        if pause is None:
            return None
        row = self._row
        asked = self._read.pauses.get(row.uid)
        if asked and row.ended == "paused":
            return None  # its questions say it
        by = (pause.by.get("host"), pause.by.get("pid"))
        is_foreign = row.function is not None or (row.attempt is not None and by != (row.host, row.pid))
        return kind_of_pause(pause, is_foreign=is_foreign, is_looked_at=row.due_at is not None)

    def _questions(self, facts: Facts) -> list[OpenQuestion]:
        row = self._row
        found: list[OpenQuestion] = []
        for one in self._read.pauses.get(row.uid, ()):
            try:
                question = as_question(self._store, row.id, row.uid, one)
            except KeyMissing as error:
                self._sealed = _sealed_with(error)
            except (RecordDamaged, InvalidInput):
                self._damaged = "one of its questions cannot be read"
            else:
                found.append(_asked(question))
        found = [one for one in found if one.kind == "effect" or row.status not in FINISHED]
        own = facts.pause is not None and facts.pause_kind is not None
        if own and facts.pause_kind not in ("outside", "diverged"):
            return [_of_pause(facts, _moment(row.due_at)), *found]
        return found

    def _tail(self) -> list[Entry]:
        row, found = self._row, []
        for _, position, sealed in self._read.tails.get(row.uid, ()):
            try:
                found.append(open_entry(sealed, row.uid, position, self._store.ring))
            except KeyMissing as error:
                self._sealed = _sealed_with(error)
            except PerdureError:
                self._damaged = f"entry {position} of its journal cannot be read"
        return found

    def _result(self) -> str:
        row = self._row
        if row.status != "completed" or row.result is None:
            return ""
        data = self._readable(
            lambda: envelope.unseal(row.result or b"", kind="result", bound_to=row.uid, ring=self._store.ring)
        )
        shown = shown_data(data) if data is not None else ""
        return "" if shown == "None" else shown

    def _error(self, pause: Pause | None) -> LastError | None:
        row = self._row
        if row.status == "failed":
            return error_of(self._unsealed("error", row.error), _moment(row.finished_at), row.attempt)
        told = pause.details.get("error") if pause is not None else None
        if not told:
            return None
        type_, _, message = redact(str(told)).partition(": ")
        return LastError(type=type_, message=in_one_line(message), attempt=row.attempt)

    def _switch(self) -> SwitchFact | None:
        for switch in self._read.switches:
            if switch.id in ("", self._row.id):
                user = str(json.loads(switch.author).get("user", "?"))
                return SwitchFact(user=user, why=switch.why, since=moment(switch.at), is_for_all=not switch.id)
        return None

    def _config(self) -> Config:
        row = self._row
        is_needed = row.depends_on != "[]" and row.started_at is None
        found: Config | None = self._unsealed("config", row.config, Config) if is_needed else None
        return found or Config()

    def _told(self) -> dict[str, Any]:
        """What its last events add."""
        row = self._row
        told: dict[str, Any] = {}
        for _, _, at, kind, author, body in self._read.events.get(row.uid, ()):
            data = self._unsealed("event", body) or {}
            if kind in ("cancel asked for", "cancelled") and row.status == "cancelled":
                told.setdefault("ended_by", str(json.loads(author).get("user") or ""))
                told["undone"] = data.get("undone")
            elif kind == "stalled" and data.get("epoch") == row.epoch and row.updated_at <= at:
                told["stalled_seconds"] = float(data.get("seconds") or 0)
            elif kind == "attempt ended" and row.ended == COULD_NOT_BEGIN and row.worker is None:
                told["could_not_begin"] = redact(in_one_line(str(data.get("why") or "the reason is not known")))
        return told


def error_of(error: Any, at: datetime | None, attempt: int | None) -> LastError:
    """The error of a failed task."""
    parts = error if isinstance(error, Mapping) else {"message": "" if error is None else error}
    message = redact(in_one_line(str(parts.get("message") or "")))
    return LastError(type=redact(str(parts.get("type") or "")), message=message, at=at, attempt=attempt)


def call_of(frames: Sequence[CallFrame]) -> CallFact | None:
    """The innermost call under way."""
    at_work = [frame for frame in frames if frame.state == "under way"]
    if not at_work:
        return None
    frame = max(at_work, key=lambda one: (one.path.count("/"), one.since or moment(0)))
    return CallFact(path=frame.path, since=frame.since)


def uncertain_of(frames: Sequence[CallFrame]) -> Uncertain | None:
    return next((Uncertain(name=one.name, until=one.until) for one in frames if one.state == "uncertain"), None)


def last_path_of(entries: Sequence[Entry]) -> str:
    ends = [entry for entry in entries if entry.kind == "result" and entry.op not in MARKS]
    return ends[-1].path.removeprefix("|") if ends else ""


def _asked(question: Question) -> OpenQuestion:
    asked = question.asked
    topic = question.topic or ""
    return OpenQuestion(
        path=question.path,
        kind=pause_kind(asked, question.topic, question.details),
        text=redact(in_one_line(question.text)),
        topic=topic.removeprefix(TASK_TOPIC) if not topic.startswith("~") or topic.startswith(TASK_TOPIC) else "",
        since=question.asked_at,
        due_at=question.due_at,
        expires_at=_moment(asked.expires_at) if asked is not None else None,
        otherwise=_otherwise(asked) if asked is not None else "",
        checks=asked.checks if asked is not None else 0,
        provider=asked.provider if asked is not None else "",
        is_waited_for=not question.is_left and bool(question.details.get("waits", True)),
        choices=question.choices if question.is_about_effect else (),
        way_on=question.way_on,
    )


def _of_pause(facts: Facts, due_at: datetime | None) -> OpenQuestion:
    """The pause of a task without questions, as one."""
    assert facts.pause is not None and facts.pause_kind is not None
    pause, asked = facts.pause, of_pause(facts.pause)
    return OpenQuestion(
        path="",
        kind=facts.pause_kind,
        text=redact(in_one_line(pause.message)),
        topic=str(pause.payload.get("task") or ""),
        since=pause.since,
        due_at=due_at,
        expires_at=pause.expires_at,
        otherwise=_otherwise(asked),
        checks=asked.checks,
        provider=asked.provider,
        way_on=texts.end_of_pause(facts, is_looked_at=due_at is not None),
    )


def _otherwise(asked: Asked) -> str:
    if asked.kind == "approval":
        return str(asked.default or "reject")
    return "default" if asked.has_default else ""


def _sealed_with(error: KeyMissing) -> str:
    return f"sealed with key {error.key_id}, which is not here"


def _moment(ms: int | None) -> datetime | None:
    return moment(ms) if ms is not None else None
