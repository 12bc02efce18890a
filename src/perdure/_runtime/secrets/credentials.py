"""Get a credential that works: the current one, a refreshed one, a new login, or a person's help.

After a long pause tokens have expired. The ways are tried in this order, and each refusal is kept as a reason. When
all fail, the task is paused for human_input with a question that names the missing secret. The person puts the secret
in its place. The answer carries no secret, because answers are stored.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from perdure._runtime.secrets import redaction
from perdure.errors import CredentialRefused

How = Literal["valid", "refreshed", "logged in"]
Way = Callable[[], "str | Token | Awaitable[str | Token]"]


@dataclass(frozen=True, slots=True)
class Token:
    """A token and until when it holds; its value is not shown."""

    value: str
    expires_at: datetime | None = None

    def holds_at(self, now: datetime) -> bool:
        return self.expires_at is None or now < self.expires_at

    def __repr__(self) -> str:
        return f"Token(…, expires_at={self.expires_at})"


async def renew(
    name: str, token: Token | None, now: datetime, *, refresh: Way | None = None, login: Way | None = None
) -> tuple[Token, How]:
    """A token that holds, and how it was had.

    Raises:
        CredentialRefused: it has expired, and neither refreshing nor logging in gave another.
    """
    if token is not None and token.holds_at(now):
        redaction.know(token.value, f"[credential of {name}]")
        return token, "valid"
    tried: list[tuple[str, str]] = []
    hows: tuple[tuple[How, Way | None], ...] = (("refreshed", refresh), ("logged in", login))
    for how, way in hows:
        if way is None:
            continue
        fresh, why = await _try(way, now)
        if fresh is not None:
            redaction.know(fresh.value, f"[credential of {name}]")
            return fresh, how
        tried.append(("refresh" if how == "refreshed" else "login", why))
    raise CredentialRefused(name, tried)


async def _try(way: Way, now: datetime) -> tuple[Token | None, str]:
    try:
        answer: Any = way()
        found = await answer if inspect.isawaitable(answer) else answer
    except Exception as error:
        return None, redaction.redact(f"{type(error).__name__}: {error}")
    fresh = found if isinstance(found, Token) else Token(str(found))
    if not fresh.value or not fresh.holds_at(now):
        return None, "what it gave has expired already"
    return fresh, ""
