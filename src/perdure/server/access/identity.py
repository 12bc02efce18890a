"""Identify the caller of a request: by an API key, a session's cookie, or the peer of a Unix socket.

A request has one credential: with `Authorization`, its cookie counts for nothing. A credential that is not good is
refused, also where another one would be. Routes that need none are not looked at.
"""

from __future__ import annotations

import asyncio
import math
import os
import pwd
from collections.abc import Awaitable, Mapping
from contextlib import suppress

from perdure._ground.clock import Clock
from perdure._ground.ids import check_id
from perdure.errors import InvalidId, PerdureError
from perdure.server.access.rates import Rates
from perdure.server.credentials import SCOPES, ApiKeys, Sessions
from perdure.server.http import Caller, HttpProblem, Incoming
from perdure.server.table import Route

_FAILURES = 20  # in a minute, from one address, before it has to wait a second for each further try
# A proxy on the same machine connects to the socket as itself, for strangers.
_NOT_OF_A_PEER = ("x-forwarded-for", "forwarded", "via", "origin", "sec-fetch-site")


class Identities:
    """Tells callers by their credentials."""

    def __init__(self, keys: ApiKeys, sessions: Sessions, clock: Clock, *, port: int, rate: int, burst: int) -> None:
        self._keys, self._sessions, self._clock = keys, sessions, clock
        self._port = port
        self._rates = Rates(rate, burst)
        self._policy = f'"credential";q={burst};w={math.ceil(burst / rate)}'
        self._failures = Rates(1.0, _FAILURES)
        self._noting: set[asyncio.Task[None]] = set()

    async def identify(self, request: Incoming, route: Route) -> Caller | None:
        """The caller; None without a credential.

        Raises:
            HttpProblem: the credential is not good (401, or 429 after many of them), or has used up its rate (429).
        """
        if route.who in ("nobody", "token", "code"):
            return None
        caller = await self._find(request)
        if caller is not None:
            self._spend(caller)
        return caller

    async def _find(self, request: Incoming) -> Caller | None:
        if "authorization" in request.headers:
            return await self._by_key(request)
        if (cookie := cookie_of(request.headers, self._port)) is not None:
            return await self._by_cookie(request, cookie)
        if request.peer_uid is not None:
            return _by_peer(request, request.peer_uid)
        return None

    async def _by_key(self, request: Incoming) -> Caller:
        kind, _, text = request.headers["authorization"].partition(" ")
        key = await self._keys.check(text.strip()) if kind.lower() == "bearer" else None
        if key is None:
            raise self.refusal(
                request.address, "bad_credential", "this API key is not known here, or is no longer good"
            )
        if self._keys.is_new_use(key):
            task = asyncio.ensure_future(self._note(self._keys.note_use(key)))
            self._noting.add(task)
            task.add_done_callback(self._noting.discard)
        return Caller(key.namespace, frozenset(key.scopes), key.name, "key", key.id, request.address)

    async def _by_cookie(self, request: Incoming, cookie: str) -> Caller:
        session = await self._sessions.check(cookie)
        if session is None:
            raise self.refusal(request.address, "session_over", "this session has ended")
        return Caller(
            session.namespace, frozenset(session.scopes), session.name, "session", session.id, request.address
        )

    def refusal(self, address: str, code: str, what: str) -> HttpProblem:
        """The answer to a credential that is not good, which counts against the address it came from."""
        wait = self._failures.take(address, self._clock.boottime())
        if wait > 0:
            return HttpProblem(
                429,
                "too_many_failures",
                "this address has failed to identify itself too often",
                do="wait, and use a good credential",
                headers={"Retry-After": str(math.ceil(wait))},
            )
        do = "open a new link of `perdure link`" if code != "bad_credential" else "`perdure api-keys make` makes a key"
        return HttpProblem(401, code, what, do=do, headers={"WWW-Authenticate": 'Bearer realm="perdure"'})

    def _spend(self, caller: Caller) -> None:
        wait = self._rates.take(f"{caller.how} {caller.credential}", self._clock.boottime())
        if wait > 0:
            raise HttpProblem(
                429,
                "too_many_requests",
                "this credential asks too often",
                do="wait, and ask less often",
                headers={
                    "Retry-After": str(math.ceil(wait)),
                    "RateLimit-Policy": self._policy,
                    "RateLimit": f'"credential";r=0;t={math.ceil(wait)}',
                },
            )

    async def _note(self, use: Awaitable[None]) -> None:
        with suppress(PerdureError):  # a moment of last use that could not be written is no reason to refuse
            await use

    async def close(self) -> None:
        """Wait for what is still being noted."""
        if self._noting:
            await asyncio.wait(self._noting)


def cookie_name(port: int, *, is_https: bool) -> str:
    """Browsers keep one jar for all ports of a host, so the name carries the port."""
    return "__Host-perdure" if is_https else f"perdure-{port}"


def cookie_of(headers: Mapping[str, str], port: int) -> str | None:
    """The cookie of a session, if the request has one."""
    names = (cookie_name(port, is_https=True), cookie_name(port, is_https=False))
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name in names:
            return value
    return None


def _by_peer(request: Incoming, uid: int) -> Caller:
    if uid != os.geteuid():
        raise HttpProblem(
            403, "not_allowed", f"the server runs as another user than {uid}", do="use an API key over TCP"
        )
    if told := [name for name in _NOT_OF_A_PEER if name in request.headers]:
        raise HttpProblem(
            403, "not_allowed", f"a request with {told[0]} comes from somebody else than the peer", do="use an API key"
        )
    try:
        namespace = check_id(request.headers.get("perdure-namespace", "default"), "namespace")
    except InvalidId as error:
        raise HttpProblem(400, "bad_request", error.what) from None
    return Caller(namespace, frozenset(SCOPES), _user_name(uid), "socket", f"uid {uid}", request.address)


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
