"""`PerdureSession`: the items of a conversation in a perdure store."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from agents.items import TResponseInputItem
from agents.memory import Session, SessionSettings

import perdure
from perdure.errors import Conflict, NoTask
from perdure.types import Delete, Put

if TYPE_CHECKING:
    from perdure import Perdure

R = TypeVar("R")
_MOST_CHANGES = 500


class PerdureSession:
    """A session for `Runner.run(…, session=…)`. Items are on disk when a call returns; several processes may add."""

    def __init__(self, app: Perdure, session_id: str, *, session_settings: SessionSettings | None = None) -> None:
        self.session_id, self.session_settings = session_id, session_settings
        quoted = session_id.replace("%", "%25").replace("/", "%2F")
        self._storage, self._prefix = app.storage, f"openai-session/{quoted}/"

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        if limit is not None and limit <= 0:
            return []
        found = await self._storage.scan(self._prefix, limit=limit, reverse=True)
        return [row.value["item"] for row in reversed(found)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add all of the items, or none. Repeated under the same key of an effect, it adds nothing."""
        if not items:
            return
        key = _key()
        while True:
            newest = await self._storage.scan(self._prefix, limit=1, reverse=True)
            if newest and newest[0].value["by"] == key:
                return
            first = int(newest[0].key.rsplit("/", 1)[1]) + 1 if newest else 0
            rows = [
                Put(f"{self._prefix}{number:012}", {"item": dict(item), "by": key}, 0)
                for number, item in enumerate(items, first)
            ]
            try:
                await self._storage.write(rows)
            except Conflict:  # another process added first
                continue
            return

    async def pop_item(self) -> TResponseInputItem | None:
        while newest := await self._storage.scan(self._prefix, limit=1, reverse=True):
            try:
                await self._storage.delete(newest[0].key, seen=newest[0].version)
            except Conflict:
                continue
            item: TResponseInputItem = newest[0].value["item"]
            return item
        return None

    async def clear_session(self) -> None:
        keys = await self._storage.list(self._prefix)
        for start in range(0, len(keys), _MOST_CHANGES):
            await self._storage.write([Delete(key) for key in keys[start : start + _MOST_CHANGES]])


def _key() -> str:
    try:
        return perdure.idempotency_key()
    except NoTask:
        return secrets.token_hex(12)


class RecordedSession:
    """A session inside a durable function: what it answered is recorded, and what it was given is added once."""

    def __init__(self, inner: Session) -> None:
        self._inner = inner
        self.session_id, self.session_settings = inner.session_id, inner.session_settings

    @classmethod
    def of(cls, session: Session | None) -> RecordedSession | None:
        return None if session is None else cls(session)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return await self._call(self._inner.get_items, "get_items", "step", limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._call(self._inner.add_items, "add_items", "effect", items)

    async def pop_item(self) -> TResponseInputItem | None:
        return await self._call(self._inner.pop_item, "pop_item", "effect")

    async def clear_session(self) -> None:
        await self._call(self._inner.clear_session, "clear_session", "effect")

    async def _call(self, verb: Callable[..., Awaitable[R]], name: str, kind: str, *args: Any) -> R:
        # Ours finds a repeated `add_items` by its key; another kind of session would add twice, so a person is asked.
        options = {"keyed": True} if kind == "effect" and isinstance(self._inner, PerdureSession) else {}

        async def carry_out(*args: Any) -> R:
            return await verb(*args)

        answer: R = await perdure.call(carry_out, *args, name=f"session.{name}", kind=kind, **options)  # type: ignore[arg-type]
        return answer
