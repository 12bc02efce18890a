"""The findings of `perdure doctor` about servers, API keys and webhooks."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from urllib.parse import urlsplit

from perdure._app import Perdure
from perdure._ground.bridge import Call
from perdure._ground.clock import moment
from perdure._ground.reach import Sender, operator_rules
from perdure._tasks import Finding, read_hooks, store_of
from perdure.errors import AddressRefused
from perdure.server.credentials import ApiKeys, Vault
from perdure.server.process import RunningServers

_IDLE_MS = 90 * 24 * 3600 * 1000
_PATIENCE = 3.0  # seconds
_HELD = 0.5  # seconds
_SOON = 14 * 24 * 3600  # seconds before a certificate ends


async def examine_server(app: Perdure, sender: Sender | None = None) -> list[Finding]:
    """Every finding about what serves a store. `sender` reaches the receivers of webhooks, to look at their
    certificates; by default it keeps to the operator's rules."""
    vault = Vault(app)
    try:
        return [
            *[finding async for finding in _servers(vault)],
            *[finding async for finding in _keys(vault)],
            *[finding async for finding in _webhooks(app, sender or Sender(operator_rules()))],
        ]
    finally:
        await vault.close()


async def _servers(vault: Vault) -> AsyncIterator[Finding]:
    for server in await RunningServers(vault).look():
        url = server.url
        if await Call(lambda url=url: _answers(url)):  # type: ignore[misc]
            yield Finding("ok", "server", f"{url} answers")
        else:
            do = f"look at process {server.pid} on {server.host}, and at the proxy before it"
            yield Finding("problem", "server", f"{url} does not answer", do)
    for server, seen in await RunningServers(vault).vitals():
        if seen.streams_refused:
            what = f"{server.url} has refused {seen.streams_refused} streams: all places were taken"
            yield Finding("note", "streams", what, "close tabs and clients, or raise streams_per_key in [server]")
        if seen.held >= _HELD:
            who = seen.held_by or "something"
            what = f"{server.url}: {who} held up all other requests for {seen.held:.1f} s"
            yield Finding("note", "event loop", what, "its log names each such request; report it if it is a small one")
        for credential, skew in sorted(seen.skews.items()):
            what = f"the clock of a client with credential {credential} is {abs(skew):.0f} s"
            what += " ahead of the server's" if skew > 0 else " behind the server's"
            yield Finding("note", "clock", what, "set the clock of that machine, or of this one")


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with suppress(OSError, http.client.HTTPException):
        connection = kind(parts.hostname or "", parts.port, timeout=_PATIENCE)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        finally:
            connection.close()
    return False


async def _keys(vault: Vault) -> AsyncIterator[Finding]:
    keys, now = ApiKeys(vault), vault.clock.now_ms()
    found, uses = await keys.all(), await keys.last_uses()
    for kept in found:
        key = kept.value
        if key.revoked_at is not None:
            continue
        name = f"{key.name!r} ({key.id}, namespace {key.namespace})"
        used = uses.get(key.id, key.made_at)
        if key.until is not None and key.until <= now:
            what = f"the key {name} expired on {moment(key.until):%Y-%m-%d}"
            yield Finding("note", "api key", what, f"`perdure api-keys revoke {key.id}`, or make another one")
        elif now - used >= _IDLE_MS:
            what = f"the key {name} was last used on {moment(used):%Y-%m-%d}"
            yield Finding("note", "api key", what, f"`perdure api-keys revoke {key.id}` if its program is gone")
    if found:
        yield Finding("ok", "api keys", f"{sum(kept.value.is_good(now) for kept in found)} keys are good")


async def _webhooks(app: Perdure, sender: Sender) -> AsyncIterator[Finding]:
    hooks = await read_hooks(store_of(app.tasks))
    now = store_of(app.tasks).clock.now_ms() / 1000
    for hook in hooks:
        if hook.record.enabled and (finding := await _certificate(sender, hook.id, hook.record.url, now)):
            yield finding
        if not hook.record.enabled:
            what = f"{hook.id} is disabled: {hook.record.disabled_why}"
            yield Finding("problem", "webhook", what, f"mend its receiver, then `perdure webhooks enable {hook.id}`")
        elif hook.row.failing_since is not None:
            what = f"{hook.id} fails since {moment(hook.row.failing_since):%Y-%m-%d %H:%M}"
            do = f"`perdure webhooks deliveries {hook.id} --state due` shows the answers; after 3 days it is disabled"
            yield Finding("note", "webhook", what, do)
    if hooks:
        yield Finding("ok", "webhooks", f"{sum(hook.record.enabled for hook in hooks)} webhooks are enabled")


async def _certificate(sender: Sender, hook: str, url: str, now: float) -> Finding | None:
    """What is wrong with the certificate of a receiver. One that cannot be reached is told of by its failed tries."""
    if not url.startswith("https:"):
        return None
    try:
        left = await sender.certificate_end(url) - now
    except ssl.SSLCertVerificationError as error:
        what = f"the certificate of {hook}'s receiver is not good: {error.verify_message}"
        return Finding("problem", "webhook", what, "have its operator mend it; nothing is delivered until then")
    except (AddressRefused, OSError, TimeoutError):
        return None
    if left >= _SOON:
        return None
    what = f"the certificate of {hook}'s receiver ends on {moment(int((now + left) * 1000)):%Y-%m-%d}"
    return Finding("note", "webhook", what, "have its operator renew it")
