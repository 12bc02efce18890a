"""One-time links and the sessions that they become.

A link holds a code in its fragment, so it is in no log and no Referer, and fetching the page uses nothing up. The page
sends the code once and gets a cookie. Codes and cookies are 32 random bytes; the store keeps only their signatures
under the server's secret, so a stolen store opens no session, and a new secret ends all of them.
"""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from perdure._ground.ids import check_id
from perdure.server.credentials.vault import Vault

_FORM = re.compile(r"[A-Za-z0-9_-]{43}\Z")
_AT_MOST = timedelta(days=7)
_SWEEP = 100  # expired ones that are removed when a new one is made


class Link(Struct, frozen=True):
    """The session that a code can open. Moments are milliseconds since 1970."""

    name: str  # of the person: it signs what the session writes
    scopes: tuple[str, ...]
    namespace: str
    is_local: bool  # the session may change its namespace
    until: int
    made_at: int


class Session(Struct, frozen=True):
    """A browser that has used a link."""

    id: str  # names the session in logs and events; says nothing about its cookie
    name: str
    scopes: tuple[str, ...]
    namespace: str
    is_local: bool
    made_at: int
    until: int
    address: str = ""  # where the link was used


class SessionBegun(NamedTuple):
    session: Session
    cookie: str


class Sessions:
    """The links and sessions of a store."""

    def __init__(self, vault: Vault, length: timedelta, link_length: timedelta) -> None:
        self._vault, self._clock = vault, vault.clock
        self._links = vault.shelf("link", Link)
        self._sessions = vault.shelf("session", Session)
        self._length, self._link_length = _ms(length), _ms(link_length)

    async def make_link(
        self, name: str, scopes: tuple[str, ...], namespace: str = "default", *, is_local: bool = False
    ) -> str:
        """The code of a new link, good for one use."""
        now = self._clock.now_ms()
        for kept in await self._links.due(now, limit=_SWEEP):
            await self._links.drop(kept)
        code = secrets.token_urlsafe(32)
        link = Link(name, scopes, check_id(namespace, "namespace"), is_local, now + self._link_length, now)
        await self._links.add(await self._name_of("link", code), link, due_at=link.until)
        return code

    async def begin(self, code: str, address: str = "") -> SessionBegun | None:
        """The session that a code gives; None when it was used, has expired, or never was. A code is used up."""
        if not _FORM.match(code):
            return None
        kept = await self._links.get(await self._name_of("link", code))
        now = self._clock.now_ms()
        if kept is None or not await self._links.drop(kept) or now >= kept.value.until:
            return None
        await self._sweep(now)
        link, cookie = kept.value, secrets.token_urlsafe(32)
        session = Session(
            secrets.token_hex(6),
            link.name,
            link.scopes,
            link.namespace,
            link.is_local,
            now,
            now + self._length,
            address,
        )
        await self._sessions.add(await self._name_of("session", cookie), session, due_at=session.until)
        return SessionBegun(session, cookie)

    async def check(self, cookie: str) -> Session | None:
        """The session of a cookie; None when it has ended. Using it lengthens it, up to seven days in all."""
        if not _FORM.match(cookie):
            return None
        kept = await self._sessions.get(await self._name_of("session", cookie))
        now = self._clock.now_ms()
        if kept is None or now >= kept.value.until:
            return None
        session = kept.value
        until = min(now + self._length, session.made_at + _ms(_AT_MOST))
        if until - session.until > self._length // 12:  # written once an hour, not with every request
            await self._sessions.change(kept, replace(session, until=until), due_at=until)
        return session

    async def move(self, cookie: str, namespace: str) -> Session | None:
        """The session in another namespace; None when it has ended."""
        check_id(namespace, "namespace")
        name = await self._name_of("session", cookie)
        while (kept := await self._sessions.get(name)) is not None:
            moved = replace(kept.value, namespace=namespace)
            if await self._sessions.change(kept, moved, due_at=moved.until):
                return moved
        return None

    async def end(self, cookie: str) -> None:
        """End a session. Ending it twice is not an error."""
        name = await self._name_of("session", cookie)
        while (kept := await self._sessions.get(name)) is not None:
            if await self._sessions.drop(kept):
                return

    async def _sweep(self, now_ms: int) -> None:
        for kept in await self._sessions.due(now_ms, limit=_SWEEP):
            await self._sessions.drop(kept)

    async def _name_of(self, kind: str, secret: str) -> str:
        return (await self._vault.sign(kind, secret.encode())).hex()


def _ms(length: timedelta) -> int:
    return int(length.total_seconds() * 1000)
