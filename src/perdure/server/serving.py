"""One server: the pipeline that every request goes through, and what requests share.

    wire → routing → guard → identity → scopes → once → handler → problems → encoding → access log

The order is fixed: nothing after the guard sees a request with a foreign Host, and nothing after identity sees one
without a caller, except routes whose callers need no credential.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from perdure._app import Perdure
from perdure._ground import crash_points as crash
from perdure._ground.clock import from_environment
from perdure._ground.ids import new_uid
from perdure._store import Author, acting
from perdure.server import encoding, problems
from perdure.server.access import Network, client_address, read_network
from perdure.server.decoding import is_accepted, read_body, read_query
from perdure.server.live import Live
from perdure.server.once import fingerprint_of
from perdure.server.overview import Overviews
from perdure.server.problems import HttpProblem
from perdure.server.requests import Answer, Ask, Caller, Streamed
from perdure.server.routing import Match, Router
from perdure.server.settings import Settings
from perdure.server.table import Raw, Route, Unread, check, routes
from perdure.server.telemetry import Telemetry

if TYPE_CHECKING:
    from perdure.server.assembly import Desk

log = logging.getLogger("perdure.server")

Scope = dict[str, Any]  # ASGI's, not ours
Receive = Callable[[], Any]
Send = Callable[[dict[str, Any]], Any]

_MOST_APPS = 64
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; sandbox; frame-ancestors 'none'"),
)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as it came in, before anybody has looked at who sends it."""

    method: str
    raw_path: bytes
    raw_query: bytes
    headers: Mapping[str, str]
    doubled: frozenset[str]  # names of headers that were sent more than once
    address: str
    peer_uid: int | None  # of a Unix socket
    request_id: str


class Guard(Protocol):
    """Refuses what no credential can make right: Host, Origin, Sec-Fetch, sizes, rates."""

    def check(self, request: Incoming, route: Route) -> None:
        """Raises HttpProblem."""


class Identity(Protocol):
    """Tells who a request comes from."""

    async def identify(self, request: Incoming, route: Route) -> Caller | None:
        """The caller; None without a credential. Raises HttpProblem for one that is not good."""


