"""`PerdureHistory`: the messages of a session in a perdure store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_framework import HistoryProvider, Message

import perdure
from perdure._ground.encoding.key_parts import quoted
from perdure.errors import InvalidInput
from perdure.integrations.item_list import ItemList

if TYPE_CHECKING:
    from perdure import Perdure


class PerdureHistory(HistoryProvider):
    """A context provider that keeps each session's messages. They are on disk when `save_messages` returns.

    Inside a durable function what was read is recorded, and what is saved is added once.
    """

    def __init__(self, app: Perdure, source_id: str = "perdure", **options: Any) -> None:
        super().__init__(source_id, **options)
        self._storage = app.storage

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        items = self._items(session_id)
        told = await perdure.call(items.get, name="history.get")
        return [Message.from_dict(one) for one in told]

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        items, given = self._items(session_id), [message.to_dict() for message in messages]
        if perdure.current() is None:
            return await items.add(given)

        async def save() -> None:
            await items.add(given)

        return await perdure.call(save, name="history.save", kind="effect", keyed=True)

    def _items(self, session_id: str | None) -> ItemList:
        if not session_id:
            raise InvalidInput("the session has no id", do="pass the agent a session, made with a session_id")
        return ItemList(self._storage, f"agent-framework/{quoted(self.source_id)}/{quoted(session_id)}/")
