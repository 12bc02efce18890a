"""`app.journal`, `app.checkpoints` and `app.effects` of a server elsewhere: what tasks have done, over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, get_args

import msgspec

from perdure._durable import (
    CallState,
    Choice,
    EffectRecord,
    Effects,
    Journal,
    JournalCall,
    JournalLine,
    Outline,
    UncertainEffect,
)
from perdure._ground.bridge import Nap
from perdure._model import CheckpointInfo, Diff, Page
from perdure._tasks import CheckpointPart, Checkpoints, Task, TaskCore
from perdure.client.inbox import RemoteInbox
from perdure.client.list_pages import some
from perdure.client.requests import address_of
from perdure.client.transport import Transport
from perdure.errors import InvalidInput, NotFound

Json = Any
T = TypeVar("T")
_LOOK_SECONDS = 0.25


class RemoteJournal(Journal):
    """What durable functions have done, behind a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def outline(self, task: str | Task, line: int | None = None) -> Outline:
        reply = await self._transport.get(f"{address_of(task)}/journal/outline", line=line)
        return msgspec.convert(reply.value, Outline)

    async def page(
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
        if type(limit) is not int or not 1 <= limit <= 1000:
            raise InvalidInput(f"limit is {limit!r}; it lies between 1 and 1,000")
        query = {"line": line, "after": after, "kind": kind, "state": state, "text": text or None}
        found, more = await some(self._transport, f"{address_of(task)}/journal", limit, query, begin="after")
        return Page([await self._call(item) for item in found], more)

    async def _call(self, item: Mapping[str, Any]) -> JournalCall:
        """The call on one line. What the server has cut is read from where the whole is."""
        cut = _first_cut(item)
        if cut is not None:
            whole = (await self._transport.get(cut)).value
            item = {name: whole[name] if name in ("call", "returned", "error") else item[name] for name in item}
        return _as(JournalCall, item)

    async def entry(self, task: str | Task, line: int | None, position: int) -> JournalCall:
        if line is None:
            line = (await self.outline(task)).line
        return _as(JournalCall, (await self._transport.get(f"{address_of(task)}/journal/{line}/{position}")).value)

    async def lines(self, task: str | Task, *, limit: int = 1000) -> Sequence[JournalLine]:
        reply = await self._transport.get(f"{address_of(task)}/journal/lines")
        return [_as(JournalLine, item) for item in reply.value["items"][-limit:]]

    async def tail(self, task: str | Task, line: int | None = None, after: int = 0) -> AsyncIterator[JournalCall]:
        """Each call when its last entry is committed, until the task ends."""
        while True:
            record = (await self._transport.get(address_of(task))).value
            page = await self.page(task, line, after=after)
            while True:
                for call in page.items:
                    if call.position:
                        yield call
                        after = max(after, call.position)
                if page.cursor is None:
                    break
                page = await self.page(task, line, after=int(page.cursor))
            if record["status"] in ("completed", "failed", "cancelled"):
                return
            await Nap(_LOOK_SECONDS)


class RemoteCheckpoints(Checkpoints):
    """The checkpoints of tasks behind a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def page(self, task: str | TaskCore, *, after: int = 0, limit: int = 100) -> Page[CheckpointInfo]:
        if type(limit) is not int or not 1 <= limit <= 1000:
            raise InvalidInput(f"limit is {limit!r}; it lies between 1 and 1000")
        found, more = await some(
            self._transport, f"{address_of(task)}/checkpoints", limit, {"after": after}, begin="after"
        )
        return Page([_as(CheckpointInfo, {"label": "", **item}) for item in found], more)

    async def get(
        self, task: str | TaskCore, seq: int, *, part: CheckpointPart | None = None, path: Sequence[str | int] = ()
    ) -> Json:
        if part is not None and part not in get_args(CheckpointPart):
            raise InvalidInput(
                f"{part!r} is not a part of a checkpoint", do=f"choose from {', '.join(get_args(CheckpointPart))}"
            )
        if path and part is None:
            raise InvalidInput("a path leads into one part of a checkpoint", do='say which: part="state"')
        query = {"part": part, "path": json.dumps(list(path))}
        reply = await self._transport.send("GET", f"{address_of(task)}/checkpoints/{seq}", query=query)
        return reply.value["value"]

    async def diff(self, task: str | TaskCore, a: str | int, b: str | int = "now", *, limit: int = 500) -> Diff:
        if type(limit) is not int or not 1 <= limit <= 100_000:
            raise InvalidInput(f"limit is {limit!r}; it lies between 1 and 100,000")
        query = {"from": _named(a), "to": _named(b), "limit": min(limit, 10_000)}
        return _as(Diff, (await self._transport.get(f"{address_of(task)}/diff", **query)).value)


def _named(checkpoint: str | int) -> str:
    """A checkpoint as the server names it: an id `uid.12` is `~uid:12`."""
    uid, dot, number = str(checkpoint).rpartition(".")
    return f"~{uid}:{number}" if dot else str(checkpoint)


class RemoteEffects(Effects):
    """What tasks behind a server have done to the world, and settling what is uncertain."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._questions = RemoteInbox(transport)

    async def list(self, *, limit: int = 1000) -> Sequence[UncertainEffect]:
        found, _ = await some(self._transport, "/v1/inbox", limit, {"kind": "effect", "snoozed": True})
        return [_uncertain(item) for item in found]

    async def of(self, task_id: str | Task) -> Sequence[EffectRecord]:
        reply = await self._transport.get(f"{address_of(task_id)}/effects")
        hidden = {"call": "", "error": "", "traceback": ""}
        return [_as(EffectRecord, {**hidden, **item}) for item in reply.value["items"]]

    async def settle(
        self, task_id: str, choice: Choice, *, value: Json = None, key: str | None = None, by: str = ""
    ) -> None:
        found, _ = await some(self._transport, "/v1/inbox", 1000, {"kind": "effect", "task": task_id, "snoozed": True})
        found = [item for item in found if key is None or _of_effect(item).get("key") == key]
        if not found:
            raise NotFound("uncertain effect of task", task_id, self._transport.url, do="`perdure effects` lists them")
        if len(found) > 1:
            keys = ", ".join(str(_of_effect(item).get("key")) for item in found)
            raise InvalidInput(f"{len(found)} effects of task {task_id!r} are uncertain", do=f"say which: key= {keys}")
        await self._questions.settle(found[0]["id"], choice, value=value, by=by)


def _of_effect(item: Mapping[str, Any]) -> Mapping[str, Any]:
    effect = item.get("effect")
    return effect if isinstance(effect, Mapping) else {}


def _uncertain(item: Mapping[str, Any]) -> UncertainEffect:
    effect, details = _of_effect(item), item.get("details") or {}
    return UncertainEffect(
        task_id=item["task"],
        name=str(effect.get("name") or ""),
        call=str(effect.get("call") or item.get("text") or ""),
        key=str(effect.get("key") or ""),
        why=str(effect.get("why") or ""),
        since=msgspec.convert(item["asked_at"], datetime),
        traceback=str(details.get("traceback") or ""),
        is_waited_for=bool(details.get("waits", True)),
    )


def _first_cut(value: Any) -> str | None:
    """The link to the whole of the first thing in this value that was cut."""
    if isinstance(value, Mapping):
        cut = value.get("$cut")
        if isinstance(cut, Mapping) and isinstance(cut.get("at"), str):
            return str(cut["at"])
        return next(filter(None, map(_first_cut, value.values())), None)
    return next(filter(None, map(_first_cut, value)), None) if isinstance(value, list) else None


def _as(kind: type[T], value: Any) -> T:
    return msgspec.convert(value, kind, strict=False)
