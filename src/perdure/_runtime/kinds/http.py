"""A session with a web service: cookies, headers, a token with its end.

Cookies and tokens are secrets: they are kept only where the store has a key that seals them, else only their names,
and the session comes back by logging in again. An expired token is renewed before the session is handed out.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.cookiejar import Cookie, CookieJar
from typing import Any

from perdure._ground.clock import moment
from perdure._model import Verdict
from perdure._runtime.context import Place, UnitType
from perdure._runtime.secrets import Token, redaction, renew

_COOKIE = (
    "version", "name", "value", "port", "port_specified", "domain", "domain_specified", "domain_initial_dot",
    "path", "path_specified", "secure", "expires", "discard", "comment", "comment_url", "rfc2109",
)  # fmt: skip


@dataclass
class HttpSession:
    """A session by itself; anything with `.cookies` (a jar) and `.headers` can be kept in its place."""

    base_url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    cookies: CookieJar = field(default_factory=CookieJar)
    token: Token | None = None
    verdict: Verdict | None = None

    def open(self, path: str, data: bytes | None = None, *, method: str | None = None, timeout: float = 30) -> Any:
        """Send a request with the session's cookies, headers and token; the answer, as urllib gives it."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        request = urllib.request.Request(self.base_url + path, data, dict(self.headers), method=method)
        if self.token is not None:
            request.add_header("Authorization", f"Bearer {self.token.value}")
        return opener.open(request, timeout=timeout)


class HttpType(UnitType):
    """Sessions of this module, and of libraries whose sessions have a cookie jar and headers."""

    kind = "http"
    is_connection = True

    async def capture(self, live: Any, place: Place) -> Any:
        jar = _jar(live)
        headers = {str(name): str(value) for name, value in dict(live.headers).items()}
        token: Token | None = getattr(live, "token", None)
        clear = {name: value for name, value in headers.items() if not _is_secret(name, value)}
        sealed: dict[str, Any] = {
            "cookies": [{name: getattr(cookie, name) for name in _COOKIE} | {"rest": cookie._rest} for cookie in jar],
            "headers": {name: value for name, value in headers.items() if name not in clear},
            "token": token.value if token else None,
        }
        for value in [*sealed["headers"].values(), *(c["value"] for c in sealed["cookies"]), sealed["token"]]:
            redaction.know(value or "", "[credential of a session]")
        return {
            "url": str(getattr(live, "base_url", "")),
            "headers": clear,
            "cookie_names": sorted(cookie.name for cookie in jar),
            "expires_at": token.expires_at if token else None,
            "had_token": token is not None,
            "sealed": sealed if place.can_seal else None,
        }

    def waits(self, recipe: Any, place: Place) -> bool:
        return not place.given(_name(recipe, place))

    async def validate(self, recipe: Any, place: Place) -> Verdict:
        token, ways = _token(recipe), place.given(_name(recipe, place))
        now = moment(place.now_ms)
        can_renew = bool(ways.get("refresh") or ways.get("login"))
        if recipe["sealed"] is None and (recipe["cookie_names"] or recipe["had_token"]) and not can_renew:
            return Verdict("lost", "its cookies and token were not kept: the store has no key, and nobody can log in")
        if recipe["had_token"] and (token is None or not token.holds_at(now)):
            if not can_renew:
                return Verdict("lost", "its token has expired, and nobody can renew it")
            return Verdict("rebuilt", "the same session; its token is renewed first")
        return Verdict("rebuilt", "the same session: cookies, headers and token")

    async def restore(self, recipe: Any, place: Place) -> Any:
        ways = place.given(_name(recipe, place))
        sealed: Mapping[str, Any] = recipe["sealed"] or {"cookies": [], "headers": {}, "token": None}
        make = ways.get("make", HttpSession)
        session = make()
        session.headers.update({**recipe["headers"], **sealed["headers"]})
        for told in sealed["cookies"]:
            _jar(session).set_cookie(Cookie(**told))
        if isinstance(session, HttpSession):
            session.base_url = recipe["url"]
        if recipe["had_token"]:
            name = recipe["url"] or "the session"
            session.token, _ = await renew(
                name, _token(recipe), moment(place.now_ms), refresh=ways.get("refresh"), login=ways.get("login")
            )
        return session

    async def close(self, live: Any) -> None:
        close = getattr(live, "close", None)
        if callable(close):
            close()


def _jar(live: Any) -> Any:
    return getattr(live.cookies, "jar", live.cookies)


def _is_secret(name: str, value: str) -> bool:
    return redaction.is_telling(name) or redaction.looks_secret(value)


def _token(recipe: Any) -> Token | None:
    sealed, ends = recipe["sealed"], recipe["expires_at"]
    if not sealed or not sealed["token"]:
        return None
    return Token(sealed["token"], ends if isinstance(ends, datetime) else None)


def _name(recipe: Any, place: Place) -> str:
    """Ways to renew are given under the session's address, or under `http` for all of them."""
    return recipe["url"] if place.given(recipe["url"]) else "http"
