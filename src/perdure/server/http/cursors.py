"""Cursors that callers cannot forge: each is bound to its list, its filter and its caller's namespace.

A cursor is base64url of the library's own cursor and 16 bytes of HMAC. Used with another filter, or changed, it is
refused: a page never shows rows that the filter in front of it would not.
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from perdure._ground.clock import moment
from perdure._ground.encoding.json_values import plain
from perdure.server.credentials import Vault
from perdure.server.http.problems import HttpProblem
from perdure.server.http.requests import Answer, Ask
from perdure.server.shapes.tasks import Listed

_SIGNATURE = 16  # bytes


async def sign_cursor(ask: Ask[Any, Any], list_name: str, filter: Any, cursor: str | None) -> str | None:
    """The cursor for the caller, made from the library's cursor; None at the end of the list."""
    if cursor is None:
        return None
    raw = cursor.encode()
    return urlsafe_b64encode(await _signature(ask, list_name, filter, raw) + raw).decode().rstrip("=")


async def read_cursor(ask: Ask[Any, Any], list_name: str, filter: Any, given: str | None) -> str | None:
    """The library's cursor in what the caller gives back.

    Raises:
        HttpProblem: it was not made here for this list with this filter.
    """
    if given is None:
        return None
    try:
        whole = urlsafe_b64decode(given + "=" * (-len(given) % 4))
        mark, raw = whole[:_SIGNATURE], whole[_SIGNATURE:]
        if hmac.compare_digest(mark, await _signature(ask, list_name, filter, raw)):
            return raw.decode()
    except ValueError:
        pass
    raise HttpProblem(
        400, "bad_cursor", "this cursor does not belong to this list and filter", do="begin again without a cursor"
    )


async def _signature(ask: Ask[Any, Any], list_name: str, filter: Any, raw: bytes) -> bytes:
    bound = json.dumps([list_name, ask.caller.namespace, plain(filter)], sort_keys=True).encode()
    return (await ask.server.part(Vault).sign("cursor", bound + b"\0" + raw))[:_SIGNATURE]


def page_limit(ask: Ask[Any, Any], given: int) -> int:
    """
    Raises:
        HttpProblem: the limit is not between 1 and the server's page limit.
    """
    if not 1 <= given <= ask.server.settings.page_limit:
        most = ask.server.settings.page_limit
        raise HttpProblem(400, "bad_request", f"limit is {given}; it lies between 1 and {most}")
    return given


def listed(ask: Ask[Any, Any], items: Sequence[Any], more: str | None = None, *, approximate: bool = False) -> Answer:
    """A page as its answer."""
    return Answer(Listed(items, moment(ask.server.clock.now_ms()), more, approximate))
