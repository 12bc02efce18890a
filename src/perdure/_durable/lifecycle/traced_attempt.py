"""Make an attempt, and in a program with OpenTelemetry tell its trace: a span for the attempt and one for each call.

The span of the attempt is the current one while the function runs, so clients with instruments of OpenTelemetry send
its context along. The spans of steps, effects and pauses are made when the attempt has ended, from its journal: a
step costs the same with and without traces. Spans carry names, times and outcomes, never arguments or values.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

from perdure._durable.declare import DurableFunction
from perdure._durable.journal import Journal
from perdure._durable.lifecycle import single_attempt
from perdure._durable.lifecycle.preparation import Past
from perdure._durable.lifecycle.single_attempt import Returned
from perdure._durable.lifecycle.task_start import Beginning
from perdure._ground import traces
from perdure._store import CallRow
from perdure._tasks import Hold, Task, Tasks, store_of
from perdure.errors import PerdureError

log = logging.getLogger("perdure.traces")

_MILLION = 1_000_000  # nanoseconds of a millisecond
_MOST_CALLS = 10_000  # of one attempt
_STATES = {"d": "done", "r": "raised", "c": "cut", "o": "open", "u": "uncertain", "p": "pausing", "x": "damaged"}


def make_attempt(
    tasks: Tasks,
    task: Task,
    hold: Hold,
    function: DurableFunction[..., Any],
    beginning: Beginning | None = None,
    past: Past | None = None,
) -> Coroutine[Any, Any, Returned | None]:
    """`single_attempt.make_attempt`, with spans if the program exports them."""
    attempt = single_attempt.make_attempt(tasks, task, hold, function, beginning, past)
    tracer = traces.tracer()
    return attempt if tracer is None else _traced(tracer, attempt, tasks, task, function)


async def _traced(
    tracer: Any,
    attempt: Coroutine[Any, Any, Returned | None],
    tasks: Tasks,
    task: Task,
    function: DurableFunction[..., Any],
) -> Returned | None:
    began = store_of(tasks).clock.now_ms()
    about = {"perdure.task.uid": task.uid, "perdure.function": function.name, "perdure.version": function.version}
    with tracer.start_as_current_span(
        f"attempt {function.name}",
        context=traces.inside_task(task.uid),
        start_time=began * _MILLION,
        attributes=about,
        record_exception=False,  # it may contain text written by agents
        set_status_on_exception=False,
        end_on_exit=False,
    ) as span:
        try:
            return await attempt
        finally:
            if span.is_recording():
                await _tell_parent(span, tasks, task)
                await _tell_calls(tracer, tasks, task, began)
            span.end(store_of(tasks).clock.now_ms() * _MILLION)


async def _tell_parent(span: Any, tasks: Tasks, task: Task) -> None:
    """Link the attempt to the trace of the task that has started this one: a child has a trace of its own."""
    try:
        calls = await store_of(tasks).rows(CallRow, "get_call", uid=task.uid)
    except PerdureError as error:
        log.warning("no link from task %s to its parent: %s", task.id, error.what)
        return
    if calls and calls[0].parent_uid:
        span.add_link(traces.link_to(calls[0].parent_uid).context)


async def _tell_calls(tracer: Any, tasks: Tasks, task: Task, began: int) -> None:
    """One span for each call of this attempt; the journal is not read again for earlier calls."""
    try:
        outline = await Journal(tasks).outline(task)
    except PerdureError as error:
        log.warning("no spans for the calls of task %s: %s", task.id, error.what)
        return
    at, told = outline.begun, 0
    columns = zip(outline.start, outline.took, outline.name, outline.op, outline.state, strict=True)
    for after, took, name, op, state in columns:
        at += after
        if at < began or told >= _MOST_CALLS:
            continue
        told += 1
        kind, text = outline.ops[op], outline.names[name]
        about = {"perdure.op": kind, "perdure.state": _STATES.get(state, state)}
        call = tracer.start_span(f"{kind} {text}", start_time=at * _MILLION, attributes=about)
        call.end((at + took) * _MILLION)
