"""One task behind a server: its handle, with the verbs and the promises of the one in this process.

The code works on `task.state`. Each write of the state says which checkpoint it was made from, so that the server
keeps what others have written since, and refuses what both have changed.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec

from perdure._ground.clock import from_environment
from perdure._ground.encoding.json_values import plain
from perdure._ground.encoding.list_splice import path_of as list_path
from perdure._model import (
    Change,
    DryRun,
    InboxItem,
    Overlap,
    Reason,
    TaskRecord,
    is_same,
    merge,
    seq_of,
)
from perdure._tasks import Inbox, Task, TaskFrames, error_of, saving_often, uncaught
from perdure.client.holder import RemoteHolding
from perdure.client.requests import keyed, pause_payload, record_of, tool_calls
from perdure.client.transport import Reply, Transport, encoded
from perdure.errors import (
    InvalidInput,
    LeaseLost,
    NotFound,
    NotStorable,
    PerdureError,
    RecordDamaged,
    StaleVersion,
)
from perdure.types import Checkpoint, ToolCall

Json = Any
_PARTS = ("plan", "memory", "partial", "pending")  # of a checkpoint, beside the state


class RemoteTask(Task):
    """One task behind a server."""

    def __init__(self, transport: Transport, holding: RemoteHolding, reply: Reply, *, created: bool) -> None:
        self._transport, self._holding = transport, holding
        self._fence: str | None = None
        self._unseen: Json = None  # the state in the store, if others have added to what the code saved
        self.created = created
        self._show(reply)

    def _show(self, reply: Reply, *place: str) -> TaskRecord:
        """Show what the server told: the code sees this state now, and its next write says so."""
        value = reply.value
        for name in place:
            value = value[name]
        record = self._note(record_of(value))
        self.id, self.uid = record.id, record.uid
        self._see(record.state, record.latest, reply, *place, "state")
        return record

    def _see(self, state: Json, latest: Checkpoint | None, reply: Reply, *place: str) -> None:
        self.state, self._latest, self._seen, self._unseen = state, latest, (reply.content, place), None

    @property
    def _base_seq(self) -> int:
        """The checkpoint that the code has made its state from."""
        return self._latest.seq if self._latest is not None else 0

    def _note(self, record: TaskRecord) -> TaskRecord:
        """Take the status over; the state stays as the code has it."""
        self.status, self._version = record.status, record.version
        return record

    def _state_as_read(self) -> Json:
        """The state as the server told it, before the code changed it."""
        content, place = self._seen
        value = json.loads(content)
        for name in place:
            value = value[name]
        return value

    @property
    def _path(self) -> str:
        return f"/v1/tasks/~{self.uid}"

    async def record(self) -> TaskRecord:
        return self._show(await self._transport.get(self._path))

    # ── an attempt's writes ─────────────────────────────────────────────────────────────────────

    def attempt(self, *, take_over: bool = False) -> AbstractAsyncContextManager[Task]:
        return self._attempt(take_over)

    @asynccontextmanager
    async def _attempt(self, take_over: bool) -> AsyncIterator[Task]:
        holding = self._holding
        begun = await holding.begin(self.id, self.uid, take_over=take_over)
        self._fence = begun.value["fence"]
        try:
            config = self._show(begun, "task").config
            async with saving_often(self, config.checkpoint_interval, from_environment(), self._save_working_state):
                yield self
        except LeaseLost:
            raise
        except Exception as error:
            await self._end_by_error(error)
            raise
        finally:
            fence, self._fence = self._fence, None
            await holding.give_back(self.uid, fence)

    async def _end_by_error(self, error: Exception) -> None:
        """Have the task do what its config says follows."""
        told = uncaught(error)
        body = {"type": told.type, "message": told.message, "traceback": told.traceback}
        try:
            self._note(record_of((await self._write("POST", "attempt/error", body)).value))
        except PerdureError as trouble:
            error.add_note(f"perdure could not record the end of this attempt: {trouble.what}")

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
        parts = {"plan": plan, "memory": memory, "partial": partial, "pending": tool_calls(pending)}
        made, reply = await self._save(state, {"label": label, **parts}, once)
        self._see(made.data, made, reply, "data")
        self._has_begun()
        return made

    def _has_begun(self) -> None:
        """A write of the state takes the lease, and so begins a task that was pending."""
        if self.status == "pending":
            self.status = "running"

    async def _save(self, state: Json, parts: dict[str, Json], once: str | None = None) -> tuple[Checkpoint, Reply]:
        reply = await self._write(
            "POST", "checkpoints", {"state": self._with_unseen(state), **parts}, self._based(once)
        )
        return msgspec.convert(reply.value, Checkpoint, strict=False), reply

    async def _save_working_state(self) -> None:
        """Checkpoint what the code has made of `task.state`, if it has changed; `task.state` stays the code's own."""
        if is_same(self.state, self._state_as_read()):
            return
        latest, given = self._latest, encoded(self.state)
        parts = {} if latest is None else {name: plain(getattr(latest, name)) for name in _PARTS}
        self._latest, _ = await self._save(self.state, parts)
        own = json.loads(given)
        self._seen, self._unseen = (given, ()), None if is_same(self._latest.data, own) else self._latest.data

    def _with_unseen(self, state: Json) -> Json:
        """The state with what others have added since the code read it, as far as this process knows of it.

        Raises:
            StaleVersion: both have changed one value.
        """
        if self._unseen is None:
            return state
        try:
            return merge(self._state_as_read(), self._unseen, state)
        except Overlap as found:
            path = ".".join(("state", *found.path))
            raise StaleVersion(self.id, self._base_seq, self._base_seq, path=path) from None

    def _based(self, once: str | None) -> dict[str, str]:
        """Headers of a write of the state. What its author has read is not in the body: with the same key and state
        it is the same request, whatever was read since."""
        return {"Perdure-Base": str(self._base_seq), **keyed(once, self._path)}

    async def append(
        self, path: str | Sequence[str | int], item: Json, *, label: str = "", once: str | None = None
    ) -> Checkpoint:
        keys = list_path(path)
        body = {"path": path if isinstance(path, str) else list(path), "item": item, "label": label}
        try:
            reply = await self._write("POST", "append", body, keyed(once, self._path))
        except NotStorable as refused:
            where = f"{'.'.join(map(str, keys))}[]" + (f".{refused.path}" if refused.path else "")
            raise NotStorable(where, refused.problem, do=refused.do) from None
        made = msgspec.convert(reply.value, Checkpoint, strict=False)
        # What the code has changed in its copy and not saved yet stays in it.
        state = merge(self._state_as_read(), made.data, self.state, keep="given")
        self._see(state, made, reply, "data")
        self._has_begun()
        return made

    async def mark_progress(
        self,
        operation: str,
        *,
        percent: float | None = None,
        cursor: Json = None,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        body = {"operation": operation, "percent": percent, "cursor": cursor, "done": done, "total": total}
        await self._write("PUT", "progress", body)

    async def complete(self, result: Json = None, *, once: str | None = None) -> None:
        await self._end("complete", {"result": result}, once)

    async def fail(self, error: Json, *, once: str | None = None) -> None:
        await self._end("fail", {"error": error_of(error)}, once)

    async def _end(self, verb: str, body: Json, once: str | None) -> None:
        self._note(record_of((await self._write("POST", verb, body, keyed(once, self._path))).value))

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
        now = bool(payload.pop("now", False))
        state = checkpoint if checkpoint is None else self._with_unseen(checkpoint)
        told = pause_payload(payload)
        body = {"message": message, "reason": reason, "payload": told, "now": now, "checkpoint": state}
        # By its own attempt the task is paused only while that has the lease.
        verb = "pause" if self._fence is None else "attempt/pause"
        reply = await self._write("POST", verb, body, self._based(once))
        if checkpoint is None:
            self._note(record_of(reply.value))
        else:
            self._show(reply)

    async def resume(
        self,
        *,
        state: Mapping[str, Json] | None = None,
        checkpoint: str | None = None,
        instruction: str | None = None,
        once: str | None = None,
    ) -> None:
        body = {"state": dict(state) if state else None, "checkpoint": checkpoint, "instruction": instruction}
        await self._steer("resume", body, once, is_matched=bool(state) or checkpoint is not None)

    async def instruct(self, text: str, *, once: str | None = None) -> None:
        await self._write("POST", "instruct", {"text": text}, keyed(once, self._path))

    async def cancel(self, *, undo: bool = True, dry_run: bool = False) -> DryRun | None:
        if dry_run:
            return _dry_run((await self._write("POST", "cancel", {"undo": undo, "dry_run": True})).value)
        self._note(record_of((await self._write("POST", "cancel", {"undo": undo})).value))
        return None

    async def rollback(
        self, to: str, *, undo: bool | None = None, dry_run: bool = False, once: str | None = None
    ) -> DryRun | None:
        body = {"to": to, "effects": None if undo is None else "undo" if undo else "keep"}
        if dry_run:
            match = await self._match()
            return _dry_run((await self._write("POST", "rollback", {**body, "dry_run": True}, match)).value)
        await self._steer("rollback", body, once, is_matched=True)
        return None

    async def _steer(self, verb: str, body: Json, once: str | None, *, is_matched: bool) -> None:
        """A verb that must not hit another state than the one it was meant for."""
        headers = await self._match() if is_matched else {}
        reply = await self._write("POST", verb, body, {**headers, **keyed(once, self._path)})
        if is_matched:
            self._show(reply)
        else:
            self._note(record_of(reply.value))

    async def _match(self) -> dict[str, str]:
        """The version that the task has now."""
        return {"If-Match": f'"v{(await self._transport.get(self._path, brief=True)).value["version"]}"'}

    async def fork(
        self, id: str, *, at: str | None = None, set: Mapping[str, Json] = {}, once: str | None = None
    ) -> Task:
        body = {"id": id, "at": at, "set": dict(set)}
        reply = await self._transport.send("POST", f"{self._path}/fork", body, headers=keyed(once, self._path))
        return RemoteTask(self._transport, self._holding, reply, created=True)

    async def signal(self, name: str, value: Json = None, *, once: str | None = None) -> None:
        await self._write("POST", "signal", {"name": name, "value": value}, keyed(once, self._path))

    # ── questions ───────────────────────────────────────────────────────────────────────────────

    async def answer(self, value: Json, *, by: str = "", key: str | None = None, once: str | None = None) -> None:
        """As in this process; it is signed with the name of the API key, whatever `by` says."""
        question = await self._question(None, key)
        if question.kind == "effect":
            said = value if isinstance(value, Mapping) else {"choice": value}
            body = {"choice": said.get("choice"), "value": said.get("value")}
            await self._decide(question, "settle", body, once)
        else:
            await self._decide(question, "answer", {"value": value}, once)

    async def approve(self, *, by: str, comment: str = "", edited: Json = None, once: str | None = None) -> None:
        """As in this process; it is signed with the name of the API key, whatever `by` says."""
        question = await self._question("approval", None)
        await self._decide(question, "approve", {"comment": comment, "edited": edited}, once)

    async def reject(self, *, by: str, comment: str = "", once: str | None = None) -> None:
        """As in this process; it is signed with the name of the API key, whatever `by` says."""
        await self._decide(await self._question("approval", None), "reject", {"comment": comment}, once)

    async def _decide(self, question: InboxItem, verb: str, body: Json, once: str | None) -> None:
        # The key belongs to the task, not to the question: said again later, it must not decide the next one.
        headers = keyed(once, self._path)
        await self._transport.send("POST", f"/v1/inbox/{question.id}/{verb}", body, headers=headers)

    async def callback_token(self) -> str:
        return str((await self._write("POST", "token", None)).value["token"])

    @property
    def _questions(self) -> Inbox:
        from perdure.client.inbox import RemoteInbox

        return RemoteInbox(self._transport)

    async def _question(self, kind: str | None, key: str | None) -> InboxItem:
        """The one open question of this kind, or of any that a person answers; if none is open, the last one."""
        kinds = {kind} if kind is not None else {"approval", "input", "effect", "credential"}
        asked = [one for one in await self._questions.of(self) if one.kind in kinds]
        asked = [one for one in asked if key is None or key in (one.path, one.id, (one.details or {}).get("key"))]
        found = [one for one in asked if one.answer is None]
        if not found and asked:  # the server says who was first
            return max(asked, key=lambda one: (one.asked_at, one.path))
        if not found:
            raise NotFound(
                "question of task", self.id, self._transport.url, do="`perdure where` says what it waits for"
            )
        if len(found) > 1:
            keys = ", ".join(one.path for one in found)
            raise InvalidInput(f"task {self.id!r} asks {len(found)} things", do=f"say which, by key: {keys}")
        return found[0]

    # ── history ─────────────────────────────────────────────────────────────────────────────────

    @property
    def frames(self) -> TaskFrames:
        from perdure.client.frames import RemoteFrames

        return RemoteFrames(self._transport, self._path)

    async def checkpoints(self) -> AsyncIterator[Checkpoint]:
        from perdure.client.past import RemoteCheckpoints

        door, after = RemoteCheckpoints(self._transport), 0
        while True:
            page = await door.page(self, after=after, limit=200)
            for info in page.items:
                try:
                    parts = await door.get(self, info.seq)
                except (NotFound, RecordDamaged):
                    continue
                held = {"data" if name == "state" else name: part for name, part in parts.items()}
                yield msgspec.convert(
                    {**plain(info), **held, "pending": held["pending"] or ()}, Checkpoint, strict=False
                )
            if page.cursor is None:
                return
            after = int(page.cursor)

    async def diff(self, a: str, b: str) -> Sequence[Change]:
        from perdure.client.past import RemoteCheckpoints

        return (await RemoteCheckpoints(self._transport).diff(self, a, b, limit=10_000)).changes

    async def invalidate_if(self, predicate: Callable[[Checkpoint], bool | Awaitable[bool]]) -> Sequence[str]:
        stale = []
        match = await self._match()
        async for checkpoint in self.checkpoints():
            verdict = predicate(checkpoint) if checkpoint.valid and checkpoint.seq else False
            if await verdict if inspect.isawaitable(verdict) else verdict:
                stale.append(checkpoint)
        if stale:
            numbers = {"numbers": [one.seq for one in stale]}
            self._show(await self._write("POST", "invalidate", numbers, match))
        return [one.id for one in stale]

    async def pin(self, checkpoint: str, *, pinned: bool = True) -> None:
        seq = seq_of(self.uid, str(checkpoint))
        if seq is None:
            raise NotFound("checkpoint", str(checkpoint), self._transport.url)
        await self._transport.send("PUT" if pinned else "DELETE", f"{self._path}/checkpoints/{seq}/pin")

    async def archive(self) -> None:
        self._note(record_of((await self._write("POST", "archive", None)).value))

    async def delete(self, *, force: bool = False) -> None:
        match = await self._match()
        await self._transport.send("DELETE", self._path, query={"force": force}, headers=match)

    async def _write(self, method: str, verb: str, body: Json, headers: Mapping[str, str] | None = None) -> Reply:
        fence = {"Perdure-Fence": self._fence} if self._fence else {}
        return await self._transport.send(method, f"{self._path}/{verb}", body, headers={**fence, **(headers or {})})


def _dry_run(value: Mapping[str, Any]) -> DryRun:
    """What the server rehearsed. Calls that the caller may not read are empty."""
    parts = ("undone", "kept", "uncertain")
    shown = {name: [{"call": "", **effect} for effect in value[name]] for name in parts}
    return msgspec.convert({**value, **shown}, DryRun)
