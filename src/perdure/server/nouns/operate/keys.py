"""API keys over HTTP: list, make, narrow, rotate, revoke. A key's text is in the answer that makes it, and no other."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from perdure._ground.clock import moment, to_ms
from perdure._tasks import Kept
from perdure.server.credentials import ApiKey, MadeKey
from perdure.server.desk import Desk
from perdure.server.http import Answer, Ask, HttpProblem, version_tag
from perdure.server.table import Nothing, Route

_LONGEST_OVERLAP = timedelta(days=7)


class KeyRecord(Struct, frozen=True):
    """A key without its secret."""

    id: str
    name: str
    scopes: tuple[str, ...]
    namespace: str
    made_at: datetime
    until: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None  # to the minute
    etag: str


class ShownKey(Struct, frozen=True):
    """A new key, with its text."""

    id: str
    name: str
    scopes: tuple[str, ...]
    namespace: str
    until: datetime | None
    key: str


class KeyList(Struct, frozen=True):
    """The keys of the caller's namespace, oldest first."""

    items: list[KeyRecord]


class KeyDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A key to be made. `scopes` are names of scopes, or viewer, agent, operator, admin."""

    name: str
    scopes: tuple[str, ...]
    until: datetime | None = None


class KeyChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Another name, or fewer scopes."""

    name: str | None = None
    scopes: tuple[str, ...] | None = None


class Rotation(Struct, frozen=True, forbid_unknown_fields=True):
    """For how many seconds the old secret stays good."""

    overlap: float = 24 * 3600.0


async def listing(ask: Ask[Nothing, None]) -> Answer:
    keys = ask.server.part(Desk).keys
    uses = await keys.last_uses()
    found = await keys.all(ask.caller.namespace)
    return Answer(KeyList([record_of(kept, uses.get(kept.key)) for kept in found]))


async def make(ask: Ask[Nothing, KeyDraft]) -> Answer:
    from perdure.server.credentials import scopes_of

    draft = ask.body
    _refuse_wider(ask, scopes_of(draft.scopes))
    until = to_ms(draft.until) if draft.until is not None else None
    made = await ask.server.part(Desk).keys.make(draft.name, draft.scopes, ask.caller.namespace, until, once=ask.once)
    return Answer(_shown(made), 201, etag=version_tag(1), is_secret=True)


async def get(ask: Ask[Nothing, None]) -> Answer:
    kept = await _get(ask)
    used = (await ask.server.part(Desk).keys.last_uses()).get(kept.key)
    return Answer(record_of(kept, used), etag=version_tag(kept.version))


async def change(ask: Ask[Nothing, KeyChange]) -> Answer:
    kept = await _get(ask)
    changed = await ask.server.part(Desk).keys.change(kept, name=ask.body.name, scopes=ask.body.scopes)
    used = (await ask.server.part(Desk).keys.last_uses()).get(kept.key)
    return Answer(record_of(changed, used), etag=version_tag(changed.version))


async def rotate(ask: Ask[Nothing, Rotation]) -> Answer:
    if not 0 <= ask.body.overlap <= _LONGEST_OVERLAP.total_seconds():
        raise HttpProblem(422, "invalid_input", "an overlap has 0 to 604800 seconds")
    kept = await _get(ask)
    _refuse_wider(ask, kept.value.scopes)
    made = await ask.server.part(Desk).keys.rotate(kept, timedelta(seconds=ask.body.overlap), once=ask.once)
    return Answer(_shown(made), is_secret=True)


async def revoke(ask: Ask[Nothing, None]) -> Answer:
    await ask.server.part(Desk).keys.revoke(await _get(ask))
    return Answer(status=204)


async def _get(ask: Ask[Nothing, KeyChange] | Ask[Nothing, Rotation] | Ask[Nothing, None]) -> Kept[ApiKey]:
    kept = await ask.server.part(Desk).keys.get(ask.parts["key"], ask.caller.namespace)
    if ask.match is not None and ask.match != kept.version:
        tag = version_tag(kept.version)
        raise HttpProblem(
            412, "stale_version", f"the key is at {tag}", do="look at it, and try again", headers={"ETag": tag}
        )
    return kept


def _refuse_wider(ask: Ask[Nothing, KeyDraft] | Ask[Nothing, Rotation], scopes: tuple[str, ...]) -> None:
    if wider := [scope for scope in scopes if scope not in ask.caller.scopes]:
        raise HttpProblem(
            403,
            "wider_than_yours",
            f"you cannot give the scope {wider[0]}, as you do not have it",
            do="leave it out, or use a key that has it",
            values={"missing": wider},
        )


def record_of(kept: Kept[ApiKey], used_at: int | None) -> KeyRecord:
    key = kept.value
    return KeyRecord(
        key.id,
        key.name,
        key.scopes,
        key.namespace,
        moment(key.made_at),
        _moment(key.until),
        _moment(key.revoked_at),
        _moment(used_at),
        version_tag(kept.version),
    )


def _shown(made: MadeKey) -> ShownKey:
    key = made.key
    return ShownKey(key.id, key.name, key.scopes, key.namespace, _moment(key.until), made.text)


def _moment(at: int | None) -> datetime | None:
    return None if at is None else moment(at)


ROUTES = (
    Route(
        method="GET",
        path="/v1/api-keys",
        handler=listing,
        does="The API keys of the namespace, without their secrets.",
        scopes=("keys:admin",),
        answer=KeyList,
    ),
    Route(
        method="POST",
        path="/v1/api-keys",
        handler=make,
        does="Make an API key with scopes that the caller has. Its text is shown this once.",
        scopes=("keys:admin",),
        body=KeyDraft,
        answer=ShownKey,
        status=201,
        statuses=(403, 422),
        once="must",
    ),
    Route(
        method="GET",
        path="/v1/api-keys/{key}",
        handler=get,
        does="One API key, without its secret.",
        scopes=("keys:admin",),
        answer=KeyRecord,
    ),
    Route(
        method="PATCH",
        path="/v1/api-keys/{key}",
        handler=change,
        does="Rename an API key, or take scopes from it.",
        scopes=("keys:admin",),
        body=KeyChange,
        answer=KeyRecord,
        statuses=(409, 412, 422, 428),
        once="may",
        match="must",
    ),
    Route(
        method="DELETE",
        path="/v1/api-keys/{key}",
        handler=revoke,
        does="Revoke an API key for good.",
        scopes=("keys:admin",),
        status=204,
        statuses=(409, 412, 428),
        once="may",
        match="must",
    ),
    Route(
        method="POST",
        path="/v1/api-keys/{key}/rotate",
        handler=rotate,
        does="Give an API key a new secret, shown this once. The old one stays good for the overlap.",
        scopes=("keys:admin",),
        body=Rotation,
        answer=ShownKey,
        statuses=(409, 422),
        once="may",
    ),
)
