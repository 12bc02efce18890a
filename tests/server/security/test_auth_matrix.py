"""Every route of the table, asked with every kind of credential, answers exactly the status that its line says.

The matrix is generated: a new route is in it as soon as it is in the table, and a handler that is in no table cannot be
reached. The expected status is worked out here from the line alone, apart from the server's own code.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from perdure.server import Server, nouns, pipeline
from perdure.server.credentials import PRESETS, SCOPES, scopes_of
from perdure.server.http.requests import Answer, Ask
from perdure.server.table import NOUNS, Nothing, Route, check, routes
from tests.support.http_server import make_key, make_session, request
from tests.support.http_server import serving as serve

pytestmark = pytest.mark.threat("T1")

REACHED = 299  # no route answers this: the request has come to the place of the handler
QUICK = {"rate": 1_000_000, "burst": 1_000_000}
OPEN = ("nobody", "token", "code")


@dataclass(frozen=True)
class Credential:
    """One way to ask, and what it entitles to."""

    name: str
    headers: dict[str, str] = field(default_factory=dict)
    scopes: frozenset[str] | None = None  # None: it is not good
    is_session: bool = False
    has_client: bool = True  # a session's request carries Perdure-Client
    peer_uid: int | None = None
    namespace: str = "default"


def expected(route: Route, credential: Credential) -> int:
    """The status that the route's line in the table promises."""
    if credential.is_session and not credential.has_client and route.writes and route.path.startswith("/v1"):
        return 403
    if route.who in OPEN:
        return REACHED
    if credential.peer_uid not in (None, os.geteuid()):
        return 403
    if credential.scopes is None:
        return 401
    if route.who == "session":
        return REACHED if credential.is_session else 403
    return REACHED if set(route.scopes) <= credential.scopes else 403


async def credentials(server: Server, clock: Any) -> list[Credential]:
    def bearer(text: str) -> dict[str, str]:
        return {"authorization": f"Bearer {text}"}

    everything = frozenset(SCOPES)
    desk = server.desk
    revoked = await make_key(server, "admin", name="revoked")
    for kept in await desk.keys.all():
        await desk.keys.revoke(kept)
    expired = (await desk.keys.make("expired", ["admin"], until=desk.vault.clock.now_ms() + 1000)).text
    clock.advance(seconds=2)
    good = await make_key(server, "admin", name="good")
    cookie = await make_session(server, "admin")
    own = {"origin": "http://127.0.0.1:7420", "perdure-client": "dashboard/test"}
    code = await desk.sessions.make_link("ada", scopes_of(["admin"]), is_local=True)
    unknown = f"{good[:-44]}_{secrets.token_urlsafe(32)}"
    made = [
        Credential("no credential"),
        Credential("a malformed key", bearer("prd_short")),
        Credential("another scheme", {"authorization": f"Basic {good}"}),
        Credential("an empty Authorization", {"authorization": ""}),
        Credential("an unknown key", bearer(f"prd_{'0' * 12}_{secrets.token_urlsafe(32)}")),
        Credential("a wrong secret", bearer(unknown)),
        Credential("a revoked key", bearer(revoked)),
        Credential("an expired key", bearer(expired)),
        Credential("the code of a link", bearer(code)),
        Credential("a callback token", bearer(secrets.token_urlsafe(32))),
        Credential(
            "an unknown session", {"cookie": f"perdure-7420={secrets.token_urlsafe(32)}", **own}, is_session=True
        ),
        Credential(
            "a session without Perdure-Client", {"cookie": cookie, "origin": own["origin"]}, everything, True, False
        ),
        Credential("a session", {"cookie": cookie, **own}, everything, is_session=True),
        Credential("a peer of another user", peer_uid=os.geteuid() + 1),
        Credential("a peer of this user", peer_uid=os.geteuid(), scopes=everything),
        Credential(
            "a key of another namespace",
            bearer(await make_key(server, "admin", namespace="other")),
            everything,
            namespace="other",
        ),
    ]
    for name in (*SCOPES, *PRESETS):
        made.append(
            Credential(f"a key with {name}", bearer(await make_key(server, name)), frozenset(scopes_of([name])))
        )
    viewer = {"cookie": await make_session(server, "viewer"), **own}
    made.append(Credential("a viewer's session", viewer, frozenset(PRESETS["viewer"]), is_session=True))
    return made


