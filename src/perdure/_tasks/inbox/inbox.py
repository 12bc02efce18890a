"""`app.inbox`: everything of a namespace that waits for a person, and deciding it.

Approvals and typed questions of durable functions, tasks without one that are paused for a person, effects of unknown
outcome, and credentials that are needed. Reading is in pages.py, deciding in decisions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from perdure._ground.ids import check_id
from perdure._model import INBOX_KINDS, CallbackToken, InboxItem, InboxKind, Page
from perdure._store import Store, TaskRow
from perdure._tasks.core import StoreOwner, TaskCore
from perdure._tasks.inbox import decisions, pages
from perdure._tasks.once import once_of
from perdure._tasks.pauses import callbacks
from perdure._tasks.task_row import current_row, find_row
from perdure.errors import NotFound

Json = Any


class Inbox(StoreOwner):
    """The pauses that wait for people in one namespace of one store."""

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
        """The open items, soonest to expire first, then oldest first; of some kinds, or of one task by its id.

        Raises:
            InvalidInput: a kind, the limit or the cursor is not one.
            NotFound: there is no such task.
        """
        only = None if task is None else (await self._row(task)).uid
        return await pages.read_page(self._store, INBOX_KINDS if kinds is None else kinds, only, limit, cursor)

    async def count(self) -> Mapping[InboxKind, int]:
        """The number of open items of each kind."""
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
        """Approve. The first decision stands, and the task continues.

        Raises:
            NotFound: the pause does not exist.
            InvalidInput: it is not an approval, or `edited` is not allowed; nothing was written.
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

    async def token(self, pause_id: str, *, signed: bool = False) -> CallbackToken:
        """One more token for what a pause waits for from another system. With `signed`, it is good only for answers
        that are signed with its secret, as Standard Webhooks has it.

        Raises:
            NotFound: there is no such pause.
            InvalidInput: it does not wait for a callback; nothing was written.
            AlreadyDecided: it is over.
        """
        return await decisions.make_callback_token(self._store, pause_id, signed=signed)

    async def deliver(
        self, token: str, value: Json = None, *, by: str = "", is_signed: Callable[[str], bool] | None = None
    ) -> bool:
        """Bring the answer of another system, as `app.tasks.deliver` does. `is_signed` says whether the answer is
        signed with a secret; it is asked for tokens that were made with one.

        Raises:
            NotFound: there is no such token.
            NotAllowed: the token wants a signature, and the answer has none that is good.
            InvalidInput: the value does not fit; nothing was written, and the token is still good.
        """
        return await callbacks.deliver(self._store, token, value, by=by, is_signed=is_signed)

    async def of(self, task: str | TaskCore) -> Sequence[InboxItem]:
        """Every pause of a task, open and ended, also those that end by themselves; in the order they began.

        Raises:
            NotFound: there is no such task.
        """
        return await decisions.all_of(self._store, await self._row(task))

    async def _row(self, task: str | TaskCore) -> TaskRow:
        if isinstance(task, TaskCore):
            return await current_row(self._store, task.id, task.uid)
        row = await find_row(self._store, check_id(task))
        if row is None:
            raise NotFound("task", task, self._store.place)
        return row
