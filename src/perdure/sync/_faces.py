"""Classes that hold an async object and wait for its methods.

Written by tools/make_sync.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, UnsetType

from perdure._ground.bridge import drive, entered, inner_of, iterate

if TYPE_CHECKING:
    from perdure._durable import (
        CallState,
        Choice,
        DurableFunction,
        EffectRecord,
        IncomingEvent,
        JournalCall,
        JournalLine,
        JournalNews,
        Outline,
        Received,
        Schedule,
        Switch,
        UncertainEffect,
    )
    from perdure._durable import Effects as AsyncEffects
    from perdure._durable import Events as AsyncEvents
    from perdure._durable import Journal as AsyncJournal
    from perdure._durable import KillSwitch as AsyncKillSwitch
    from perdure._durable import ScheduleDraft as AsyncScheduleDraft
    from perdure._durable import Schedules as AsyncSchedules
    from perdure._durable import TriggerDraft as AsyncTriggerDraft
    from perdure._durable import Triggers as AsyncTriggers
    from perdure._ground.durations import Duration
    from perdure._model import (
        CallbackToken,
        Change,
        Changes,
        Checkpoint,
        CheckpointInfo,
        Config,
        Counts,
        Diff,
        DryRun,
        Event,
        Facets,
        Family,
        FirstStatus,
        Frame,
        Gone,
        InboxItem,
        InboxKind,
        Missed,
        Page,
        Part,
        Reason,
        Sort,
        Status,
        TaskFilter,
        TaskRecord,
        TaskSummary,
        ToolCall,
        Trigger,
    )
    from perdure._runtime import UnitAccess as AsyncUnitAccess
    from perdure._runtime import UnitCommand, UnitOutput, UnitProcess, UnitRecord
    from perdure._runtime import Units as AsyncUnits
    from perdure._tasks import (
        CheckpointPart,
        Delivery,
        DeliveryState,
        MadeWebhook,
        RemoteHolder,
        Stored,
        TaskCore,
        Webhook,
    )
    from perdure._tasks import Checkpoints as AsyncCheckpoints
    from perdure._tasks import Holders as AsyncHolders
    from perdure._tasks import Inbox as AsyncInbox
    from perdure._tasks import Task as AsyncTask
    from perdure._tasks import TaskFrames as AsyncTaskFrames
    from perdure._tasks import Tasks as AsyncTasks
    from perdure._tasks import Webhooks as AsyncWebhooks
    from perdure._worker import QueueRecord, WorkerRecord
    from perdure._worker import Workers as AsyncWorkers
    from perdure.memory.storage import Delete, Loaded, Put
    from perdure.memory.storage import Storage as AsyncStorage
Json = Any
NOW = "now"


class Tasks:
    """The tasks of one namespace in one store."""

    def __init__(self, inner: AsyncTasks) -> None:
        self._inner = inner

    def create(
        self,
        id: str,
        *,
        state: Json,
        status: FirstStatus = "running",
        name: str = "",
        description: str = "",
        agent: str = "",
        tags: Mapping[str, str] = {},
        config: Config | None = None,
        depends_on: Sequence[str] = (),
        once: str | None = None,
    ) -> Task:
        """A new task. It begins as `running`, or as `pending` if its `status` says so, until its first attempt.
        While tasks it depends on have not completed, it is `pending`, whatever was asked for.

        Raises:
            AlreadyExists: the id is in use; nothing was changed.
            InvalidId, InvalidInput, NotStorable, TooLarge, DependencyCycle: nothing was written.
        """
        return Task(
            drive(
                self._inner.create(
                    id,
                    state=state,
                    status=status,
                    name=name,
                    description=description,
                    agent=agent,
                    tags=tags,
                    config=config,
                    depends_on=depends_on,
                    once=once,
                )
            )
        )

    def open(self, id: str, *, state: Json = None, again: bool = False) -> Task:
        """The task with this id, made now if there is none; never changes a status.

        A finished one is returned as finished; with `again` a new one takes its place, and the old one
        stays in history.
        """
        return Task(drive(self._inner.open(id, state=state, again=again)))

    def get(self, id: str, *, archived: bool = False) -> TaskRecord | None:
        """The task's record, or None if there is none (or it is archived, and `archived` was not asked for)."""
        return drive(self._inner.get(id, archived=archived))

    def handle(self, id: str) -> Task:
        """The task, which has to exist.

        Raises:
            NotFound: no such task; the message names the store.
        """
        return Task(drive(self._inner.handle(id)))

    def handle_by_uid(self, uid: str) -> Task:
        """The task with this uid, also one whose id now belongs to another task.

        Raises:
            NotFound: no such task in this namespace.
        """
        return Task(drive(self._inner.handle_by_uid(uid)))

    def history(self, id: str) -> Sequence[TaskRecord]:
        """Every task that ever had this id, newest first."""
        return drive(self._inner.history(id))

    def list(
        self,
        *,
        status: Status | None = None,
        reason: Reason | None = None,
        agent: str | None = None,
        tags: Mapping[str, str] = {},
        since: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
        archived: bool = False,
        hidden: bool = False,
    ) -> Page[TaskRecord]:
        """Tasks, newest first; `cursor` of one page begins the next. Nothing is shown twice or left out
        while tasks are added."""
        return drive(
            self._inner.list(
                status=status,
                reason=reason,
                agent=agent,
                tags=tags,
                since=since,
                limit=limit,
                cursor=cursor,
                archived=archived,
                hidden=hidden,
            )
        )

    def page(
        self,
        filter: TaskFilter | None = None,
        *,
        sort: Sort = "newest",
        limit: int = 50,
        cursor: str | None = None,
        parts: Collection[Part] = (),
    ) -> Page[TaskSummary]:
        """Summaries of tasks: rows only, so that large states cost nothing.

        sort    newest: created last first; changed: changed last first; due: looked at soonest first, of those
                that wait for a moment
        parts   pause: why a paused task waits; children: how many tasks it has started

        `cursor` of one page begins the next, with the same filter and sort. A page with few matches ends after 20,000
        tasks were looked at, and says `approximate`; its cursor continues with the rest. With a text, tasks whose ids
        begin with it are first.

        Raises:
            InvalidInput: the sort, the limit (1 to 1,000), a part or the cursor is not one.
        """
        return drive(self._inner.page(filter, sort=sort, limit=limit, cursor=cursor, parts=parts))

    def counts(self, filter: TaskFilter | None = None) -> Counts:
        """The number of tasks by status and by reason; archived and hidden ones if the filter says so. With a filter
        the newest 20,000 of each status are counted, and the result says `approximate` if there are more."""
        return drive(self._inner.counts(filter))

    def facets(self) -> Facets:
        """The functions, agents, tag keys and queues of the newest tasks, with how many have each."""
        return drive(self._inner.facets())

    def family(self, task: str | Task, *, limit: int = 500) -> Family:
        """The tasks that started this one, the newest that it has started, and those it depends on.

        Raises:
            NotFound: there is no such task.
            InvalidInput: the limit is not between 1 and 1,000.
        """
        return drive(self._inner.family(inner_of(task), limit=limit))

    def changes(self, after: str | datetime | None = None, limit: int = 200) -> Changes:
        """Tasks that have changed since the watermark of the changes before, or since a moment; earliest change first.

        Of several changes in one millisecond none is lost. A change can be committed after one with a later moment:
        who follows a store begins each time two seconds before the last one it has seen, and drops what it knows.
        """
        return drive(self._inner.changes(after, limit))

    def events(self, id: str | Task, *, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events of a task, in order, with their authors: those after this number, at most `limit` of them.

        Raises:
            NotFound: there is no such task.
        """
        return drive(self._inner.events(inner_of(id), after=after, limit=limit))

    def follow(self, id: str | Task, *, after: int = 0) -> Iterator[Event]:
        """Each event after this number as it happens, by whichever process, until the task has ended.

        Raises:
            NotFound: there is no such task.
        """
        return iterate(self._inner.follow(inner_of(id), after=after))

    def wait_for(self, id: str, *, status: Status = "completed", timeout: Duration | None = None) -> TaskRecord:
        """The record, as soon as the task has this status, whichever process works on it.

        Raises:
            TaskFailed: it has ended in another status.
            TimedOut: it did not get there in time; it continues.
        """
        return drive(self._inner.wait_for(id, status=status, timeout=timeout))

    def deliver(self, token: str, value: Json = None, *, by: str = "") -> bool:
        """Bring the answer of another system, by the token it was given. True when it counts; False when one has
        come before, or the task has ended.

        Raises:
            NotFound: there is no such token.
            NotAllowed: it was made for signed answers: `app.inbox.deliver` takes those.
            InvalidInput: the value does not fit; nothing was written, and the token is still good.
        """
        return drive(self._inner.deliver(token, value, by=by))


class Task:
    """One task. It shows what was last read or written through it."""

    def __init__(self, inner: AsyncTask) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def uid(self) -> str:
        return self._inner.uid

    @property
    def status(self) -> Status:
        return self._inner.status

    @property
    def state(self) -> Any:
        return self._inner.state

    @property
    def created(self) -> bool:
        return self._inner.created

    @property
    def frames(self) -> TaskFrames:
        return TaskFrames(self._inner.frames)

    @contextmanager
    def attempt(self, *, take_over: bool = False) -> Iterator[Task]:
        """Work on the task as its one writer, from its newest state, until the block ends.

        With `take_over` the lease is taken from its holder, alive or not: that attempt can write no more, and the
        history says who took it, and where.

        Raises:
            LeaseHeld: another attempt is alive.
            InvalidTransition: the task is paused or finished.
        """
        with entered(self._inner.attempt(take_over=take_over)):
            yield self

    def checkpoint(
        self,
        state: Json,
        *,
        label: str = "",
        plan: Json = None,
        memory: Json = None,
        partial: Json = None,
        pending: Sequence[ToolCall] = (),
        once: str | None = None,
    ) -> Checkpoint:
        """Store `state` and make it the task's state; once this returns, it outlives the process.

        What others have written since this handle read or wrote the state is kept: keys they set, items they appended.
        `task.state` and the checkpoint's `data` show the result.

        With `once`, a key of the caller's choice, a repeat of this call finds the checkpoint that the first one
        stored. That holds for every verb with `once`: say it again after a lost answer, and it was done once.

        Raises:
            NotStorable, TooLarge: nothing was written.
            StaleVersion: others have changed the same value since; nothing was written.
            LeaseHeld: another attempt is alive.
            LeaseLost: another attempt has taken over; nothing was written.
            InvalidTransition: the task is paused or finished.
        """
        return drive(
            self._inner.checkpoint(
                state, label=label, plan=plan, memory=memory, partial=partial, pending=pending, once=once
            )
        )

    def append(
        self, path: str | Sequence[str | int], item: Json, *, label: str = "", once: str | None = None
    ) -> Checkpoint:
        """Add an item to a list in the state; a checkpoint that costs what the item does, however long the list is.

        `path` is "messages", "plan.steps", or its keys one by one. A list that is not there yet is begun. Plan,
        memory, partial results and pending calls stay as they are.

        Raises:
            InvalidInput: the value there is not a list; nothing was written.
            and what `checkpoint` raises.
        """
        return drive(self._inner.append(path, item, label=label, once=once))

    def mark_progress(
        self,
        operation: str,
        *,
        percent: float | None = None,
        cursor: Json = None,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        """Record the progress of `operation`. It is shown to people, and the next attempt can continue from it.

        Each operation keeps what was said of it last: `(await task.record()).progress.of("copy")`.
        """
        drive(self._inner.mark_progress(operation, percent=percent, cursor=cursor, done=done, total=total))

    def complete(self, result: Json = None, *, once: str | None = None) -> None:
        """The task has reached its end. Doing so again with the same result changes nothing.

        Raises:
            InvalidTransition: it is paused, or has ended otherwise, or with another result.
        """
        drive(self._inner.complete(result, once=once))

    def fail(self, error: Json, *, once: str | None = None) -> None:
        """Fail the task with `error`. It can be resumed, which begins a new attempt."""
        drive(self._inner.fail(error, once=once))

    def pause(
        self,
        message: str,
        *,
        reason: Reason = "human_input",
        checkpoint: Json = None,
        once: str | None = None,
        **payload: Json,
    ) -> None:
        """Stop for a typed reason, without holding a process. Without a reason the message is a question to a
        person (`human_input`). With `checkpoint`, that state is stored in the same write. A durable function at
        work stops at its next safe point; with `now=True` at once: a step is run again later, an effect is settled
        later.

        Raises:
            InvalidPayload: the payload does not fit the reason; nothing was written.
        """
        drive(self._inner.pause(message, reason=reason, checkpoint=checkpoint, once=once, **payload))

    def resume(
        self,
        *,
        state: Mapping[str, Json] | None = None,
        checkpoint: str | None = None,
        instruction: str | None = None,
        once: str | None = None,
    ) -> None:
        """Go on: `state` is merged over the task's state (shallow), from `checkpoint` if one is named.

        `instruction` is what a durable function's `instruction()` gives from now on; steps that ended stay done.

        Raises:
            InvalidTransition: the task is neither paused nor failed.
            NotFound: the checkpoint does not exist.
        """
        drive(self._inner.resume(state=state, checkpoint=checkpoint, instruction=instruction, once=once))

    def instruct(self, text: str, *, once: str | None = None) -> None:
        """Give a durable function new instructions: its next `instruction()` returns them. It continues otherwise
        unchanged."""
        drive(self._inner.instruct(text, once=once))

    def cancel(self, *, undo: bool = True, dry_run: bool = False) -> DryRun | None:
        """End the task for good; a running attempt can no longer write.

        A durable function's effects are settled and undone first, by the process that works on the task. If that is
        another process, this returns when the request is on disk, and the task is `cancelled` when it is fulfilled.
        With `dry_run` nothing is changed: the result says what would happen.
        """
        return drive(self._inner.cancel(undo=undo, dry_run=dry_run))

    def rollback(
        self, to: str, *, undo: bool | None = None, dry_run: bool = False, once: str | None = None
    ) -> DryRun | None:
        """Make an earlier checkpoint the state again; later ones stay readable as superseded.

        A durable function continues from there. Effects it has done since are undone first with `undo`, or left as they
        are with undo=False; without either the rollback is refused (InvalidInput) if there are any.

        If this process does not know how to undo them, the rollback is a request: it is on disk when this returns, with
        the event `rollback asked for`, and the next worker with the code fulfils it. With `dry_run` nothing is changed:
        the result says what would happen.
        """
        return drive(self._inner.rollback(to, undo=undo, dry_run=dry_run, once=once))

    def answer(self, value: Json, *, by: str = "", key: str | None = None, once: str | None = None) -> None:
        """Answer the task's question; the first answer stands, and the task continues. Without a durable function the
        answer is merged into its state, under `answer`.

        Of an uncertain effect it is "done", "retry" or "fail", or {"choice": "done", "value": its result}.
        `key` says which of several is meant.

        Raises:
            NotFound: there is no question.
            InvalidInput: there are several questions and no key; or the answer does not fit.
            Conflict: another answer was first.
        """
        drive(self._inner.answer(value, by=by, key=key, once=once))

    def approve(self, *, by: str, comment: str = "", edited: Json = None, once: str | None = None) -> None:
        """Approve the task's question; the first decision stands, and the task continues.

        Raises:
            NotFound: it asks for no approval.
            InvalidInput: `edited` is not allowed.
            Conflict: it was decided before.
        """
        drive(self._inner.approve(by=by, comment=comment, edited=edited, once=once))

    def reject(self, *, by: str, comment: str = "", once: str | None = None) -> None:
        """Say no to what the task asks, as `approve` says yes."""
        drive(self._inner.reject(by=by, comment=comment, once=once))

    def callback_token(self) -> str:
        """A token for another system to answer by, once: give it away, then `pause(…, callback=token)`. Of a durable
        function that waits for a callback, one more token for that."""
        return drive(self._inner.callback_token())

    def fork(self, id: str, *, at: str | None = None, set: Mapping[str, Json] = {}, once: str | None = None) -> Task:
        """A new task that begins with this one's state (at a checkpoint, with some keys set).

        A fork of a durable function's task continues after the step `at` (its number, path or name; without it, after
        the last one), with the given arguments or keys of its state. Calls that had ended by then stay done.

        Raises:
            NotFound, InvalidInput: there is no such checkpoint, step or argument; nothing was written.
            AlreadyExists: the id is in use.
        """
        return Task(drive(self._inner.fork(id, at=at, set=set, once=once)))

    def signal(self, name: str, value: Json = None, *, once: str | None = None) -> None:
        """Send a durable function a signal: a call that waits for `name` gets it, or it is kept.

        `once` names the occasion of the signal: a second signal with the same name is dropped.

        Raises:
            InvalidTransition: the task has ended.
        """
        drive(self._inner.signal(name, value, once=once))

    def checkpoints(self) -> Iterator[Checkpoint]:
        """Every checkpoint, oldest first, the superseded and invalid ones marked as such."""
        return iterate(self._inner.checkpoints())

    def diff(self, a: str, b: str) -> Sequence[Change]:
        """The changes in the state from checkpoint `a` to `b`. Each is a number, an id (also of another task's
        checkpoint), or "now"."""
        return drive(self._inner.diff(a, b))

    def invalidate_if(self, predicate: Callable[[Checkpoint], bool]) -> Sequence[str]:
        """Discard the checkpoints for which `predicate` is true; the newest one left is the state."""
        return drive(self._inner.invalidate_if(predicate))

    def pin(self, checkpoint: str, *, pinned: bool = True) -> None:
        """Have gc leave a checkpoint alone (or no longer)."""
        drive(self._inner.pin(checkpoint, pinned=pinned))

    def archive(self) -> None:
        """Out of sight: `get` and `list` find it only with archived=True."""
        drive(self._inner.archive())

    def delete(self, *, force: bool = False) -> None:
        """Remove a finished task and its hidden parts for good; only tombstones stay. `force` cancels live ones first.

        Raises:
            InvalidTransition: the task, or a part of it, is not finished.
        """
        drive(self._inner.delete(force=force))

    @property
    def is_paused(self) -> bool:
        return self._inner.is_paused

    @property
    def is_finished(self) -> bool:
        return self._inner.is_finished

    def record(self) -> TaskRecord:
        """The record of the task as the store has it now."""
        return drive(self._inner.record())


class TaskFrames:
    """The lines of thought a task was in when it was interrupted. Control verbs: they need no lease.

    Each is durable when it returns. Doing one again that was cut off is harmless, as frames have names.
    """

    def __init__(self, inner: AsyncTaskFrames) -> None:
        self._inner = inner

    def push(
        self,
        name: str,
        *,
        goal: str,
        done: Sequence[str] = (),
        next: Sequence[str] = (),
        because: str = "",
        expires: Duration | None = "1d",
    ) -> Frame:
        """Set a line of thought aside, with the steps done and the steps to come.

        Raises:
            Conflict: the stack is full; nothing was written.
            InvalidInput: the goal is missing, or the frame is too long.
        """
        return drive(self._inner.push(name, goal=goal, done=done, next=next, because=because, expires=expires))

    def acknowledge(self, name: str) -> None:
        """The interruption is dealt with; the frame waits to be taken up again."""
        drive(self._inner.acknowledge(name))

    def resume(self, name: str | None = None) -> Frame | None:
        """Take up a frame again: the named one, or the newest. None when nothing is set aside.

        `frame.announcement` says it: "back to X, step 4/6: …". It stays visible until it is finished, or something else
        is pushed or resumed, so the next attempt after a kill finds it too.
        """
        return drive(self._inner.resume(name))

    def finish(self, name: str) -> None:
        """Finish the line of thought that was resumed."""
        drive(self._inner.finish(name))

    def drop(self, name: str, *, why: str) -> None:
        """Give a frame up, for a reason that is kept."""
        drive(self._inner.drop(name, why=why))

    def open(self) -> Sequence[Frame]:
        """All that is set aside or taken up again, the newest first; expired ones are left out."""
        return drive(self._inner.open())

    def gone(self) -> Sequence[Gone]:
        """The last few frames that will not be resumed, and why; newest first."""
        return drive(self._inner.gone())


class Holders:
    """The holders of a store: processes elsewhere, and the leases they have."""

    def __init__(self, inner: AsyncHolders) -> None:
        self._inner = inner

    def register(
        self, *, host: str, pid: int, boot_id: str = "", user: str = "", lease: Duration = "30s"
    ) -> RemoteHolder:
        """Register a process elsewhere. Without a `user` it belongs to the user this process acts for.

        `lease` is the longest allowed silence. The beats travel over a network, through a server that may be restarted.

        Raises:
            InvalidInput: a text cannot be kept, or the lease is not between 1 second and 1 hour.
        """
        return drive(self._inner.register(host=host, pid=pid, boot_id=boot_id, user=user, lease=lease))

    def beat(self, token: str) -> None:
        """The holder lives.

        Raises:
            NotFound: it is not registered any more; register anew, and hold the tasks again.
        """
        drive(self._inner.beat(token))

    def leave(self, token: str) -> None:
        """The holder gives its leases back and is forgotten. One that is not known has left already."""
        drive(self._inner.leave(token))

    def hold_for(self, token: str, task_id: str, *, take_over: bool = False) -> str:
        """The fence of a new attempt at a task, by this holder. If it holds the task already, that attempt's fence.

        Raises:
            NotFound: there is no such task, or the holder is not registered any more.
            LeaseHeld: another attempt is alive. With `take_over` it is ended, and can write no more.
            InvalidTransition: the task is paused, finished, or waits for others.
        """
        return drive(self._inner.hold_for(token, task_id, take_over=take_over))

    def task(self, task_id: str, fence: str) -> Task:
        """The task as its holder writes it. Each write is refused by the store once the lease has changed hands.

        Raises:
            NotFound: there is no such task.
            InvalidInput: this is not a fence.
        """
        return Task(drive(self._inner.task(task_id, fence)))

    def release(self, task_id: str, fence: str) -> bool:
        """Give a task back; False when the lease was lost before, which changes nothing.

        Raises:
            NotFound: there is no such task.
        """
        return drive(self._inner.release(task_id, fence))


class Workers:
    """The processes that use a store."""

    def __init__(self, inner: AsyncWorkers) -> None:
        self._inner = inner

    def list(self) -> Sequence[WorkerRecord]:
        """Every registered process. A second look tells which of them are silent."""
        return drive(self._inner.list())

    def queues(self) -> Sequence[QueueRecord]:
        """The queues that live workers take tasks from, or that open tasks wait in."""
        return drive(self._inner.queues())

    def drain(self, ids: Collection[str], *, wait: Duration | None = None) -> Sequence[WorkerRecord]:
        """Ask these workers to stop: they give their tasks back at the next safe point, and take no new ones.

        With `wait`, return when they hold no task any more. Without it, return when the wish is on disk.

        Raises:
            NotFound: one of them is not registered; none was asked.
            InvalidInput: one of them takes no tasks; none was asked.
            TimedOut: some still hold tasks after `wait`; they keep draining.
        """
        return drive(self._inner.drain(ids, wait=wait))


class Units:
    """The live things of the tasks of one namespace."""

    def __init__(self, inner: AsyncUnits) -> None:
        self._inner = inner

    def page(
        self,
        *,
        task: str | None = None,
        kind: str | None = None,
        alive: bool | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[UnitRecord]:
        """Units, the oldest first; `cursor` of one page begins the next. Without a keeper there are none."""
        return drive(self._inner.page(task=task, kind=kind, alive=alive, limit=limit, cursor=cursor))

    def get(self, task: str, name: str) -> UnitAccess:
        """The task's unit of this name: the one that lives, else the newest that has ended.

        Raises:
            NotFound: there is none.
        """
        return UnitAccess(drive(self._inner.get(task, name)))


class UnitAccess:
    """One unit whose output is read, or that is typed into."""

    def __init__(self, inner: AsyncUnitAccess) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def kind(self) -> str:
        return self._inner.kind

    @property
    def record(self) -> UnitRecord:
        return self._inner.record

    def refresh(self) -> UnitRecord:
        """As it is now.

        Raises:
            UnitEnded: the keeper does not know it any more.
        """
        return drive(self._inner.refresh())

    def output(self, from_offset: int = 0, *, wait: Duration | None = None, errors: bool = False) -> UnitOutput:
        """What it has put out from an offset on, at most 256 kB. With `wait`, and for a terminal, as soon as there is
        something, or when that time is over: 60 s at most. With `errors`, what a service has written to stderr."""
        return drive(self._inner.output(from_offset, wait=wait, errors=errors))

    def commands(self) -> Sequence[UnitCommand]:
        """The commands of a shell, oldest first; other units have none."""
        return drive(self._inner.commands())

    def take(self, writer: str, *, force: bool = False, lasts: Duration = "60s") -> datetime:
        """The right to write, for 60 s after each write or take; until when. The same writer may take it again.

        Raises:
            UnitHeld: another writer or an agent's process has it; `by` says who. With `force` it is taken away.
            UnitEnded: the unit has ended.
        """
        return drive(self._inner.take(writer, force=force, lasts=lasts))

    def release(self, writer: str) -> None:
        """Let others write; nothing happens if another writer has it."""
        drive(self._inner.release(writer))

    def send(self, input_id: str, data: bytes, *, writer: str) -> None:
        """Type it once. The same id again types nothing; choose ids that no other input has, such as random ones.

        Raises:
            EffectUncertain: the keeper was replaced while it was being written: part of it may have been read. It is
                never sent again.
            UnitHeld: the writer does not have the right; nothing was written.
            UnitEnded: the unit has ended.
        """
        drive(self._inner.send(input_id, data, writer=writer))

    def answer(self, input_id: str, data: bytes, *, writer: str) -> None:
        """Type an answer to a question for a secret: only while the terminal shows no echo, and kept nowhere.

        Raises:
            Conflict: nothing asks for a secret now; nothing was written.
            and what `send` raises.
        """
        drive(self._inner.answer(input_id, data, writer=writer))

    def resize(self, rows: int, columns: int, *, writer: str) -> None:
        drive(self._inner.resize(rows, columns, writer=writer))

    def signal(self, name: str, *, writer: str, signal_id: str | None = None) -> None:
        """Send a signal, such as "INT", to what is in front, as a key of the terminal would. The same id again sends
        nothing.

        Raises:
            EffectUncertain: the keeper was replaced while it was being sent. It is never sent again.
            and what `send` raises.
        """
        drive(self._inner.signal(name, writer=writer, signal_id=signal_id))

    def processes(self) -> Sequence[UnitProcess]:
        """Its own process, and all it has started: they end with it."""
        return drive(self._inner.processes())

    def end(self) -> None:
        """End it and every process it has started. It has ended when this returns; `processes` tells which they are."""
        drive(self._inner.end())

    @property
    def is_made_anew(self) -> bool:
        return self._inner.is_made_anew

    @property
    def has_terminal(self) -> bool:
        return self._inner.has_terminal


class Effects:
    """The uncertain effects in one namespace of one store, and the verbs that settle them."""

    def __init__(self, inner: AsyncEffects) -> None:
        self._inner = inner

    def list(self, *, limit: int = 1000) -> Sequence[UncertainEffect]:
        """The effects that wait for a person, oldest first. An effect whose process has just died is not listed yet:
        the next attempt first tries to settle it by itself."""
        return drive(self._inner.list(limit=limit))

    def of(self, task_id: str | Task) -> Sequence[EffectRecord]:
        """The ledger of a task: every effect it began, in order, with its key and state."""
        return drive(self._inner.of(inner_of(task_id)))

    def settle(self, task_id: str, choice: Choice, *, value: Json = None, key: str | None = None, by: str = "") -> None:
        """Say what became of an uncertain effect: `done` (with its result), `retry` it, or it is to `fail`.

        Raises:
            NotFound: nothing of this task is uncertain (under this key).
            InvalidInput: several are, and no key says which; or the choice does not fit.
            Conflict: another answer was first, and it stands.
        """
        drive(self._inner.settle(task_id, choice, value=value, key=key, by=by))


class Inbox:
    """The pauses that wait for people in one namespace of one store."""

    def __init__(self, inner: AsyncInbox) -> None:
        self._inner = inner

    def page(
        self,
        *,
        kinds: Collection[InboxKind] | None = None,
        task: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[InboxItem]:
        """The open items, soonest to expire first, then oldest first; of some kinds, or of one task by its id.

        Raises:
            InvalidInput: a kind, the limit or the cursor is not one.
            NotFound: there is no such task.
        """
        return drive(self._inner.page(kinds=kinds, task=task, limit=limit, cursor=cursor))

    def count(self) -> Mapping[InboxKind, int]:
        """The number of open items of each kind."""
        return drive(self._inner.count())

    def get(self, pause_id: str) -> InboxItem:
        """One pause, open or decided; then with who, when and what.

        Raises:
            NotFound: there is none with this id.
        """
        return drive(self._inner.get(pause_id))

    def approve(
        self, pause_id: str, *, by: str = "", comment: str = "", edited: Json = None, once: str | None = None
    ) -> InboxItem:
        """Approve. The first decision stands, and the task continues.

        Raises:
            NotFound: the pause does not exist.
            InvalidInput: it is not an approval, or `edited` is not allowed; nothing was written.
            AlreadyDecided: another decision was first.
            Conflict: the task has ended.
        """
        return drive(self._inner.approve(pause_id, by=by, comment=comment, edited=edited, once=once))

    def reject(self, pause_id: str, *, by: str = "", comment: str = "", once: str | None = None) -> InboxItem:
        """Say no, as `approve` says yes."""
        return drive(self._inner.reject(pause_id, by=by, comment=comment, once=once))

    def answer(
        self, pause_id: str, value: Json = None, *, by: str = "", comment: str = "", once: str | None = None
    ) -> InboxItem:
        """Answer a question. A task without a durable function gets the answer in its state, under `answer`.

        Raises:
            NotFound: there is no such pause.
            InvalidInput: it is not a question, or the value does not fit; nothing was written.
            AlreadyDecided: another answer was first.
            Conflict: the task has ended.
        """
        return drive(self._inner.answer(pause_id, value, by=by, comment=comment, once=once))

    def settle(
        self,
        pause_id: str,
        choice: Literal["done", "retry", "fail"],
        *,
        value: Json = None,
        by: str = "",
        comment: str = "",
        once: str | None = None,
    ) -> InboxItem:
        """Say what became of an uncertain effect: `done` (with its result), `retry` it, or it is to `fail`.

        Raises:
            NotFound: there is no such pause.
            InvalidInput: it is not about an effect, or the choice does not fit; nothing was written.
            AlreadyDecided: another choice was first.
        """
        return drive(self._inner.settle(pause_id, choice, value=value, by=by, comment=comment, once=once))

    def token(self, pause_id: str, *, signed: bool = False) -> CallbackToken:
        """One more token for what a pause waits for from another system. With `signed`, it is good only for answers
        that are signed with its secret, as Standard Webhooks has it.

        Raises:
            NotFound: there is no such pause.
            InvalidInput: it does not wait for a callback; nothing was written.
            AlreadyDecided: it is over.
        """
        return drive(self._inner.token(pause_id, signed=signed))

    def deliver(
        self, token: str, value: Json = None, *, by: str = "", is_signed: Callable[[str], bool] | None = None
    ) -> bool:
        """Bring the answer of another system, as `app.tasks.deliver` does. `is_signed` says whether the answer is
        signed with a secret; it is asked for tokens that were made with one.

        Raises:
            NotFound: there is no such token.
            NotAllowed: the token wants a signature, and the answer has none that is good.
            InvalidInput: the value does not fit; nothing was written, and the token is still good.
        """
        return drive(self._inner.deliver(token, value, by=by, is_signed=is_signed))

    def of(self, task: str | TaskCore) -> Sequence[InboxItem]:
        """Every pause of a task, open and ended, also those that end by themselves; in the order they began.

        Raises:
            NotFound: there is no such task.
        """
        return drive(self._inner.of(inner_of(task)))


class Journal:
    """The calls of durable functions. A task is given by its id."""

    def __init__(self, inner: AsyncJournal) -> None:
        self._inner = inner

    def outline(self, task: str | Task, line: int | None = None) -> Outline:
        """Every call of one line as columns, for a timeline; without `line`, of the task's present one.

        Raises:
            NotFound: there is no such task, or no such line.
        """
        return drive(self._inner.outline(inner_of(task), line))

    def page(
        self,
        task: str | Task,
        line: int | None = None,
        *,
        after: int = 0,
        limit: int = 200,
        kind: str | None = None,
        state: CallState | None = None,
        text: str | None = None,
    ) -> Page[JournalCall]:
        """Calls in the order of their positions, each on one line. The page's cursor is the `after` of the next one.

        `kind` is a sort of call (step, effect, …), `state` selects calls by state, and `text` must be part of their
        line. With one of these a page can be short and still have a cursor: it looks at 20,000 entries at most.

        Raises:
            NotFound: the task or the line does not exist.
            InvalidInput: the limit or another argument is not valid.
        """
        return drive(
            self._inner.page(inner_of(task), line, after=after, limit=limit, kind=kind, state=state, text=text)
        )

    def entry(self, task: str | Task, line: int | None, position: int) -> JournalCall:
        """The call that has an entry at this position, whole: arguments, value, error, tries, key and marks.

        Raises:
            NotFound: there is no such task, line or entry.
        """
        return drive(self._inner.entry(inner_of(task), line, position))

    def lines(self, task: str | Task, *, limit: int = 1000) -> Sequence[JournalLine]:
        """The newest lines of a task's journal, the oldest of them first; empty for a task of no durable function.

        Raises:
            NotFound: there is no such task.
        """
        return drive(self._inner.lines(inner_of(task), limit=limit))

    def tail(self, task: str | Task, line: int | None = None, after: int = 0) -> Iterator[JournalCall]:
        """Each call when its entries are committed, by whichever process, until the task ends or begins a new line.

        A call with several entries is yielded several times, in its state at that moment. To continue after an
        interruption, pass the last position.

        Raises:
            NotFound: there is no such task, or no such line.
        """
        return iterate(self._inner.tail(inner_of(task), line, after))

    def since(self, task: str | Task, line: int, after: int, *, limit: int = 500) -> JournalNews:
        """The calls whose entries follow a position of a line. A caller that passes the `line` and `upto` of each
        answer to the next call gets every entry once, also across rollbacks: after the last entry of a line that has
        ended, the next line follows.

        Raises:
            NotFound: there is no such task, or no such line.
        """
        return drive(self._inner.since(inner_of(task), line, after, limit=limit))

    def end_of(self, task: str | Task) -> tuple[int, int]:
        """The present line of a task's journal, and the last position in it.

        Raises:
            NotFound: there is no such task.
        """
        return drive(self._inner.end_of(inner_of(task)))


class Checkpoints:
    """The checkpoints of tasks. A task is given by its id."""

    def __init__(self, inner: AsyncCheckpoints) -> None:
        self._inner = inner

    def page(self, task: str | TaskCore, *, after: int = 0, limit: int = 100) -> Page[CheckpointInfo]:
        """Checkpoints without their contents, oldest first. The page's cursor is the `after` of the next one.

        Raises:
            NotFound: there is no such task.
            InvalidInput: the limit is not valid.
        """
        return drive(self._inner.page(inner_of(task), after=after, limit=limit))

    def get(
        self, task: str | TaskCore, seq: int, *, part: CheckpointPart | None = None, path: Sequence[str | int] = ()
    ) -> Json:
        """The content of a checkpoint: all parts by name, or one of them, or the value that `path` leads to.

        Raises:
            NotFound: there is no such task, checkpoint or path.
            RecordDamaged: the checkpoint cannot be read.
        """
        return drive(self._inner.get(inner_of(task), seq, part=part, path=path))

    def diff(self, task: str | TaskCore, a: str | int, b: str | int = NOW, *, limit: int = 500) -> Diff:
        """The changes in the state from one checkpoint to another; those after the first `limit` are only counted.

        Each of the two is a number, an id (also of another task's checkpoint), or "now".

        Raises:
            NotFound: there is no such task or checkpoint.
            RecordDamaged: one of them cannot be read.
        """
        return drive(self._inner.diff(inner_of(task), a, b, limit=limit))


class KillSwitch:
    """The kill switches of one namespace."""

    def __init__(self, inner: AsyncKillSwitch) -> None:
        self._inner = inner

    def on(self, id: str | None = None, *, why: str = "") -> None:
        """Stop one task, or all of them. The task need not exist yet."""
        drive(self._inner.on(id, why=why))

    def off(self, id: str | None = None) -> None:
        """Let workers claim the task again. The switch for all tasks and the switch of one task are independent."""
        drive(self._inner.off(id))

    def list(self) -> Sequence[Switch]:
        """The switches that are on."""
        return drive(self._inner.list())

    def check(self, id: str) -> None:
        """For loops outside durable functions: call it before each model or tool call.

        Raises:
            KillSwitchOn: the task, or every task, is stopped.
        """
        drive(self._inner.check(id))


class Schedules:
    """`app.schedules`: the schedules of one namespace."""

    def __init__(self, inner: AsyncSchedules) -> None:
        self._inner = inner

    def list(self) -> Sequence[Schedule]:
        return drive(self._inner.list())

    def get(self, id: str) -> Schedule | None:
        return drive(self._inner.get(id))

    def pause(self, id: str) -> Schedule:
        """Start nothing until it is resumed; runs under way continue."""
        return drive(self._inner.pause(id))

    def resume(self, id: str) -> Schedule:
        """Continue with the next tick; ticks during the pause are not made up."""
        return drive(self._inner.resume(id))

    def remove(self, id: str, *, if_version: int | None = None) -> None:
        """Delete the schedule; tasks it has started stay.

        Raises:
            NotFound: there is no such schedule.
            StaleVersion: it is not at `if_version`.
        """
        drive(self._inner.remove(id, if_version=if_version))

    def add(
        self,
        id: str,
        function: str,
        arguments: Mapping[str, Any] = {},
        *,
        version: int | None = None,
        cron: str = "",
        tz: str = "UTC",
        every: Duration | None = None,
        missed: Missed = "once",
        overlap: bool = False,
        queue: str = "default",
        priority: int = 0,
        if_version: int | None = None,
    ) -> Schedule:
        """Store a schedule for a function that this process need not know, by its name; `cron` or `every` says when.

        Without a version it is the newest one that a live worker knows. The arguments are checked against what workers
        announce about the function. With `if_version` only that version of the schedule is changed; 0 means that there
        must not be one yet.

        Raises:
            NotFound: no version was given, and no live worker knows the function; nothing was written.
            InvalidInput: the arguments, or when to start it, are not valid; nothing was written.
            StaleVersion: the schedule is not at `if_version`; nothing was written.
        """
        return drive(
            self._inner.add(
                id,
                function,
                arguments,
                version=version,
                cron=cron,
                tz=tz,
                every=every,
                missed=missed,
                overlap=overlap,
                queue=queue,
                priority=priority,
                if_version=if_version,
            )
        )

    def run_now(self, id: str, *, key: str | None = None) -> str:
        """Start an extra run now, which this process need not know the function for. Returns the id of its task. Said
        again with the same key, it gives the same task.

        Raises:
            NotFound: there is no such schedule.
        """
        return drive(self._inner.run_now(id, key=key))


class ScheduleDraft:
    """A function to start; `cron` or `every` says when, and stores the schedule."""

    def __init__(self, inner: AsyncScheduleDraft) -> None:
        self._inner = inner

    def cron(self, expression: str, *, tz: str = "UTC", missed: Missed = "once", overlap: bool = False) -> Schedule:
        """Start it whenever the expression matches in this time zone: "0 9 * * 1-5" is 9:00 on working days.

        `missed` says what to do about ticks while no worker was there: `skip` them, make up for all of them with one
        run (`once`), or run each (`all`). A run waits for the end of the one before it, unless `overlap` is set.

        Raises:
            InvalidInput: the expression or the zone is not valid; nothing was written.
        """
        return drive(self._inner.cron(expression, tz=tz, missed=missed, overlap=overlap))

    def every(self, length: Duration, *, missed: Missed = "once", overlap: bool = False) -> Schedule:
        """Start it at this interval; the first time after one interval."""
        return drive(self._inner.every(length, missed=missed, overlap=overlap))

    def only_if(self, version: int | None) -> ScheduleDraft:
        """The same, to be kept only if the schedule is at this version; 0: if there is none."""
        return ScheduleDraft(self._inner.only_if(version))


class Triggers:
    """`app.triggers`: what to do when something happens outside."""

    def __init__(self, inner: AsyncTriggers) -> None:
        self._inner = inner

    def start(self, id: str, fn: DurableFunction[..., Any], /, *args: Any) -> TriggerDraft:
        """Start `fn(*args, data)` with the data of the event; for a file or folder, that is the path."""
        return TriggerDraft(self._inner.start(id, fn, *args))

    def signal(self, id: str, task: str, name: str) -> TriggerDraft:
        """Signal a task. In its id, `order-{number}`, the field `number` of the event's data is filled in."""
        return TriggerDraft(self._inner.signal(id, task, name))

    def add(
        self,
        id: str,
        event: str,
        *,
        function: str | None = None,
        version: int | None = None,
        arguments: Mapping[str, Any] = {},
        takes: str | None = None,
        queue: str = "default",
        priority: int = 0,
        task: str | None = None,
        signal: str | None = None,
        rate: tuple[int, Duration] | None = None,
        schema: Mapping[str, Any] | None = None,
        if_version: int | None = None,
    ) -> Trigger:
        """Store a trigger for an event. It starts a function by name, which this process need not know, or signals a
        task. The parameter `takes` gets the event's data (default: the first parameter without an argument).

        Raises:
            NotFound: no version was given, and no live worker knows the function; nothing was written.
            InvalidInput: the function, signal or arguments are not valid; nothing was written.
            StaleVersion: the trigger is not at `if_version` (0: there is one); nothing was written.
        """
        return drive(
            self._inner.add(
                id,
                event,
                function=function,
                version=version,
                arguments=arguments,
                takes=takes,
                queue=queue,
                priority=priority,
                task=task,
                signal=signal,
                rate=rate,
                schema=schema,
                if_version=if_version,
            )
        )

    def get(self, id: str) -> Trigger | None:
        return drive(self._inner.get(id))

    def list(self) -> Mapping[str, Trigger]:
        return drive(self._inner.list())

    def pause(self, id: str) -> None:
        """Stop acting; events wait until it is resumed."""
        drive(self._inner.pause(id))

    def resume(self, id: str) -> None:
        drive(self._inner.resume(id))

    def remove(self, id: str, *, if_version: int | None = None) -> None:
        """Delete the trigger; tasks it has started stay.

        Raises:
            NotFound: there is no such trigger.
            StaleVersion: it is not at `if_version`.
        """
        drive(self._inner.remove(id, if_version=if_version))


class TriggerDraft:
    """An action; `event`, `file` or `directory` says when to take it, and stores the trigger."""

    def __init__(self, inner: AsyncTriggerDraft) -> None:
        self._inner = inner

    def event(
        self, name: str, *, rate: tuple[int, Duration] | None = None, schema: Mapping[str, Any] | None = None
    ) -> Trigger:
        """Act on each event of this name. Its data must fit `schema`; the default is the type of the function's
        parameter. `rate` limits how many begin in a length of time; the others wait."""
        return drive(self._inner.event(name, rate=rate, schema=schema))

    def file(self, path: str | os.PathLike[str], *, rate: tuple[int, Duration] | None = None) -> Trigger:
        """Act whenever this file changes or appears; its present content does not count. Only on this machine."""
        return drive(self._inner.file(path, rate=rate))

    def directory(
        self, path: str | os.PathLike[str], *, pattern: str = "*", rate: tuple[int, Duration] | None = None
    ) -> Trigger:
        """Act once on each file in this folder whose name matches, now and later. Only on this machine."""
        return drive(self._inner.directory(path, pattern=pattern, rate=rate))

    def only_if(self, version: int | None) -> TriggerDraft:
        """The same, to be kept only if the trigger is at this version; 0: if there is none."""
        return TriggerDraft(self._inner.only_if(version))


class Events:
    """`app.events`: emit and read events."""

    def __init__(self, inner: AsyncEvents) -> None:
        self._inner = inner

    def send(self, name: str, data: Any = None, *, id: str | None = None) -> Received:
        """Store an event. Once this returns, workers will act on it even if this process dies. An event with the same
        id is stored once.

        Raises:
            NotFound: no trigger wants events of this name; nothing was stored.
            InvalidInput, TooLarge, NotStorable: its data does not fit; nothing was stored.
        """
        return drive(self._inner.send(name, data, id=id))

    def list(self, *, limit: int = 1000, after: str = "") -> Sequence[IncomingEvent]:
        """The stored events, by name and id; those behind `after`, the key of an event."""
        return drive(self._inner.list(limit=limit, after=after))


class Storage:
    """Values by key in a store: JSON-like or bytes, sealed when the store has a key, durable when a call returns.

    A key is any text of at most 1,024 bytes. A value has a version, which rises by one with each write: give it back
    as `seen`, and the write is refused when another process wrote first (`seen=0`: there must not be a value yet).

    A key `execution/<task>/…` belongs to that task (`owner_prefix` writes its beginning). Its value is deleted with the
    task. While this process holds the task's lease, a write carries the lease, and a process that has lost it writes
    nothing. Inside a durable function, read and write in a step: nothing here is recorded by itself.
    """

    def __init__(self, inner: AsyncStorage) -> None:
        self._inner = inner

    def get(self, key: str) -> Any | None:
        return drive(self._inner.get(key))

    def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        """The values under these keys, in one query; keys without a value are left out."""
        return drive(self._inner.get_many(keys))

    def put(self, key: str, value: Any, *, seen: int | None = None, expires: Duration | None = None) -> int:
        """Store a value, for good or until `expires`; returns its version.

        Raises:
            Conflict: the stored version is no longer `seen`; nothing was written.
            LeaseLost: the key is a task's, and another attempt has taken the task over; nothing was written.
        """
        return drive(self._inner.put(key, value, seen=seen, expires=expires))

    def write(self, changes: Sequence[Put | Delete]) -> Sequence[int]:
        """Make all of these changes, or none. Returns the version of each value, 0 for a deleted key.

        Each key can occur once. All keys that belong to a task must belong to the same task.

        Raises:
            Conflict: one of the stored versions is no longer `seen`; nothing was written.
            LeaseLost: the keys are a task's, and another attempt has taken the task over; nothing was written.
        """
        return drive(self._inner.write(changes))

    def scan(
        self, prefix: str, *, after: str | None = None, limit: int | None = None, reverse: bool = False
    ) -> Sequence[Stored]:
        """The values whose keys begin with the prefix, with their keys and versions, in the order of the keys.

        One query reads them. `after` is the last key of the page before.  `reverse` begins with the greatest key.
        Without a limit it returns all of them.
        """
        return drive(self._inner.scan(prefix, after=after, limit=limit, reverse=reverse))

    def delete(self, key: str, *, seen: int | None = None) -> bool:
        """Delete the value of a key; returns True if there was one.

        Raises:
            Conflict: the stored version is no longer `seen`; nothing was written.
            LeaseLost: the key is a task's, and another attempt has taken the task over; nothing was written.
        """
        return drive(self._inner.delete(key, seen=seen))

    def list(self, prefix: str) -> Sequence[str]:
        """The keys that begin with the prefix, in their order."""
        return drive(self._inner.list(prefix))

    def load(self, key: str) -> Loaded | None:
        """The value with its version; None when there is none."""
        return drive(self._inner.load(key))


class Webhooks:
    """The webhooks of a namespace."""

    def __init__(self, inner: AsyncWebhooks) -> None:
        self._inner = inner

    def make(
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
        return drive(
            self._inner.make(
                url,
                events=events,
                reasons=reasons,
                functions=functions,
                agents=agents,
                tags=tags,
                data=data,
                description=description,
                once=once,
            )
        )

    def list(self) -> Sequence[Webhook]:
        """All webhooks of the namespace, oldest first."""
        return drive(self._inner.list())

    def get(self, id: str) -> Webhook:
        """
        Raises:
            NotFound: the namespace has no such webhook.
        """
        return drive(self._inner.get(id))

    def change(
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
        return drive(
            self._inner.change(
                id,
                version=version,
                url=url,
                events=events,
                reasons=reasons,
                functions=functions,
                agents=agents,
                tags=tags,
                data=data,
                description=description,
                enabled=enabled,
            )
        )

    def enable(self, id: str) -> Webhook:
        """Send to a webhook that was disabled. Messages that wait since then are sent first.

        Raises:
            NotFound: the namespace has no such webhook.
        """
        return drive(self._inner.enable(id))

    def disable(self, id: str) -> Webhook:
        """Send nothing more until it is enabled. Events go on being queued; they are kept for 7 days.

        Raises:
            NotFound: the namespace has no such webhook.
        """
        return drive(self._inner.disable(id))

    def remove(self, id: str, *, version: int | None = None) -> None:
        """Remove a webhook and all its messages.

        Raises:
            NotFound: the namespace has no such webhook.
            Conflict: it is no longer at `version`; nothing was removed.
        """
        drive(self._inner.remove(id, version=version))

    def rotate(self, id: str, overlap: Duration = "24h", *, once: str | None = None) -> MadeWebhook:
        """Give a webhook a new secret, shown this once. For the overlap messages are signed with both.

        With `once`, a repeat after a lost answer gives the secret that the first one made.

        Raises:
            NotFound: the namespace has no such webhook.
            InvalidInput: the overlap is longer than 7 days.
        """
        return drive(self._inner.rotate(id, overlap, once=once))

    def test(self, id: str, *, once: str | None = None) -> Delivery:
        """Queue a ping, which is sent like any message. With `once`, a repeat finds the first one.

        Raises:
            NotFound: the namespace has no such webhook.
            Conflict: it is disabled.
        """
        return drive(self._inner.test(id, once=once))

    def deliveries(
        self, id: str, *, state: DeliveryState | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[Delivery]:
        """The messages of a webhook, the newest first; `before` is the id of the last one that was seen.

        Raises:
            NotFound: the namespace has no such webhook.
        """
        return drive(self._inner.deliveries(id, state=state, before=before, limit=limit))

    def delivery(self, id: str, message_id: str) -> Delivery:
        """
        Raises:
            NotFound: the webhook has no such message.
        """
        return drive(self._inner.delivery(id, message_id))

    def replay(self, id: str, message_id: str, *, once: str | None = None) -> Delivery:
        """Queue the same body once more, under a new id. With `once`, a repeat finds the first one.

        Raises:
            NotFound: the webhook has no such message.
            Conflict: the webhook is disabled.
        """
        return drive(self._inner.replay(id, message_id, once=once))