def address_of(route: Route) -> str:
    return "/".join("x" if part.startswith("{") else part for part in route.path.split("/"))


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[Ask[Any, Any]]:
    """What came to the place of a handler. The table is the real one, except that no handler does anything."""
    came: list[Ask[Any, Any]] = []

    async def note(ask: Ask[Any, Any]) -> Answer:
        came.append(ask)
        return Answer({}, REACHED)

    plain = {"handler": note, "query": Nothing, "body": None, "once": "no", "match": "no", "headers": {}}
    table = tuple(structs.replace(route, **plain) for route in routes())
    monkeypatch.setattr(pipeline, "routes", lambda: table)
    return came


async def test_every_route_answers_every_credential_as_its_line_says(url, clock, reached):
    wrong = []
    async with serve(url, **QUICK) as server:
        for number, credential in enumerate(await credentials(server, clock)):
            for route in routes():
                for method in (route.method, "HEAD") if route.method == "GET" else (route.method,):
                    reached.clear()
                    address = f"10.{number}.{len(wrong) % 250}.{hash(route.name) % 250}"
                    reply = await request(
                        server, method, address_of(route), headers=credential.headers, address=address,
                        peer_uid=credential.peer_uid,
                    )  # fmt: skip
                    promised = expected(route, credential)
                    came = [ask.caller.namespace for ask in reached]
                    namespace = "default" if route.who in OPEN else credential.namespace
                    if reply.status != promised or came != ([namespace] if promised == REACHED else []):
                        wrong.append(f"{method} {route.path} by {credential.name}: {reply.status}, not {promised}")
    assert wrong == []


async def test_without_a_good_credential_no_real_handler_is_reached(quick_url, clock):
    """The same with the real table, for what must be refused: its shapes and headers change nothing."""
    wrong = []
    async with serve(quick_url, **QUICK) as server:
        for number, credential in enumerate(await credentials(server, clock)):
            for count, route in enumerate(routes()):
                if (promised := expected(route, credential)) == REACHED:
                    continue
                address = f"10.{number}.{count}.1"
                reply = await request(
                    server, route.method, address_of(route), headers=credential.headers, address=address,
                    peer_uid=credential.peer_uid, body={"a": 1} if route.body else None,
                )  # fmt: skip
                if reply.status != promised:
                    wrong.append(f"{route.name} by {credential.name}: {reply.status}, not {promised}")
    assert wrong == []


def modules_of_nouns() -> Iterator[str]:
    folder = Path(next(iter(nouns.__path__)))
    for file in sorted(folder.rglob("*.py")):
        name = ".".join(file.relative_to(folder).with_suffix("").parts)
        if not name.endswith("__init__"):
            yield name


def test_every_file_that_declares_routes_is_in_the_table():
    declaring = {
        name for name in modules_of_nouns() if hasattr(import_module(f"perdure.server.nouns.{name}"), "ROUTES")
    }
    assert declaring == set(NOUNS)


def test_a_route_is_open_to_all_only_where_that_was_decided():
    """Who may come in without a credential is written here a second time, by hand."""
    decided = {
        "GET /healthz",
        "GET /readyz",
        "GET /openapi.json",
        "GET /link",
        "POST /csp",
        "POST /v1/session",
        "POST /v1/callbacks/{token}",
    }
    assert {route.name for route in routes() if route.who in OPEN} <= decided


@pytest.mark.parametrize("who", ["nobody", "token", "code", "anyone", "session"])
def test_a_route_has_scopes_exactly_when_its_callers_need_them(who):
    route = routes()[0]
    with pytest.raises(ValueError, match="scopes"):
        check((structs.replace(route, who=who, scopes=("tasks:read",)),))
    with pytest.raises(ValueError, match="scopes"):
        check((structs.replace(route, who="scoped", scopes=()),))
