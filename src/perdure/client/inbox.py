"""`app.inbox` of a server elsewhere: the same questions, decisions and errors, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from perdure._model import CallbackToken, InboxItem, InboxKind, Page
from perdure._tasks import Inbox, TaskCore, is_pause_id
from perdure.client.requests import keyed, path_of
from perdure.client.transport import Transport
from perdure.errors import InvalidInput, NotFound

Json = Any


class RemoteInbox(Inbox):
    """What waits for people in one namespace behind a server. Decisions are signed with the name of the key."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def page(
        self,
        *,
        kinds: Collection[InboxKind] | None = None,
        task: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[InboxItem]:
        query = {"kind": list(kinds or ()), "task": task, "limit": limit, "cursor": cursor, "snoozed": True}
        found = (await self._transport.get("/v1/inbox", **query)).value
        return Page([item_of(item) for item in found["items"]], found["next"], found["approximate"])

    async def count(self) -> Mapping[InboxKind, int]:
        counts: Mapping[InboxKind, int] = (await self._transport.get("/v1/counts", parts="inbox")).value["inbox"]
        return counts

    async def get(self, pause_id: str) -> InboxItem:
        return item_of((await self._transport.get(self._address(pause_id))).value)

    async def approve(
        self, pause_id: str, *, by: str = "", comment: str = "", edited: Json = None, once: str | None = None
    ) -> InboxItem:
        return await self._say(pause_id, "approve", {"comment": comment, "edited": edited}, by, once)

    async def reject(self, pause_id: str, *, by: str = "", comment: str = "", once: str | None = None) -> InboxItem:
        return await self._say(pause_id, "reject", {"comment": comment}, by, once)

    async def answer(
        self, pause_id: str, value: Json = None, *, by: str = "", comment: str = "", once: str | None = None
    ) -> InboxItem:
        return await self._say(pause_id, "answer", {"value": value, "comment": comment}, by, once)

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
        body = {"choice": choice, "value": value, "comment": comment}
        return await self._say(pause_id, "settle", body, by, once)

    async def token(self, pause_id: str, *, signed: bool = False) -> CallbackToken:
        item = await self.get(pause_id)
        path = f"/v1/tasks/~{item.uid}/pauses/{item.id}/token"
        made = (await self._transport.send("POST", path, {"signed": signed})).value
        return CallbackToken(token=made["token"], secret=made["secret"])

    async def deliver(
        self, token: str, value: Json = None, *, by: str = "", is_signed: Callable[[str], bool] | None = None
    ) -> bool:
        if is_signed is not None:
            raise InvalidInput("a server checks signatures itself", do="send the signed request to the server")
        reply = await self._transport.send("POST", f"/v1/callbacks/{quote(token, safe='')}", value, is_bodied=True)
        return bool(reply.value["counted"])

    async def of(self, task: str | TaskCore) -> Sequence[InboxItem]:
        path = f"/v1/tasks/~{task.uid}" if isinstance(task, TaskCore) else path_of(task)
        return [item_of(item) for item in (await self._transport.get(f"{path}/pauses")).value["items"]]

    async def _say(self, pause_id: str, verb: str, body: dict[str, Any], by: str, once: str | None) -> InboxItem:
        if by:
            raise InvalidInput("through a server a decision is signed with the name of the key", do="leave out by=")
        address = self._address(pause_id)
        reply = await self._transport.send("POST", f"{address}/{verb}", body, headers=keyed(once, address))
        return item_of(reply.value)

    def _address(self, pause_id: str) -> str:
        if not is_pause_id(pause_id):
            raise NotFound(
                "question", str(pause_id)[:80], self._transport.url, do="`perdure inbox` lists the open ones"
            )
        return f"/v1/inbox/{pause_id}"


def item_of(value: Mapping[str, Any]) -> InboxItem:
    """The item that a server told of. What the caller may not read is empty in it."""
    context = value.get("context") or {}
    known = {name: value[name] for name in InboxItem.__struct_fields__ if name in value}
    where = {"task_id": value["task"], "function": context.get("function", ""), "stack": context.get("calls", ())}
    return msgspec.convert({"text": "", **known, **where}, InboxItem, strict=False)
