"""Webhooks over HTTP: make, change, rotate, test, enable, remove; and look at what was sent."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from perdure._ground.reach import Sender
from perdure._tasks import Delivery, DeliveryState, MadeWebhook, Webhook, Webhooks
from perdure.server.http import (
    Answer,
    Ask,
    HttpProblem,
    Scope,
    listed,
    page_limit,
    read_cursor,
    sign_cursor,
    version_tag,
)
from perdure.server.shapes.tasks import Listed
from perdure.server.table import Nothing, Route


class HookDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A webhook to be made. `data` needs the scope data:read."""

    url: str
    events: tuple[str, ...] = ("*",)
    reasons: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    data: bool = False
    description: str = ""


class HookChange(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be changed; the rest stays."""

    url: str | UnsetType = UNSET
    events: tuple[str, ...] | UnsetType = UNSET
    reasons: tuple[str, ...] | UnsetType = UNSET
    functions: tuple[str, ...] | UnsetType = UNSET
    agents: tuple[str, ...] | UnsetType = UNSET
    tags: dict[str, str] | UnsetType = UNSET
    data: bool | UnsetType = UNSET
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class HookRotation(Struct, frozen=True, forbid_unknown_fields=True):
    """For how many seconds messages are signed with the old secret too."""

    overlap: float = 24 * 3600.0


class DeliveryQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which messages of a webhook."""

    state: DeliveryState | None = None
    limit: int = 50
    cursor: str | None = None


async def listing(ask: Ask[Nothing, None]) -> Answer:
    return listed(ask, await _hooks(ask).list())


async def make(ask: Ask[Nothing, HookDraft]) -> Answer:
    _refuse_data(ask, ask.body.data)
    draft = {name: getattr(ask.body, name) for name in HookDraft.__struct_fields__}
    made = await _hooks(ask).make(draft.pop("url"), **draft, once=ask.once)
    return Answer(made, 201, etag=version_tag(made.webhook.version), is_secret=True)


async def get(ask: Ask[Nothing, None]) -> Answer:
    return _one(await _hooks(ask).get(ask.parts["hook"]))


async def change(ask: Ask[Nothing, HookChange]) -> Answer:
    hook = await _matched(ask)
    changes = {name: getattr(ask.body, name) for name in HookChange.__struct_fields__}
    _refuse_data(ask, changes["data"] is True or (hook.data and changes["url"] is not UNSET))
    return _one(await _hooks(ask).change(hook.id, version=ask.match, **changes))


async def remove(ask: Ask[Nothing, None]) -> Answer:
    hook = await _matched(ask)
    await _hooks(ask).remove(hook.id, version=ask.match)
    return Answer(status=204)


async def rotate(ask: Ask[Nothing, HookRotation]) -> Answer:
    made = await _hooks(ask).rotate(ask.parts["hook"], f"{ask.body.overlap:f}s", once=ask.once)
    return Answer(made, etag=version_tag(made.webhook.version), is_secret=True)


async def test(ask: Ask[Nothing, None]) -> Answer:
    return Answer(await _hooks(ask).test(ask.parts["hook"], once=ask.once), 202)


async def enable(ask: Ask[Nothing, None]) -> Answer:
    return _one(await _hooks(ask).enable(ask.parts["hook"]))


async def deliveries(ask: Ask[DeliveryQuery, None]) -> Answer:
    query, hook = ask.query, ask.parts["hook"]
    bound = (hook, query.state)
    before = await read_cursor(ask, "deliveries", bound, query.cursor)
    limit = page_limit(ask, query.limit)
    found = await _hooks(ask).deliveries(hook, state=query.state, before=before, limit=limit)
    last = found[-1].id if len(found) == limit else None
    return listed(ask, [_seen(ask, one) for one in found], await sign_cursor(ask, "deliveries", bound, last))


async def delivery(ask: Ask[Nothing, None]) -> Answer:
    return Answer(_seen(ask, await _hooks(ask).delivery(ask.parts["hook"], ask.parts["delivery"])))


async def replay(ask: Ask[Nothing, None]) -> Answer:
    return Answer(_seen(ask, await _hooks(ask).replay(ask.parts["hook"], ask.parts["delivery"], once=ask.once)), 202)


def _hooks(ask: Ask[Any, Any]) -> Webhooks:
    return Webhooks(ask.app.tasks, lambda: Sender(ask.server.settings.hook_rules))


def _one(hook: Webhook) -> Answer:
    return Answer(hook, etag=version_tag(hook.version))


async def _matched(ask: Ask[Any, Any]) -> Webhook:
    hook = await _hooks(ask).get(ask.parts["hook"])
    if ask.match is not None and ask.match != hook.version:
        tag = version_tag(hook.version)
        raise HttpProblem(
            412, "stale_version", f"the webhook is at {tag}", do="look at it, and try again", headers={"ETag": tag}
        )
    return hook


def _refuse_data(ask: Ask[Any, Any], wants_data: bool) -> None:
    """A webhook is not a way around the scope that reads what agents wrote."""
    if wants_data and not ask.caller.reads_data:
        raise HttpProblem(
            403,
            "not_allowed",
            "messages with data need the scope data:read",
            do="leave out `data`, or use a key that has it",
            values={"missing": ["data:read"]},
        )


def _seen(ask: Ask[Any, Any], one: Delivery) -> Delivery:
    """The message without its body, which may hold what agents wrote, for a caller who may not read that."""
    from msgspec.structs import replace

    return one if ask.caller.reads_data else replace(one, body="")


_ADMIN: tuple[Scope, ...] = ("webhooks:admin",)
ROUTES = (
    Route(
        method="GET",
        path="/v1/webhooks",
        handler=listing,
        does="The webhooks of the namespace, without their secrets.",
        scopes=_ADMIN,
        answer=Listed[Webhook],
    ),
    Route(
        method="POST",
        path="/v1/webhooks",
        handler=make,
        does="Have events sent to an address. The secret that signs them is shown this once.",
        scopes=_ADMIN,
        body=HookDraft,
        answer=MadeWebhook,
        status=201,
        statuses=(403, 422),
        once="must",
    ),
    Route(
        method="GET",
        path="/v1/webhooks/{hook}",
        handler=get,
        does="One webhook: what it is sent, whether it is enabled, since when it fails.",
        scopes=_ADMIN,
        answer=Webhook,
    ),
    Route(
        method="PATCH",
        path="/v1/webhooks/{hook}",
        handler=change,
        does="Change a webhook. What is not given stays.",
        scopes=_ADMIN,
        body=HookChange,
        answer=Webhook,
        statuses=(403, 409, 412, 422, 428),
        once="may",
        match="must",
    ),
    Route(
        method="DELETE",
        path="/v1/webhooks/{hook}",
        handler=remove,
        does="Remove a webhook and its messages.",
        scopes=_ADMIN,
        status=204,
        statuses=(409, 412, 428),
        once="may",
        match="must",
    ),
    Route(
        method="POST",
        path="/v1/webhooks/{hook}/rotate",
        handler=rotate,
        does="Give a webhook a new secret, shown this once. For the overlap messages carry a signature of each.",
        scopes=_ADMIN,
        body=HookRotation,
        answer=MadeWebhook,
        statuses=(422,),
        once="may",
    ),
    Route(
        method="POST",
        path="/v1/webhooks/{hook}/test",
        handler=test,
        does="Queue a ping.",
        scopes=_ADMIN,
        answer=Delivery,
        status=202,
        statuses=(409,),
        once="may",
    ),
    Route(
        method="POST",
        path="/v1/webhooks/{hook}/enable",
        handler=enable,
        does="Send again to a webhook that was disabled.",
        scopes=_ADMIN,
        answer=Webhook,
        once="may",
    ),
    Route(
        method="GET",
        path="/v1/webhooks/{hook}/deliveries",
        handler=deliveries,
        does="The messages of a webhook, the newest first, and what became of each.",
        scopes=_ADMIN,
        query=DeliveryQuery,
        answer=Listed[Delivery],
    ),
    Route(
        method="GET",
        path="/v1/webhooks/{hook}/deliveries/{delivery}",
        handler=delivery,
        does="One message, and what the receiver answered.",
        scopes=_ADMIN,
        answer=Delivery,
    ),
    Route(
        method="POST",
        path="/v1/webhooks/{hook}/deliveries/{delivery}/replay",
        handler=replay,
        does="Queue the same body once more, under a new id.",
        scopes=_ADMIN,
        answer=Delivery,
        status=202,
        statuses=(409,),
        once="may",
    ),
)
