"""Show a task: its state, what it waits for, and its events."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from perdure._ground.encoding.json_values import plain
from perdure._model import FINISHED, Attempt, Checkpoint, CheckpointInfo, Config, Event, Pause, Progress, TaskRecord
from perdure._tasks import Question, Task, blockers, has_carried, questions_of, store_of
from perdure.cli.base import Invocation, Verb, id_argument
from perdure.cli.output import Block, Cell, Fields, Piece, Table, View, bar, watch, words
from perdure.cli.output import plan_text as plans

if TYPE_CHECKING:
    from perdure._runtime import RestoreReport

_STATE_LINES = 24
Pairs = list[tuple[str, Sequence[Piece]]]


@click.command(cls=Verb)
@id_argument()
@click.option(
    "--last",
    default=10,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Show the last N checkpoints and events.",
)
@click.option("--full", is_flag=True, help="Show the whole state, and every checkpoint and event.")
@click.option("--watch", "is_watched", is_flag=True, help="Keep showing the task until it ends.")
@click.pass_obj
async def command(call: Invocation, id: str, last: int, full: bool, is_watched: bool) -> None:
    """Show a task: its state, what it waits for, its attempts, checkpoints and events."""
    if is_watched:
        await watch(call, lambda: _view(call, id, last, full), lambda value: value["status"] in FINISHED)
        return
    value, blocks = await _view(call, id, last, full)
    call.answer(value, *blocks)


async def _view(call: Invocation, id: str, last: int, full: bool) -> View:
    task = await call.tasks.handle(id)
    record = await task.record()
    most = None if full else last
    checkpoints = deque([one async for one in task.checkpoints()], maxlen=most)
    events = await call.tasks.events(id)
    shown = events if full else events[max(len(events) - last, 0) :]
    now = call.now
    blocked = [] if call.server is not None else await blockers(call.store, id)
    about = _about(record, now, call.place, full)
    about[:0] = _saved(record, events)
    found = await call.app.situation(id)
    about[:0] = [("why", [found.headline, *([Cell(found.next, "faint")] if found.next else [])])]
    asked = await _questions(call, task, record)
    about[:0] = [("asks", _asks(one, record.pause)) for one in asked if isinstance(one, Question)]
    about[:0] = [("waits for", [Cell(text, "paused")]) for text in blocked]
    blocks: list[Block] = [words.task_line(record), Fields(about)]
    report = await _report(task) if call.server is None else None
    if report is not None:
        blocks.append(plans.report(report))
    dead = await _dead(task) if call.server is None else ""
    blocks += _attempts(record.attempts, dead) + _checkpoints(checkpoints) + _events(shown, len(events))
    extras = {"checkpoints": list(checkpoints), "events": list(shown), "questions": asked, "blocked_by": blocked}
    extras |= {"store": call.place, "restored": report, "situation": plain(found)}
    return {**plain(record), **extras, "namespace": call.namespace}, blocks


async def _questions(call: Invocation, task: Task, record: TaskRecord) -> Sequence[Any]:
    """The questions of the task; through a server, as its inbox shows them."""
    if call.server is not None:
        return [one for one in await call.app.inbox.of(task) if one.answer is None]
    return await questions_of(store_of(task), task.id, task.uid, has_ended=record.is_finished)


def _asks(question: Question, pause: Pause | None) -> list[Piece]:
    """A question, with the traceback of its effect, unless the pause below shows the same one."""
    trace = str(question.details.get("traceback") or "")
    if pause is not None and pause.details.get("traceback") == trace:
        trace = ""
    return [question.waits_for, Cell(question.way_on, "faint"), *([Cell(trace, "failed")] if trace else [])]


async def _report(task: Task) -> RestoreReport | None:
    """The report of the last restore of the task's runtime, if there was one."""
    if not await has_carried(task, "restore"):
        return None
    from perdure._runtime import last_report

    return await last_report(task)


async def _dead(task: Task) -> str:
    """The last worker of the task, if it has died and the reaper has not noticed yet."""
    from perdure._durable import who_works_on

    return (await who_works_on(store_of(task), task.uid))[1]


def _saved(record: TaskRecord, events: Sequence[Event]) -> Pairs:
    """The work that the last attempt did not repeat."""
    if not record.is_finished or not events or len(record.attempts) < 2:
        return []
    from perdure._durable import savings_in

    saved = savings_in(events[-1].data)
    return [] if saved is None or saved.is_nothing else [("saved", [str(saved)])]


def _at(progress: Progress) -> str:
    return f", at {words.short(progress.cursor)}" if progress.cursor is not None else ""


