"""`app.inbox`: everything of a namespace that waits for a person, and deciding it.

Approvals and typed questions of durable functions, tasks without one that are paused for a person, effects of unknown
outcome, and credentials that are needed. Reading is in pages.py, deciding in decisions.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from perdure._ground.ids import check_id
from perdure._model import INBOX_KINDS, InboxItem, InboxKind, Page
from perdure._store import Store, TaskRow
from perdure._tasks.core import StoreOwner
from perdure._tasks.inbox import decisions, pages
from perdure._tasks.once import once_of
from perdure._tasks.task_row import find_row
from perdure.errors import NotFound

Json = Any


class Inbox(StoreOwner):
    """What waits for people in one namespace of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self,
        *,
        kinds: Collection[InboxKind] | None = None,
        task: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[InboxItem]:
        """What is open, the soonest to expire first, then the oldest; of some kinds, or of one task by its id.

        Raises:
            InvalidInput: a kind, the limit or the cursor is not one.
            NotFound: there is no such task.
        """
        only = None if task is None else (await self._row(task)).uid
        return await pages.read_page(self._store, INBOX_KINDS if kinds is None else kinds, only, limit, cursor)

    async def count(self) -> Mapping[InboxKind, int]:
        """How many of each kind are open."""
        return await pages.count(self._store)

    async def get(self, pause_id: str) -> InboxItem:
        """One pause, open or decided; then with who, when and what.

        Raises:
            NotFound: there is none with this id.
        """
        return (await decisions.find(self._store, pause_id)).item

    async def approve(
        self, pause_id: str, *, by: str = "", comment: str = "", edited: Json = None, once: str | None = None
    ) -> InboxItem:
        """Say yes. The first decision stands, and the task goes on.

        Raises:
            NotFound: there is no such pause.
            InvalidInput: it is not an approval, or what was `edited` may not be; nothing was written.
            AlreadyDecided: another decision was first.
            Conflict: the task has ended.
        """
        said = {"decision": "approve", "comment": comment, "edited": edited}
        return await self._decide(pause_id, said, ("approval",), by, comment, once)

    async def reject(self, pause_id: str, *, by: str = "", comment: str = "", once: str | None = None) -> InboxItem:
        """Say no, as `approve` says yes."""
        return await self._decide(
            pause_id, {"decision": "reject", "comment": comment}, ("approval",), by, comment, once
        )

    async def answer(
        self, pause_id: str, value: Json = None, *, by: str = "", comment: str = "", once: str | None = None
    ) -> InboxItem:
        """Answer a question. A task without a durable function gets the answer in its state, under `answer`.

        Raises:
            NotFound: there is no such pause.
            InvalidInput: it is not a question, or the value does not fit; nothing was written.
            AlreadyDecided: another answer was first.
            Conflict: the task has ended.
        """
        return await self._decide(pause_id, value, ("input", "credential"), by, comment, once)

    async def settle(
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
        return await self._decide(pause_id, {"choice": choice, "value": value}, ("effect",), by, comment, once)

    async def _decide(
        self, pause_id: str, value: Json, kinds: Sequence[str], by: str, comment: str, once: str | None
    ) -> InboxItem:
        store = self._store
        request = once_of(once, "decide", pause_id, value, comment)
        user = by or store.presence.acting_user
        return await decisions.decide(store, pause_id, value, kinds=kinds, by=user, comment=comment, once=request)

    async def of(self, task: str) -> Sequence[InboxItem]:
        """Every pause of a task, open and ended, also those that end by themselves; in the order they began.

        Raises:
            NotFound: there is no such task.
        """
        return await decisions.all_of(self._store, await self._row(task))

    async def _row(self, task: str) -> TaskRow:
        row = await find_row(self._store, check_id(task))
        if row is None:
            raise NotFound("task", task, self._store.place)
        return row
