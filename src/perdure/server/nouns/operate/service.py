"""The server itself: whether it lives, whether it can work, what it is."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from perdure._ground.clock import moment
from perdure.server.http import Answer, Ask, Streamed
from perdure.server.table import Nothing, Raw, Route

log = logging.getLogger("perdure.server")


class About(Struct, frozen=True):
    """What this server is."""

    perdure: str
    namespace: str
    at: datetime
    page_limit: int
    body_limit: int
    read_only: bool


async def healthz(_: Ask[Nothing, None]) -> Answer:
    return Answer("ok")


async def readyz(ask: Ask[Nothing, None]) -> Answer:
    await ask.app.tasks.list(limit=1)
    return Answer("ok")


async def about(ask: Ask[Nothing, None]) -> Answer:
    settings = ask.server.settings
    now = moment(ask.server.clock.now_ms())
    return Answer(
        About(
            version("perdure"), ask.caller.namespace, now, settings.page_limit, settings.body_limit, settings.read_only
        )
    )


async def contract(_: Ask[Nothing, None]) -> Answer:
    text, tag = _contract()
    return Answer(msgspec.Raw(text), etag=tag)


@lru_cache(maxsize=1)
def _contract() -> tuple[bytes, str]:
    text = files("perdure.server").joinpath("openapi.json").read_bytes()
    return text, f'"{sha256(text).hexdigest()[:32]}"'


async def link_page(_: Ask[Nothing, None]) -> Streamed:
    return Streamed(_once(_LINK_PAGE), "text/html; charset=utf-8", headers={"Content-Security-Policy": _LINK_POLICY})


async def take_report(ask: Ask[Nothing, Raw]) -> Answer:
    """Count a violation of the policy of our pages. What it says is not kept: anybody can send one."""
    if ask.content is not None:
        async for _ in ask.content:
            continue
    ask.server.policy_reports += 1
    log.warning("a browser reports a violation of the content security policy")
    return Answer(status=204)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


# The code is taken out of the address before it is used, so that it is in no history.
_LINK_SCRIPT = """
const say = (text) => { document.querySelector("p").textContent = text; };
const code = location.hash.slice(1);
history.replaceState(null, "", "/link");
if (!code) { say("This page needs the whole link that perdure has printed."); }
else fetch("/v1/session", {
  method: "POST", credentials: "same-origin", body: JSON.stringify({code}),
  headers: {"Content-Type": "application/json", "Perdure-Client": "dashboard/link"},
}).then((answer) => {
  if (answer.status === 201) location.replace("/");
  else say("This link was used before, or is too old. `perdure link` prints a new one.");
}, () => say("The server does not answer."));
"""
_LINK_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>perdure</title>"
    "<p>Opening perdure …</p><noscript>This page needs JavaScript.</noscript>"
    f"<script>{_LINK_SCRIPT}</script></html>"
).encode()
_LINK_HASH = b64encode(sha256(_LINK_SCRIPT.encode()).digest()).decode()
_LINK_POLICY = (
    f"default-src 'none'; script-src 'sha256-{_LINK_HASH}'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

ROUTES = (
    Route(
        method="GET",
        path="/link",
        handler=link_page,
        does="The page that exchanges the code in its fragment for a session.",
        who="nobody",
        answers="text/html",
    ),
    Route(
        method="POST",
        path="/csp",
        handler=take_report,
        does="Take a browser's report of a violation of the policy of a page.",
        who="nobody",
        body=Raw,
        media="application/csp-report",
        status=204,
        body_limit=10 * 1024,
    ),
    Route(method="GET", path="/healthz", handler=healthz, does="Whether the process lives.", who="nobody", answer=str),
    Route(
        method="GET",
        path="/readyz",
        handler=readyz,
        does="Whether the store can be used.",
        who="nobody",
        answer=str,
        statuses=(503,),
    ),
    Route(
        method="GET",
        path="/openapi.json",
        handler=contract,
        does="This contract, as OpenAPI 3.1.",
        who="nobody",
        answer=dict[str, Any],
    ),
    Route(
        method="GET",
        path="/v1",
        handler=about,
        does="What this server is: version, time, limits.",
        who="anyone",
        answer=About,
    ),
)
