"""The calls of a task's journal, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from perdure import Perdure
from perdure.types import JournalCall


async def calls_of(app: Perdure, id: str) -> Sequence[JournalCall]:
    """Every call on the present line of a task's journal."""
    found: list[JournalCall] = []
    cursor: str | None = "0"
    while cursor is not None:
        page = await app.journal.page(id, after=int(cursor), limit=1000)
        found, cursor = [*found, *page.items], page.cursor
    return found
