"""Sessions of browsers: one-time codes become cookies; who am I; leave."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from perdure._ground.clock import moment
from perdure.server.access import cookie_name, cookie_of
from perdure.server.desk import Desk
from perdure.server.http import Answer, Ask, HttpProblem
from perdure.server.table import Nothing, Route

_WEEK = 7 * 24 * 3600  # seconds; the server ends it earlier


class Code(Struct, frozen=True):
    """The code of a link, from its fragment."""

    code: str


class Whither(Struct, frozen=True):
    """Another namespace."""

    namespace: str


class Me(Struct, frozen=True):
    """Who asks, and what they may do."""

    name: str
    how: str
    namespace: str
    scopes: tuple[str, ...]
    until: datetime | None = None
    may_change_namespace: bool = False


async def begin(ask: Ask[Nothing, Code]) -> Answer:
    desk = ask.server.part(Desk)
    if (old := cookie_of(ask.headers, desk.place.port)) is not None:
        await desk.sessions.end(old)  # a cookie that was planted before does not become this person's
    begun = await desk.sessions.begin(ask.body.code, ask.caller.address)
    if begun is None:
        raise desk.identities.refusal(ask.caller.address, "link_used", "this link was used before, or is too old")
    session = begun.session
    me = Me(session.name, "session", session.namespace, session.scopes, moment(session.until), session.is_local)
    return Answer(me, 201, headers={"Set-Cookie": _cookie(ask, begun.cookie, _WEEK)})


async def who(ask: Ask[Nothing, None]) -> Answer:
    caller = ask.caller
    until, may_change = None, False
    if caller.how == "session":
        desk = ask.server.part(Desk)
        session = await desk.sessions.check(cookie_of(ask.headers, desk.place.port) or "")
        if session is not None:
            until, may_change = moment(session.until), session.is_local
    return Answer(Me(caller.name, caller.how, caller.namespace, tuple(sorted(caller.scopes)), until, may_change))


async def change_namespace(ask: Ask[Nothing, Whither]) -> Answer:
    desk = ask.server.part(Desk)
    cookie = cookie_of(ask.headers, desk.place.port) or ""
    session = await desk.sessions.check(cookie)
    if session is None or not session.is_local:
        raise HttpProblem(
            403, "not_allowed", "this session is for one namespace", do="open a link of `perdure link --scope admin`"
        )
    moved = await desk.sessions.move(cookie, ask.body.namespace)
    if moved is None:
        raise HttpProblem(401, "session_over", "this session has ended", do="open a new link of `perdure link`")
    return Answer(Me(moved.name, "session", moved.namespace, moved.scopes, moment(moved.until), moved.is_local))


async def leave(ask: Ask[Nothing, None]) -> Answer:
    desk = ask.server.part(Desk)
    await desk.sessions.end(cookie_of(ask.headers, desk.place.port) or "")
    return Answer(status=204, headers={"Set-Cookie": _cookie(ask, "", 0)})


def _cookie(ask: Ask[Nothing, Code] | Ask[Nothing, None], value: str, seconds: int) -> str:
    place = ask.server.part(Desk).place
    is_https = (place.origin_of(ask.headers.get("host", "")) or "").startswith("https:")
    secure = "; Secure" if is_https else ""
    name = cookie_name(place.port, is_https=is_https)
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"


ROUTES = (
    Route(
        method="POST",
        path="/v1/session",
        handler=begin,
        does="Exchange the code of a link for a session's cookie. A code is good once.",
        who="code",
        body=Code,
        answer=Me,
        status=201,
        statuses=(401, 422),
    ),
    Route(
        method="GET", path="/v1/session", handler=who, does="Who asks, and what they may do.", who="anyone", answer=Me
    ),
    Route(
        method="POST",
        path="/v1/session/namespace",
        handler=change_namespace,
        does="Go on in another namespace. Only a session that an administrator's link began may.",
        who="session",
        body=Whither,
        answer=Me,
        statuses=(403, 422),
    ),
    Route(method="DELETE", path="/v1/session", handler=leave, does="End the session.", who="session", status=204),
)
