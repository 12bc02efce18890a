"""The routes of the dashboard: its documents, its assets, the frame of the terminal.

Documents need no credential: without a good session they hold no data, and the page says how to get a link.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from perdure._ground.clock import moment
from perdure.dashboard import shell
from perdure.dashboard.asset_files import assets
from perdure.errors import PerdureError
from perdure.server import Ask, Desk, Handler, Route, Services, Session, Streamed, Unread, cookie_of

DOCUMENTS = {  # each address of a page, and the page that is loaded first
    "/": "now",
    "/now": "now",
    "/tasks": "tasks",
    "/tasks/{task}": "task",
    "/tasks/{task}/{tab}": "task",
    "/tasks/{task}/{tab}/{thing}": "task",
    "/inbox": "inbox",
    "/inbox/{pause}": "inbox",
    "/operate": "operate",
    "/operate/{part}": "operate",
    "/operate/{part}/{thing}": "operate",
}
ASSETS = ("/assets/{tree}/{folder}/{name}", "/assets/{tree}/{folder}/{room}/{name}")
_FOREVER = "public, max-age=31536000, immutable"
# The terminal's frame has an origin of its own, which nothing else has: what it loads comes from a stranger to it.
_OF_THE_FRAME = ("frame/", "vendor/xterm", "vendor/addon-", "fonts/mono")


def _at_home(place: str) -> str:
    """A path as people write it: ~/agent/.perdure/perdure.db."""
    home = os.path.expanduser("~").rstrip("/")
    return f"~{place.removeprefix(home)}" if home and place.startswith(f"{home}/") else place


def pages(place: str = "") -> Sequence[Route]:
    """The routes of the dashboard, for `make_app(pages=…)`. `place` names the store to people."""

    shown = _at_home(place)

    def document(page: str) -> Handler:
        async def answer(ask: Ask[Unread, None]) -> Streamed:
            boot = await _boot(ask.server, ask.headers, shown)
            return _page(shell.shell(boot, page), shell.shell_headers())

        return answer

    return (
        *(_route(path, document(page), "A page of the dashboard.") for path, page in DOCUMENTS.items()),
        *(_route(path, _asset, "A file of the dashboard.") for path in ASSETS),
        _route("/terminal", _terminal, "The page inside the frame of a terminal."),
    )


def _route(path: str, handler: Handler, does: str) -> Route:
    return Route(method="GET", path=path, handler=handler, does=does, who="nobody", query=Unread, answers="text/html")


async def _terminal(_: Ask[Unread, None]) -> Streamed:
    return _page(shell.terminal(), shell.terminal_headers())


async def _asset(ask: Ask[Unread, None]) -> Streamed:
    parts = ask.parts
    name = "/".join(parts[part] for part in ("folder", "room", "name") if part in parts)
    found = assets().by_name.get(name)
    # An address of another tree is a page from before an upgrade: what it would get does not fit what it has.
    if found is None or parts["tree"] != assets().tree:
        return _page(b"", {"Cache-Control": "no-store"}, "text/plain", 404)
    headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}
    if name.startswith(_OF_THE_FRAME):
        headers |= {"Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*"}
    content = found.content
    if found.squeezed is not None and "gzip" in ask.headers.get("accept-encoding", ""):
        content = found.squeezed
        headers["Content-Encoding"] = "gzip"
    return _page(content, headers, found.media)


def _page(
    content: bytes, headers: Mapping[str, str], media: str = "text/html; charset=utf-8", status: int = 200
) -> Streamed:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    return Streamed(chunks(), media, status, {**headers, "Content-Length": str(len(content))})


async def _boot(server: Services, headers: Mapping[str, str], place: str) -> dict[str, Any]:
    """What the page needs before it has asked for anything; without a good session, nothing of the store."""
    boot: dict[str, Any] = {
        "version": version("perdure"),
        "at": moment(server.clock.now_ms()).isoformat(),
        "read_only": server.settings.read_only,
        "session": None,
    }
    try:
        desk = server.part(Desk)
        session = await desk.sessions.check(cookie_of(headers, desk.place.port) or "")
        if session is not None:
            boot |= {"session": _who(session), "place": place}
    except PerdureError:
        boot["trouble"] = True  # the page asks /v1/session, which tells what is wrong
    return boot


def _who(session: Session) -> dict[str, Any]:
    return {
        "name": session.name,
        "how": "session",
        "namespace": session.namespace,
        "scopes": sorted(session.scopes),
        "until": moment(session.until).isoformat(),
        "may_change_namespace": session.is_local,
    }
