"""Lists of a server, in pages of any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.client.transport import Transport

_MOST = 200  # items that a server gives at a time


async def some(
    transport: Transport, path: str, limit: int, query: Mapping[str, Any], *, begin: str = "cursor"
) -> tuple[list[Any], str | None]:
    """At most `limit` items, and where the rest begins. `begin` is the parameter that takes that."""
    found: list[Any] = []
    given = dict(query)
    while True:
        page = (await transport.get(path, **{**given, "limit": min(limit - len(found), _MOST)})).value
        found += page["items"]
        given[begin] = page["next"]
        if page["next"] is None or len(found) >= limit:
            return found, page["next"]
