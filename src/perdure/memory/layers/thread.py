"""The layer of a conversation: short facts to remember for a while, each with its time to live."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from perdure._ground.clock import moment, to_ms
from perdure._ground.durations import Duration, require_timedelta
from perdure.errors import Conflict, InvalidData, InvalidInput, RecordDamaged
from perdure.memory.layer import Block, Budget, LayerContext, Scope, Slot, Turn
from perdure.memory.prompt import Tool, clean, takes
from perdure.memory.recorded import recorded
from perdure.memory.task_state_events import plain_values

_NAME = "entries"
_TRIES = 100
MOST_ENTRIES = 1_000


@dataclass(frozen=True, slots=True)
class Remembrance:
    """One fact, and when it expires."""

    key: str
    value: Any
    kind: str
    expires_at: datetime


class ThreadMemory:
    """A layer: facts that a model remembers in this thread for a while.

    `types` gives the type of each kind's values (a class, dataclass, Struct…); without it, any JSON value.
    """

    scope: Scope = "thread"

    def __init__(
        self,
        thread: str | None = None,
        *,
        ttl: Duration = "1d",
        types: Mapping[str, Any] | None = None,
        id: str = "thread",
    ) -> None:
        self.id: str = id
        self.owner: str | None = thread
        self.ttl: timedelta = require_timedelta("ttl", ttl, is_positive=True)
        self.slot: int = Slot.THREAD
        self.budget: Budget = Budget(0, 400)
        self._types = dict(types or {})
        self._context: LayerContext | None = None
        self._entries: dict[str, dict[str, Any]] = {}
        self._version = 0
        self._turn = asyncio.Lock()

    # ── hooks ───────────────────────────────────────────────────────────────────────────────────

    async def init(self, context: LayerContext) -> None:
        self._context = context
        await self._load()

    async def recall(self, budget: int) -> Block | None:
        """The entries that have not expired, newest first, as many as fit."""
        assert self._context is not None
        lines: list[str] = []
        for entry in reversed(self.entries):
            text = msgspec.json.encode(clean(entry.value, entry.key)).decode().replace("<", "\\u003c")
            lines.append(f"{entry.key.replace('<', '‹')}: {text}")
            if self._context.count(_wrapped(lines)) > budget:
                lines.pop()
                break
        return Block("developer", _wrapped(lines)) if lines else None

    async def store(self, turn: Turn) -> None:
        """Forget what has expired."""
        if len(self._living(self._entries)) < len(self._entries):
            await self._change(lambda entries: entries)

    # ── remembering ─────────────────────────────────────────────────────────────────────────────

    @property
    def entries(self) -> Sequence[Remembrance]:
        """The remembered entries that have not expired, oldest first."""
        living = self._living(self._entries)
        return [Remembrance(key, one["value"], one["kind"], moment(one["until"])) for key, one in living.items()]

    def get(self, key: str) -> Any | None:
        return next((entry.value for entry in self.entries if entry.key == key), None)

    @recorded()
    async def remember(self, key: str, value: Any, *, kind: str = "", ttl: Duration | None = None) -> None:
        """Remember a value for a while; stored when this returns.

        Raises:
            InvalidData: the value does not have the type of its kind; nothing changed.
        """
        assert self._context is not None
        plain = plain_values({key: value})[key]
        if kind in self._types:
            try:
                msgspec.convert(plain, self._types[kind])
            except (msgspec.ValidationError, TypeError) as error:
                raise InvalidData(key, str(error).splitlines()[0]) from None
        elif kind and self._types:
            raise InvalidData(key, f"there is no kind {kind!r}")
        until = to_ms(self._context.now() + (require_timedelta("ttl", ttl) or self.ttl))
        entry = {"value": plain, "kind": kind, "until": until}
        await self._change(lambda entries: {**_without(entries, key), key: entry})

    @recorded()
    async def forget(self, key: str) -> None:
        await self._change(lambda entries: _without(entries, key))

    def tools(self) -> list[Tool]:
        key = {"type": "string", "description": "A short name for it."}
        value = {"description": "The fact to remember."}
        about = "Remember a fact of this conversation for a while."
        return [Tool("remember", about, takes(key=key, value=value), self._remember_by_model)]

    async def _remember_by_model(self, key: str, value: Any) -> dict[str, Any]:
        await self.remember(key, value)
        return {"remembered": len(self.entries)}

    # ── keeping ─────────────────────────────────────────────────────────────────────────────────

    def _living(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        assert self._context is not None
        now = to_ms(self._context.now())
        return {key: one for key, one in entries.items() if one["until"] > now}

    async def _load(self) -> None:
        assert self._context is not None
        entries, self._version = await self._context.storage.load_good(_NAME, _from_stored, self._context.note)
        self._entries = entries or {}

    async def _change(self, change: Any) -> None:
        if self._context is None:
            raise InvalidInput("this layer is not in use", do="async with app.memory(task_id, [layer]):")
        async with self._turn:
            for _ in range(_TRIES):
                changed = self._living(change(self._entries))
                entries = dict(list(changed.items())[-MOST_ENTRIES:])
                last = max((one["until"] for one in entries.values()), default=to_ms(self._context.now()))
                version = await self._context.storage.swap(_NAME, entries, self._version, expires_at=last)
                if version is not None:
                    self._entries, self._version = entries, version or 1
                    return
                await self._load()
        raise Conflict("gave up saving the memory of this thread: other processes kept changing it")


async def _from_stored(value: Any) -> dict[str, dict[str, Any]]:
    try:
        return {
            key: {"value": one["value"], "kind": one["kind"], "until": int(one["until"])} for key, one in value.items()
        }
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise RecordDamaged("the stored memory of a thread", f"{type(error).__name__}: {error}") from None


def _without(entries: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: one for name, one in entries.items() if name != key}


def _wrapped(lines: Sequence[str]) -> str:
    return "<thread_memory>\n" + "\n".join(lines) + "\n</thread_memory>"