class Server:
    """What all requests of one server share. It is the ASGI application."""

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
        self.live = Live(settings, self.clock, self.stopping)
        self.overviews = Overviews()
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
            while len(self._apps) > _MOST_APPS:
                self._apps.popitem(last=False)
        self._apps.move_to_end(namespace)
        return app

    @property
    def desk(self) -> Desk:
        """Where credentials are kept."""
        if self._desk is None:
            raise HttpProblem(501, "no_credentials", "this server keeps no credentials")
        return self._desk

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
        self.server, self.receive, self.send = server, receive, send
        self.request = _incoming(scope, server.clock.now_ms(), server.proxies)
        self.is_head = self.request.method == "HEAD"
        self.began = time.perf_counter()
        self.route: Route | None = None
        self.caller: Caller | None = None
        self.status = 0
        self.sent = 0
        self.has_begun = False
        self.body = b""

    async def carry_out(self) -> None:
        try:
            try:
                answer = await self._answer()
                if isinstance(answer, Streamed):
                    await self._send_stream(answer)
                else:
                    await self._send_answer(answer)
            except Exception as error:
                if self.has_begun:  # too late to say anything: the connection is cut, so that nobody takes it for whole
                    raise
                await self._send_problem(error)
        finally:
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
        self._check_accept(route)
        ask = await self._read(route, match, caller)
        crash.place("server.admitted")
        with acting(_author(ask, route)):
            if ask.once is None or ask.content is not None or self.server._desk is None:
                return await route.handler(ask)
            same = fingerprint_of(self.request.raw_path, self.request.raw_query, self.body)
            return await self.server.desk.answers.give(ask.once, same, lambda: route.handler(ask))

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
            once=_once(route, headers, caller),
            match=_match(route, headers),
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
        return self.server.settings.body_limit if route.body_limit is None else route.body_limit

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

    # ── answering ───────────────────────────────────────────────────────────────────────────────

    async def _send_answer(self, answer: Answer) -> None:
        headers = dict(answer.headers)
        if "Perdure-Repeated" in headers and self.caller is not None:
            self.server.telemetry.of(self.caller.namespace).count("duplicates_prevented", "request")
        if answer.value is not None:
            headers.setdefault("Content-Type", "application/json")
        status, body = answer.status, b""
        if answer.etag is not None:
            headers["ETag"] = answer.etag
            if status == 200 and _is_known(answer.etag, self.request.headers.get("if-none-match")):
                status = 304
        if answer.value is not None and status != 304:
            accepted = self.request.headers.get("accept-encoding", "") if self.route is not None else ""
            encoded = (answer.value, accepted)
            body, is_squeezed = (
                await asyncio.to_thread(encoding.encode, *encoded) if answer.is_large else encoding.encode(*encoded)
            )
            if is_squeezed:
                headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
        await self._send(status, headers, body)

    async def _send_problem(self, error: Exception) -> None:
        if not isinstance(error, HttpProblem) and problems.from_exception(error).status >= 500:
            name = self.route.name if self.route else "no route"
            log.exception("request %s failed: %s", self.request.request_id, name)
        problem = problems.from_exception(error, has_match="if-match" in self.request.headers)
        instance = self.route.path if self.route else ""
        body = encoding.to_json(problems.body_of(problem, self.request.request_id, instance))
        await self._send(problem.status, {"Content-Type": "application/problem+json", **problem.headers}, body)

    async def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        lines = [*self._heads(headers)]
        if status not in (204, 304):
            lines.append((b"content-length", str(len(body)).encode()))
        self.status, self.has_begun = status, True
        await self.send({"type": "http.response.start", "status": status, "headers": lines})
        body = b"" if self.is_head or status in (204, 304) else body
        self.sent += len(body)
        crash.place("server.answering")
        await self.send({"type": "http.response.body", "body": body})

    async def _send_stream(self, answer: Streamed) -> None:
        headers = {"Content-Type": answer.media, **answer.headers}
        self.status, self.has_begun = answer.status, True
        chunks = answer.chunks
        try:
            lines = self._heads(headers)
            await self.send({"type": "http.response.start", "status": answer.status, "headers": lines})
            if self.is_head or await self._send_chunks(chunks):
                await self.send({"type": "http.response.body", "body": b""})
        finally:
            if (close := getattr(chunks, "aclose", None)) is not None:
                await close()

    async def _send_chunks(self, chunks: AsyncIterator[bytes]) -> bool:
        """Send all of them; False when the client went away first."""
        sending = asyncio.ensure_future(self._send_each(chunks))
        leaving = asyncio.ensure_future(self._leave())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
                return True
            return False
        finally:
            for one in (sending, leaving):
                one.cancel()
            await asyncio.wait({sending, leaving})

    async def _send_each(self, chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            self.sent += len(chunk)
            await self.send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _leave(self) -> None:
        """Returns when the client has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    def _heads(self, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        given = {name.lower().encode("latin-1"): value.encode("latin-1", "replace") for name, value in headers.items()}
        total = (time.perf_counter() - self.began) * 1000
        own = {
            **dict(_HEADERS),
            b"perdure-request-id": self.request.request_id.encode(),
            b"server-timing": f"total;dur={total:.1f}".encode(),
        }
        return list({**own, **given}.items())

    def _log(self) -> None:
        took = (time.perf_counter() - self.began) * 1000
        name = self.route.name if self.route else "-"
        who = self.caller.credential if self.caller else "-"
        space = self.caller.namespace if self.caller else ""
        self.server.telemetry.note_request(space, name, self.status, took / 1000)
        log.info(
            "%s %d %.1f ms", name, self.status, took,
            extra={"route": name, "status": self.status, "ms": round(took, 1), "request_id": self.request.request_id,
                   "credential": who, "bytes": self.sent},
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


def _author(ask: Ask[Any, Any], route: Route) -> Author:
    """Who signs what this request writes."""
    caller = ask.caller
    via = "dashboard" if ask.headers.get("perdure-client", "").startswith("dashboard/") else "http"
    name = caller.name or ("callback" if route.who == "token" else "nobody")
    return Author(name, caller.credential, via, caller.address[:100], ask.request_id)


def _once(route: Route, headers: Mapping[str, str], caller: Caller) -> str | None:
    key = headers.get("idempotency-key")
    if not route.takes_a_key:
        return None
    if key is None:
        if route.once == "must":
            raise HttpProblem(
                400,
                "key_required",
                "this request needs an Idempotency-Key",
                do="send one of 1 to 200 printable characters, a new one for each thing to be done",
            )
        return None
    if not 1 <= len(key) <= 200 or not key.isascii() or not key.isprintable():
        raise HttpProblem(400, "bad_request", "an Idempotency-Key has 1 to 200 printable ASCII characters")
    scoped = "\0".join((caller.how, caller.credential, route.name, key))
    return f"http-{hashlib.sha256(scoped.encode()).hexdigest()}"


def _match(route: Route, headers: Mapping[str, str]) -> int | None:
    given = headers.get("if-match")
    if given is None:
        if route.match == "must":
            raise HttpProblem(
                428, "match_required", "this request needs If-Match", do="send the ETag of what you have seen"
            )
        return None
    text = given.strip()
    if len(text) > 24 or not (text.startswith('"v') and text.endswith('"') and text[2:-1].isdigit()):
        raise HttpProblem(400, "bad_request", 'If-Match has the form "v12", as ETag has')
    return int(text[2:-1])


def _is_known(etag: str, seen: str | None) -> bool:
    return seen is not None and (seen.strip() == "*" or etag in [tag.strip() for tag in seen.split(",")])


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
