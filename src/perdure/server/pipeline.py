"""One server: the pipeline that every request goes through, and what requests share.

    wire → router → guard → identity → scopes → repeats → handler → problems → answer bytes → access log

The order is fixed: nothing after the guard sees a request with a foreign Host, and nothing after identity sees one
without a caller, except routes whose callers need no credential.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from perdure._app import Perdure
from perdure._ground import crash_points as crash
from perdure._ground.clock import from_environment
from perdure._ground.exception_text import in_one_line
from perdure._ground.ids import new_uid
from perdure._store import Author, acting
from perdure._tasks import keep_recent, store_of
from perdure.errors import StoreUnavailable
from perdure.server.access import Network, client_address, read_network
from perdure.server.credentials import Vault
from perdure.server.desk import Desk
from perdure.server.http import (
    Answer,
    AnswerWriter,
    Ask,
    Caller,
    HttpProblem,
    Incoming,
    Match,
    Router,
    Spool,
    Streamed,
    WriteTurns,
    answer_of_first_try,
    fingerprint_of,
    from_exception,
    is_accepted,
    key_in,
    mark_of,
    read_body,
    read_query,
    version_in,
)
from perdure.server.live import Live
from perdure.server.overview import Overviews
from perdure.server.settings import Settings
from perdure.server.table import Raw, Route, Unread, check, routes
from perdure.server.telemetry import Telemetry, tell_request

log = logging.getLogger("perdure.server")
T = TypeVar("T")

Scope = dict[str, Any]  # ASGI's, not ours
Receive = Callable[[], Any]
Send = Callable[[dict[str, Any]], Any]

_MOST_APPS = 64
_PATIENCE = 2.0  # seconds


class Guard(Protocol):
    """Refuses what no credential can make right: Host, Origin, Sec-Fetch, sizes, rates."""

    def check(self, request: Incoming, route: Route) -> None:
        """Raises HttpProblem."""


class Identity(Protocol):
    """Tells who a request comes from."""

    async def identify(self, request: Incoming, route: Route) -> Caller | None:
        """The caller; None without a credential. Raises HttpProblem for one that is not good."""


class Server:
    """The state that all requests of one server share. It is the ASGI application."""

    def __init__(
        self,
        open_app: Callable[[str], Perdure],
        settings: Settings,
        guard: Guard | None,
        identity: Identity,
        *,
        desk: Desk | None = None,
        pages: Sequence[Route] = (),
    ) -> None:
        """`open_app` opens the store in a namespace. `pages` are routes beside those of the table."""
        self.settings = settings
        self._desk = desk
        self._at_close: list[Awaitable[None]] = []
        self.proxies = tuple(map(read_network, settings.trusted_proxies))
        self.stopping = asyncio.Event()  # set when the server is about to end: streams say goodbye
        self.clock = from_environment()
        self.telemetry = Telemetry()
        self.live = Live(settings, self.clock, self.stopping, self.telemetry)
        self._parts: dict[type, Any] = {Live: self.live, Overviews: Overviews()}
        if desk is not None:
            self._parts |= {Desk: desk, Vault: desk.vault}
        self.turns = WriteTurns()
        self._open, self._guard, self._identity = open_app, guard, identity
        self._apps: OrderedDict[str, Perdure] = OrderedDict()
        check((*routes(), *pages))
        self._router = Router((*routes(), *pages))
        self.policy_reports = 0  # violations of the policy of our pages that browsers have told of

    def app_of(self, namespace: str) -> Perdure:
        """The library in this namespace. The 64 used last are kept open; all share one store."""
        app = self._apps.get(namespace)
        if app is None:
            app = self._apps[namespace] = self._open(namespace)
            keep_recent(store_of(app.tasks))
            self.telemetry.watch_commits(app)
            while len(self._apps) > _MOST_APPS:
                self._apps.popitem(last=False)
        self._apps.move_to_end(namespace)
        return app

    def part(self, kind: type[T]) -> T:
        """The part of this class, for a handler: its Desk, Vault, Live or Overviews."""
        found = self._parts.get(kind)
        if found is None:
            raise HttpProblem(501, "no_credentials", "this server keeps no credentials")
        return cast("T", found)

    @property
    def has_desk(self) -> bool:
        return self._desk is not None

    @property
    def desk(self) -> Desk:
        """The server's Desk, which holds the credentials."""
        return self.part(Desk)

    async def close(self) -> None:
        self.stopping.set()
        await self.live.close()
        if self._desk is not None:
            await self._desk.jobs.close()
        for app in self._apps.values():
            await app.close()
        self._apps.clear()
        while self._at_close:
            await self._at_close.pop()
        if self._desk is not None:
            await self._desk.close()

    def be_hasty(self) -> None:
        """Give up soon on a store that is away: clients are told to ask again, and requests must not pile up. For a
        process that does nothing else; a worker in it would lose attempts that a little patience saves."""
        store_of(self.app_of("default").tasks).be_hasty(_PATIENCE)

    def on_close(self, work: Awaitable[None]) -> None:
        """Have this awaited when the server ends, before its store is closed."""
        self._at_close.append(work)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await _Exchange(self, scope, receive, send).carry_out()
        else:
            await send({"type": "websocket.close", "code": 1008})  # no route speaks it

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                from perdure.server.process import HookDuties

                self.on_close(HookDuties(self._open, self.settings, self.telemetry).begin())
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