def _about(record: TaskRecord, now: datetime, place: str, full: bool) -> Pairs:
    most = None if full else _STATE_LINES
    pairs: Pairs = [(name, [value]) for name, value in _named(record).items() if value]
    if record.pause is not None and record.is_paused:
        pairs.append(("waits for", _pause(record.pause, now)))
    if record.progress is not None:
        left = record.progress.remaining
        rest = f", {left:,} left" if left is not None else ""
        text = f"{words.progress(record.progress)}{rest}{_at(record.progress)} ({words.age(record.progress.at, now)})"
        drawn = bar(record.progress.percent)
        others = [f"{words.progress(one)}{_at(one)} ({words.age(one.at, now)})" for one in record.progress.others]
        pairs.append(("progress", [text, *([drawn] if drawn else []), *others]))
    if record.error is not None:
        pairs.append(("error", [Cell(text, "failed") for text in words.error_lines(record.error, most)]))
    if record.result is not None or record.status == "completed":
        pairs.append(("result", words.whole(record.result, most)))
    pairs.append(("state", words.whole(record.state, most)))
    if record.damaged:
        pairs.append(("damaged", [Cell(f"{', '.join(record.damaged)}; perdure uses the checkpoints before", "failed")]))
    moments = {"created": record.created_at, "started": record.started_at, "updated": record.updated_at}
    moments |= {"finished": record.finished_at, "archived": record.archived_at}
    pairs += [(name, [words.moment(when, now)]) for name, when in moments.items() if when is not None]
    pairs.append(("store", [Cell(f"{place}, uid {record.uid}, version {record.version}", "faint")]))
    return pairs


def _named(record: TaskRecord) -> dict[str, str]:
    return {
        "name": record.name,
        "about": record.description,
        "agent": record.agent,
        "tags": ", ".join(f"{key}={value}" for key, value in record.tags.items()),
        "depends on": ", ".join(record.depends_on),
        "config": _config(record.config),
    }


def _config(config: Config) -> str:
    """The settings that differ from the defaults."""
    chosen, usual = plain(config), plain(Config())
    return ", ".join(f"{name}={value}" for name, value in chosen.items() if value != usual[name])


def _pause(pause: Pause, now: datetime) -> list[Piece]:
    lines: list[Piece] = [Cell(f"{pause.reason}: {pause.message}", "paused")]
    said = {**pause.payload, **pause.details}
    trace = said.pop("traceback", "")
    lines += [f"{name}: {words.short(value)}" for name, value in said.items()]
    if pause.due_at is not None:
        lines.append(f"resumes automatically {words.moment(pause.due_at, now)}")
    elif pause.next_look_at is not None:
        lines.append(f"next check {words.moment(pause.next_look_at, now)}")
    if pause.expires_at is not None:
        lines.append(f"expires {words.moment(pause.expires_at, now)}")
    if isinstance(trace, str) and trace:
        lines.append(Cell(trace, "failed"))
    lines.append(Cell(f"since {words.moment(pause.since, now)}, by {words.who(pause.by)}", "faint"))
    return lines


def _attempts(attempts: Sequence[Attempt], dead: str) -> list[Block]:
    if not attempts:
        return []
    rows = [
        (str(one.number), one.host, str(one.pid), one.user, words.clock_time(one.started_at), _end(one, dead))
        for one in attempts
    ]
    return [Table(("#", "host", "pid", "user", "started", "ended"), rows, title=f"attempts ({len(rows)})")]


def _end(attempt: Attempt, dead: str) -> str:
    if attempt.ended_at is None:
        return "its process has died" if dead else "running"
    return f"{words.clock_time(attempt.ended_at)} {attempt.ended}"


def _checkpoints(checkpoints: Sequence[Checkpoint]) -> list[Block]:
    if not checkpoints:
        return []
    begun = checkpoints[0].seq > 1
    title = f"checkpoints (the last {len(checkpoints)} of {checkpoints[-1].seq})" if begun else "checkpoints"
    return [checkpoints_table(checkpoints, title)]


def checkpoints_table(checkpoints: Sequence[Checkpoint | CheckpointInfo], title: str = "") -> Table:
    rows = [
        (
            str(one.seq),
            words.clock_time(one.timestamp),
            one.cause,
            words.size(one.size),
            Cell(_marks(one), "faint"),
            one.label,
        )
        for one in checkpoints
    ]
    return Table(("#", "at", "cause", "size", "", "label"), rows, title=title)


def _marks(checkpoint: Checkpoint | CheckpointInfo) -> str:
    marks = {"pinned": checkpoint.pinned, "superseded": checkpoint.superseded, "invalid": not checkpoint.valid}
    return " ".join(name for name, is_so in marks.items() if is_so)


def _events(events: Sequence[Event], count: int) -> list[Block]:
    if not events:
        return []
    title = "events" if len(events) == count else f"events (the last {len(events)} of {count})"
    return [events_table(events, title)]


def _without_trace(data: Any) -> Any:
    """The data of an event without its traceback, which is shown with the error and by --json."""
    return {name: value for name, value in data.items() if name != "traceback"} if isinstance(data, Mapping) else data


def events_table(events: Sequence[Event], title: str = "") -> Table:
    rows = [
        (
            str(one.number),
            words.clock_time(one.at),
            one.kind,
            words.who(one.author),
            words.short(_without_trace(one.data) or ""),
        )
        for one in events
    ]
    return Table(("#", "at", "what", "who", ""), rows, title=title)
