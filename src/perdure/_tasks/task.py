"""A task in the hands of its agent or its operator: the verbs of `app.tasks.open(…)`.

Writes of an attempt (checkpoint, mark_progress, complete, fail) need its lease, and take it if it is free. Control
verbs (pause, resume, cancel, rollback, …) need none. Each verb is one write in the store, durable when it returns; if
refused, it has changed nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from perdure._ground.clock import moment
from perdure._ground.ids import check_id
from perdure._model import (
    FINISHED,
    Change,
    Checkpoint,
    DryRun,
    Progress,
    Reason,
    Status,
    ToolCall,
    progress_of,
)
from perdure._store import TaskRow
from perdure._tasks.attempts import attempt_of
from perdure._tasks.checkpoints import checkpoint_write as checkpointing
from perdure._tasks.checkpoints import history
from perdure._tasks.checkpoints import list_append as appending
from perdure._tasks.core import Key, StoreOwner, TaskCore, do_once
from perdure._tasks.lifecycle import fail, take_lease
from perdure._tasks.lifecycle import status_moves as moves
from perdure._tasks.once import Once, once_of
from perdure._tasks.pauses import callbacks, decisions
from perdure._tasks.pauses import messages as telling
from perdure._tasks.pauses import pause_write as pausing
from perdure._tasks.pauses import resume_write as resuming
from perdure._tasks.state import Snapshot, snapshots
from perdure._tasks.task_parts import delete_parts
from perdure._tasks.task_row import current_row
from perdure._tasks.values import TaskFrames
from perdure.errors import AlreadyExists, InvalidInput, InvalidTransition, RecordDamaged, StaleVersion

Json = Any


class Task(TaskCore):
    """One task. It shows what was last read or written through it."""

    status: Status

    def __init__(
        self, tasks: TaskHome, key: Key, state: Json, snapshot: Snapshot, agent: str = "", created: bool = True
    ) -> None:
        super().__init__(tasks._store, key, state, snapshot, agent, created)
        self._tasks = tasks

    @property
    def frames(self) -> TaskFrames:
        """The lines of thought the task was in when it was interrupted."""
        return TaskFrames(self._store, self.id, self.uid)

    # ── an attempt's writes ─────────────────────────────────────────────────────────────────────

    def attempt(self, *, take_over: bool = False) -> AbstractAsyncContextManager[Task]:
        """Work on the task as its one writer, from its newest state, until the block ends.

        With `take_over` the lease is taken from its holder, alive or not: that attempt can write no more, and the
        history says who took it, and where.

        Raises:
            LeaseHeld: another attempt is alive.
            InvalidTransition: the task is paused or finished.
        """
        return attempt_of(self, take_over=take_over)

    async def checkpoint(
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
        return await checkpointing.put(
            self, state, label=label, plan=plan, memory=memory, partial=partial, pending=pending, once=once
        )

    async def append(
        self, path: str | Sequence[str | int], item: Json, *, label: str = "", once: str | None = None
    ) -> Checkpoint:
        """Add an item to a list in the state; a checkpoint that costs what the item does, however long the list is.

        `path` is "messages", "plan.steps", or its keys one by one. A list that is not there yet is begun. Plan,
        memory, partial results and pending calls stay as they are.

        Raises:
            InvalidInput: the value there is not a list; nothing was written.
            and what `checkpoint` raises.
        """
        return await appending.append(self, path, item, label=label, once=once)

    async def mark_progress(
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
        percent = progress_of(operation, percent, done, total)
        at = self._store.clock.now_ms()
        progress = Progress(operation=operation, percent=percent, cursor=cursor, done=done, total=total, at=moment(at))
        while True:
            hold = await take_lease(self)
            before = hold.progress or await read_progress(self)
            hold.progress = progress.beside(
                hold.progress or before
            )  # other code of this process may have marked meanwhile
            sealed = self._store.seal(self.uid, "progress", hold.progress, Progress)
            params = {"progress": sealed, "at": at}
            if await self._store.verb("mark_progress", self.uid, params, key=self.id, fence=hold.fence) is not None:
                return
            await moves.explain(self, "mark_progress", hold)

    async def complete(self, result: Json = None, *, once: str | None = None) -> None:
        """The task has reached its end. Doing so again with the same result changes nothing.

        Raises:
            InvalidTransition: it is paused, or has ended otherwise, or with another result.
        """
        asked = once_of(once, "complete", result)
        await do_once(self, asked, lambda: self._complete(result, asked))

    async def _complete(self, result: Json, once: Once | None) -> None:
        sealed = self._store.seal(self.uid, "result", result)
        try:
            hold = await take_lease(self)
            await moves.move(self, "complete", hold=hold, ended="completed", data={}, result=sealed, once=once)
        except InvalidTransition:
            row = await current_row(self._store, self.id, self.uid)
            if row.status != "completed":
                raise
            await self._same_result(row, result)

    async def _same_result(self, row: TaskRow, result: Json) -> None:
        self.status = "completed"
        before = self._store.unseal(self.uid, "result", row.result) if row.result else None
        if before != snapshots.copy_of(result):
            raise InvalidTransition(
                self.id, "completed", "complete with another result", do="the first result stands; fork to try again"
            )

    async def fail(self, error: Json, *, once: str | None = None) -> None:
        """Fail the task with `error`. It can be resumed, which begins a new attempt."""
        await fail(self, error, once=once)

    # ── control ─────────────────────────────────────────────────────────────────────────────────

    async def pause(
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
        await pausing.pause(self, message, reason, checkpoint, payload, once=once)

    async def resume(
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
        asked = once_of(once, "resume", None if state is None else dict(state), checkpoint, instruction)
        if instruction is not None:
            await resuming.with_instruction(self, instruction, state, checkpoint, self._keep, asked)
        else:
            await resuming.resume_at(self, state, checkpoint, self._keep, asked)

    async def instruct(self, text: str, *, once: str | None = None) -> None:
        """Give a durable function new instructions: its next `instruction()` returns them. It continues otherwise
        unchanged."""
        await telling.send(self, telling.INSTRUCTION, text, once)

    async def cancel(self, *, undo: bool = True, dry_run: bool = False) -> DryRun | None:
        """End the task for good; a running attempt can no longer write.

        A durable function's effects are settled and undone first, by the process that works on the task. If that is
        another process, this returns when the request is on disk, and the task is `cancelled` when it is fulfilled.
        With `dry_run` nothing is changed: the result says what would happen.
        """
        if dry_run:
            return await self._tasks._hooks.rehearse(self, None, undo)
        if not await self._tasks._hooks.cancel(self, undo):
            await moves.move(self, "cancel", ended="cancelled", data={"undo": undo}, ends=True)
        return None

    async def rollback(
        self, to: str, *, undo: bool | None = None, dry_run: bool = False, once: str | None = None
    ) -> DryRun | None:
        """Make an earlier checkpoint the state again; later ones stay readable as superseded.

        A durable function continues from there. Effects it has done since are undone first with `undo`, or left as they
        are with undo=False; without either the rollback is refused (InvalidInput) if there are any.

        If this process does not know how to undo them, the rollback is a request: it is on disk when this returns, with
        the event `rollback asked for`, and the next worker with the code fulfils it. With `dry_run` nothing is changed:
        the result says what would happen.
        """
        if dry_run:
            _, row = await history.find(self, to)
            return await self._tasks._hooks.rehearse(self, row.seq, bool(undo))
        asked = once_of(once, "rollback", to, undo)
        await history.rollback(self, to, patch=None, verb="rollback", keep=self._keep, undo=undo, once=asked)
        return None

    def _keep(self, checkpoint: int, undo: bool | None) -> Awaitable[history.KeptEntries | None]:
        return self._tasks._hooks.keep_for_rollback(self, checkpoint, undo)

    async def answer(self, value: Json, *, by: str = "", key: str | None = None, once: str | None = None) -> None:
        """Answer the task's question; the first answer stands, and the task continues. Without a durable function the
        answer is merged into its state, under `answer`.

        Of an uncertain effect it is "done", "retry" or "fail", or {"choice": "done", "value": its result}.
        `key` says which of several is meant.

        Raises:
            NotFound: there is no question.
            InvalidInput: there are several questions and no key; or the answer does not fit.
            Conflict: another answer was first.
        """
        await decisions.say(self, value, by=by or self._store.presence.acting_user, key=key, once=once)

    async def approve(self, *, by: str, comment: str = "", edited: Json = None, once: str | None = None) -> None:
        """Approve the task's question; the first decision stands, and the task continues.

        Raises:
            NotFound: it asks for no approval.
            InvalidInput: `edited` is not allowed.
            Conflict: it was decided before.
        """
        said = {"decision": "approve", "comment": comment, "edited": edited}
        await decisions.say(self, said, by=by, only="approval", once=once)

    async def reject(self, *, by: str, comment: str = "", once: str | None = None) -> None:
        """Say no to what the task asks, as `approve` says yes."""
        await decisions.say(self, {"decision": "reject", "comment": comment}, by=by, only="approval", once=once)

    async def callback_token(self) -> str:
        """A token for another system to answer by, once: give it away, then `pause(…, callback=token)`. Of a durable
        function that waits for a callback, one more token for that."""
        return await callbacks.token_for(self)

    async def fork(
        self, id: str, *, at: str | None = None, set: Mapping[str, Json] = {}, once: str | None = None
    ) -> Task:
        """A new task that begins with this one's state (at a checkpoint, with some keys set).

        A fork of a durable function's task continues after the step `at` (its number, path or name; without it, after
        the last one), with the given arguments or keys of its state. Calls that had ended by then stay done.

        Raises:
            NotFound, InvalidInput: there is no such checkpoint, step or argument; nothing was written.
            AlreadyExists: the id is in use.
        """
        asked = once_of(once, "fork", self.uid, at, dict(set))
        before = await self._tasks._made_before(id, asked)
        if before is not None:
            return before
        try:
            made = await self._tasks._hooks.fork(self, id, at, set, asked)
        except AlreadyExists:
            made = await self._tasks._made_before(id, asked)
            if made is None:
                raise
        if made is not None:
            return made
        return await self._tasks._create_from(id, **await history.fork_columns(self, at, set), once=asked)

    async def signal(self, name: str, value: Json = None, *, once: str | None = None) -> None:
        """Send a durable function a signal: a call that waits for `name` gets it, or it is kept.

        `once` names the occasion of the signal: a second signal with the same name is dropped.

        Raises:
            InvalidTransition: the task has ended.
        """
        if check_id(name, "signal's name").startswith("~"):
            raise InvalidInput(f"the signal {name!r} begins with ~, as perdure's own do", do="choose another name")
        await telling.send(self, name, value, once)

    # ── history ─────────────────────────────────────────────────────────────────────────────────

    def checkpoints(self) -> AsyncIterator[Checkpoint]:
        """Every checkpoint, oldest first, the superseded and invalid ones marked as such."""
        return history.checkpoints(self._store, self.uid)

    async def diff(self, a: str, b: str) -> Sequence[Change]:
        """The changes in the state from checkpoint `a` to `b`. Each is a number, an id (also of another task's
        checkpoint), or "now"."""
        from perdure._tasks.checkpoints import Checkpoints

        return (await Checkpoints(self._store).diff(self, a, b, limit=100_000)).changes

    async def invalidate_if(self, predicate: Callable[[Checkpoint], bool | Awaitable[bool]]) -> Sequence[str]:
        """Discard the checkpoints for which `predicate` is true; the newest one left is the state."""
        return await history.invalidate_if(self, predicate)

    async def pin(self, checkpoint: str, *, pinned: bool = True) -> None:
        """Have gc leave a checkpoint alone (or no longer)."""
        await history.pin(self, checkpoint, pinned)

    # ── end ─────────────────────────────────────────────────────────────────────────────────────

    async def archive(self) -> None:
        """Out of sight: `get` and `list` find it only with archived=True."""
        params = {**self._event("archived", {}), "archived_at": self._store.clock.now_ms()}
        if await self._store.verb("archive", self.uid, params, key=self.id) is None:
            row = await current_row(self._store, self.id, self.uid)
            raise InvalidTransition(self.id, row.status, "be archived", do="complete, fail or cancel it first")

    async def delete(self, *, force: bool = False) -> None:
        """Remove a finished task and its hidden parts for good; only tombstones stay. `force` cancels live ones first.

        Raises:
            InvalidTransition: the task, or a part of it, is not finished.
        """
        row = await current_row(self._store, self.id, self.uid)
        if row.status not in FINISHED:
            if not force:
                raise InvalidTransition(self.id, row.status, "be deleted", do="finish it first, or delete(force=True)")
            await self.cancel()
            row = await current_row(self._store, self.id, self.uid)
        await delete_parts(self._store, self.uid, force=force)
        params = {**self._event("deleted", {}), "version": row.version}
        if await self._store.verb("delete_task", self.uid, params, key=self.id) is None:
            now = await current_row(self._store, self.id, self.uid)
            raise StaleVersion(self.id, row.version, now.version)


class TaskHooks:
    """Hooks by which the rooms above extend the verbs of a task. Without them a task is treated as one without a
    durable function."""

    async def cancel(self, task: Task, undo: bool) -> bool:
        """Cancel a durable function's task, whose effects may have to be undone; False for any other task."""
        return False

    async def rehearse(self, task: Task, checkpoint: int | None, undo: bool) -> DryRun:
        """Tell what would happen to the effects since a checkpoint, or to all of them, if they were undone or kept."""
        return DryRun()

    async def fork(
        self, task: Task, id: str, at: str | None, changes: Mapping[str, Json], once: Once | None
    ) -> Task | None:
        """A fork of a durable function's task, with its journal; None for any other task."""
        return None

    async def keep_for_rollback(self, task: Task, checkpoint: int, undo: bool | None) -> history.KeptEntries | None:
        """The part of its journal that a durable function's task keeps when it is rolled back to a checkpoint; None for
        any other task."""
        return None

    async def restore(self, task: Task, epoch: int) -> None:
        """Bring back what was saved of the task's runtime, before the attempt of this epoch begins."""


class TaskHome(StoreOwner):
    """A task's access to the other tasks of its namespace."""

    _hooks: TaskHooks
    _drafts: dict[object, object]  # see task_drafts.py

    async def _create_from(self, id: str, *, state: Json, **what: object) -> Task:
        """A new task, which can be derived from another one."""
        raise NotImplementedError

    async def _made_before(self, id: str, once: Once | None) -> Task | None:
        """The task that this request has made before."""
        raise NotImplementedError


async def read_progress(task: Task) -> Progress | None:
    """The progress of its operations, as last marked by any attempt."""
    row = await current_row(task._store, task.id, task.uid)
    try:
        return task._store.unseal(task.uid, "progress", row.progress, Progress) if row.progress else None
    except RecordDamaged:
        return None  # it was there to be looked at, and is named there