class _Exchange:
    """One request and its answer."""

    def __init__(self, server: Server, scope: Scope, receive: Receive, send: Send) -> None:
        self.server, self.receive = server, receive
        self.request = _incoming(scope, server.clock.now_ms(), server.proxies)
        self.is_head = self.request.method == "HEAD"
        self.writer = AnswerWriter(self.request, receive, send)
        self.route: Route | None = None
        self.caller: Caller | None = None
        self.ask: Ask[Any, Any] | None = None
        self.body = b""
        self.spool: Spool | None = None

    async def carry_out(self) -> None:
        try:
            try:
                answer = await self.server.telemetry.held.watched(self._answer(), self._name_of_route)
                if isinstance(answer, Streamed):
                    await self.writer.write_stream(answer)
                else:
                    await self._write(answer)
            except Exception as error:
                if self.writer.has_begun:  # too late to answer: the connection is cut, and the client sees it
                    raise
                await self._write_problem(error)
        finally:
            if self.spool is not None:
                self.spool.close()
            self._log()

    async def _answer(self) -> Answer | Streamed:
        match = self.server._router.find(self.request.raw_path)
        method = "GET" if self.is_head else self.request.method
        route = match.routes.get(method) if match else None
        self.route = route
        if self.server._guard is not None:
            self.server._guard.check(self.request, route or _NO_ROUTE)
        if match is None:
            raise HttpProblem(
                404, "not_found", "there is nothing at this address", do="GET /openapi.json lists the routes"
            )
        if route is None:
            raise _not_allowed(self.request.method, match)
        caller = await self._admit(route)
        if (date := self.request.headers.get("date")) and caller.credential:
            self.server.telemetry.note_clock(caller.credential, date[:64], self.server.clock.now_ms())
        self._check_accept(route)
        ask = self.ask = await self._read(route, match, caller)
        crash.place("server.admitted")
        is_raw = ask.content is not None and route.once != "must"  # what is typed has ids of its own
        once = ask.once
        if once is None or is_raw or not self.server.has_desk:
            return await self._carry_out(route, ask)
        if ask.content is not None:
            self.spool = Spool()
            await self.spool.take(ask.content)
            ask = self.ask = replace(ask, content=self.spool.pieces())
            self.body = self.spool.digest
        same = fingerprint_of(self.request.raw_path, self.request.raw_query, self.body)
        mark = mark_of(once, same)
        return await self.server.desk.answers.give(
            once,
            same,
            lambda: self._carry_out(route, ask, mark),
            lambda error: answer_of_first_try(route, ask, mark, error),
        )

    async def _carry_out(self, route: Route, ask: Ask[Any, Any], mark: str = "") -> Answer | Streamed:
        with acting(_author(ask, route, mark)):
            return await route.handler(replace(ask, mark=mark))

    async def _admit(self, route: Route) -> Caller:
        caller = await self.server._identity.identify(self.request, route)
        self.caller = caller
        if caller is None:
            if route.who in ("nobody", "token", "code"):
                self._refuse_to_write(route)
                return Caller("default", frozenset(), "", "nobody", address=self.request.address)
            raise HttpProblem(
                401,
                "no_credential",
                "this request carries no credential",
                do="send `Authorization: Bearer prd_…`; `perdure api-keys make` makes a key",
                headers={"WWW-Authenticate": 'Bearer realm="perdure"'},
            )
        if route.who == "session" and caller.how != "session":
            raise HttpProblem(403, "not_allowed", "only a session may do this", do="open a link of `perdure link`")
        missing = [scope for scope in route.scopes if scope not in caller.scopes]
        if missing:
            raise HttpProblem(
                403,
                "not_allowed",
                f"this needs the scope {' and '.join(missing)}",
                do="use a key that has it",
                values={"missing": missing},
            )
        self._refuse_to_write(route)
        return caller

    def _refuse_to_write(self, route: Route) -> None:
        """A server that only reads still begins sessions and takes reports of browsers: they change no task."""
        if self.server.settings.read_only and route.writes and route.who not in ("code", "nobody"):
            raise HttpProblem(403, "read_only", "this server only reads", do="ask a server without --read-only")

    async def _read(self, route: Route, match: Match, caller: Caller) -> Ask[Any, Any]:
        headers = self.request.headers
        body, content = None, None
        if route.body is Raw:
            content = self._chunks(route)
        elif route.body is None:
            await self._whole(0)
        else:
            if "content-type" in headers:  # before it is read
                self._check_media(route)
            self.body = await self._whole(self._limit(route))
            if self.body:
                self._check_media(route)
            body = read_body(self.body, route.body, depth=self.server.settings.depth)
        return Ask(
            app=self.server.app_of(caller.namespace),
            caller=caller,
            server=self.server,
            parts=match.parts,
            query=Unread() if route.query is Unread else read_query(self.request.raw_query, route.query),
            body=body,
            headers=headers,
            request_id=self.request.request_id,
            once=key_in(route, headers, caller),
            match=version_in(route, headers),
            content=content,
            renew=lambda: self._renew(route),
        )

    def _check_accept(self, route: Route) -> None:
        accepted = self.request.headers.get("accept", "")
        if not route.streams and not is_accepted(accepted, route.answers):
            raise HttpProblem(
                406, "not_acceptable", f"this route answers with {route.answers}", do=f"accept {route.answers}"
            )

    async def _renew(self, route: Route) -> Caller | None:
        """The caller as its credential says now; None when it may not have this route any more."""
        try:
            caller = await self.server._identity.identify(self.request, route)
        except HttpProblem as problem:
            return self.caller if problem.status == 429 else None
        return caller if caller is not None and all(scope in caller.scopes for scope in route.scopes) else None

    def _check_media(self, route: Route) -> None:
        media = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != route.media:
            raise HttpProblem(415, "unsupported_media_type", f"the body has to be {route.media}, not {media[:80]!r}")
        if "content-encoding" in self.request.headers:
            raise HttpProblem(415, "unsupported_media_type", "a body may not be compressed")

    def _limit(self, route: Route) -> int:
        settings = self.server.settings
        if route.holds_state:
            return settings.state_limit
        return settings.body_limit if route.body_limit is None else route.body_limit

    async def _whole(self, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in self._pieces(limit):
            size += len(part)
            parts.append(part)
        return b"".join(parts)

    async def _pieces(self, limit: int) -> AsyncIterator[bytes]:
        size, is_more = 0, True
        while is_more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise HttpProblem(400, "bad_request", "the client went away before its body was complete")
            is_more = message.get("more_body", False)
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > limit:
                say = "this route takes no body" if limit == 0 else f"the body is larger than {limit} bytes"
                raise HttpProblem(413, "too_large", say, headers={"Connection": "close"})
            if piece:
                yield piece

    def _chunks(self, route: Route) -> AsyncIterator[bytes]:
        self._check_media(route)
        return self._pieces(self._limit(route))

    async def _write(self, answer: Answer) -> None:
        if "Perdure-Repeated" in answer.headers and self.caller is not None:
            self.server.telemetry.of(self.caller.namespace).count("duplicates_prevented", "request")
        await self.writer.write(answer)

    async def _write_problem(self, error: Exception) -> None:
        problem = from_exception(error, has_match="if-match" in self.request.headers)
        if not isinstance(error, HttpProblem) and problem.status >= 500:
            name = self.route.name if self.route else "no route"
            if isinstance(error, StoreUnavailable):  # many requests tell of it, and none has more to say than this
                log.warning("request %s failed: %s: %s", self.request.request_id, name, in_one_line(str(error)))
            else:
                log.exception("request %s failed: %s", self.request.request_id, name)
        await self.writer.write_problem(problem, self.route.path if self.route else "")

    def _name_of_route(self) -> str:
        return self.route.name if self.route else "-"

    def _log(self) -> None:
        took, status = self.writer.took_ms, self.writer.status
        name = self._name_of_route()
        who = self.caller.credential if self.caller else "-"
        space = self.caller.namespace if self.caller else ""
        self.server.telemetry.note_request(space, name, status, took / 1000)
        about = self.ask.about if self.ask is not None else ()
        tell_request(name, status, took / 1000, self.request.headers.get("traceparent", ""), about)
        log.info(
            "%s %d %.1f ms", name, status, took,
            extra={"route": name, "status": status, "ms": round(took, 1), "request_id": self.request.request_id,
                   "credential": who, "bytes": self.writer.sent},
        )  # fmt: skip


def _incoming(scope: Scope, now_ms: int, proxies: Sequence[Network]) -> Incoming:
    headers: dict[str, str] = {}
    doubled: set[str] = set()
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        if name in headers:
            doubled.add(name)
        headers[name] = raw_value.decode("latin-1")
    client = scope.get("client")
    peer = client[0] if client else ""
    return Incoming(
        method=scope["method"],
        raw_path=scope.get("raw_path") or scope["path"].encode(),
        raw_query=scope.get("query_string", b""),
        headers=headers,
        doubled=frozenset(doubled),
        address=client_address(peer, headers.get("x-forwarded-for"), proxies) if proxies else peer,
        peer_uid=scope.get("extensions", {}).get("perdure.peer", {}).get("uid"),
        request_id=new_uid(now_ms),
    )


def _author(ask: Ask[Any, Any], route: Route, mark: str) -> Author:
    """The author of this request's writes."""
    caller = ask.caller
    via = "dashboard" if ask.headers.get("perdure-client", "").startswith("dashboard/") else "http"
    name = caller.name or ("callback" if route.who == "token" else "nobody")
    return Author(name, caller.credential, via, caller.address[:100], ask.request_id, mark)


def _not_allowed(method: str, match: Match) -> HttpProblem:
    allowed = sorted({*match.routes, *(["HEAD"] if "GET" in match.routes else [])})
    return HttpProblem(
        405,
        "method_not_allowed",
        f"{method[:20]} is not a method of this address",
        do=f"use {', '.join(allowed)}",
        headers={"Allow": ", ".join(allowed)},
    )


async def _nothing(_: Ask[Any, Any]) -> Answer:
    raise AssertionError("no route leads here")


_NO_ROUTE = Route(method="GET", path="/", handler=_nothing, does="What an unknown address is checked as.", who="nobody")
