"""`PerdureSession`: the items of a conversation in a perdure store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from agents.items import TResponseInputItem
from agents.memory import Session, SessionSettings

import perdure
from perdure._ground.encoding.key_parts import quoted
from perdure.integrations.item_list import ItemList

if TYPE_CHECKING:
    from perdure import Perdure

R = TypeVar("R")


class PerdureSession:
    """A session for `Runner.run(…, session=…)`. Items are on disk when a call returns; several processes may add."""

    def __init__(self, app: Perdure, session_id: str, *, session_settings: SessionSettings | None = None) -> None:
        self.session_id, self.session_settings = session_id, session_settings
        self._items = ItemList(app.storage, f"openai-session/{quoted(session_id)}/")

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return await self._items.get(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add all of the items, or none. Repeated under the same key of an effect, it adds nothing."""
        await self._items.add([dict(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        item: TResponseInputItem | None = await self._items.pop()
        return item

    async def clear_session(self) -> None:
        await self._items.clear()


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
