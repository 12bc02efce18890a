"""`PerdureSessionStore`: the transcripts of Claude Agent SDK sessions.

    claude/<project>/e/<session>/<subpath>/<number>   a batch of entries, in the order in which they came
    claude/<project>/s/<session>                      the summary that the SDK folds

A batch, and the summary that counts it, are written in one transaction. The number of a batch may be taken once, so
two processes that append to one session see each other's entries before they write their own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import fold_session_summary
from claude_agent_sdk.types import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from perdure._ground.clock import from_environment
from perdure._ground.encoding.key_parts import quoted, unquoted
from perdure.errors import Conflict
from perdure.types import Delete, Put

if TYPE_CHECKING:
    from perdure import Perdure

_MAIN = "-"  # where the main transcript lies; a subpath is never quoted to this
_MOST_CHANGES = 500


@dataclass
class _Transcript:
    """This process's knowledge of a transcript."""

    batches: int = 0
    uuids: set[str] = field(default_factory=set)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # one append of this process at a time


class PerdureSessionStore(SessionStore):
    """Mirrors sessions into a perdure store. `append` returns when its entries are on disk; an entry is kept once."""

    def __init__(self, app: Perdure) -> None:
        self._storage = app.storage
        self._clock = from_environment()
        self._known: dict[str, _Transcript] = {}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        prefix = _transcript(key)
        known = self._known.setdefault(prefix, _Transcript())
        async with known.turn:
            await self._append(key, prefix, known, entries)

    async def _append(self, key: SessionKey, prefix: str, known: _Transcript, entries: list[SessionStoreEntry]) -> None:
        while True:
            await self._catch_up(prefix, known)
            fresh = _without(entries, known.uuids)
            if not fresh:
                return
            changes = [Put(f"{prefix}{known.batches:010}", fresh, 0), *await self._summarised(key, fresh)]
            try:
                await self._storage.write(changes)
            except Conflict:  # another process appended first: its entries count before ours
                continue
            self._learn(known, fresh)
            return

    async def _catch_up(self, prefix: str, known: _Transcript) -> None:
        after = f"{prefix}{known.batches - 1:010}" if known.batches else None
        for found in await self._storage.scan(prefix, after=after):
            self._learn(known, found.value)

    @staticmethod
    def _learn(known: _Transcript, entries: list[Any]) -> None:
        known.batches += 1
        known.uuids.update(entry["uuid"] for entry in entries if "uuid" in entry)

    async def _summarised(self, key: SessionKey, fresh: list[SessionStoreEntry]) -> list[Put]:
        if key.get("subpath") is not None:  # what a subagent wrote is no part of the session's summary
            return []
        place = _summary(key["project_key"], key["session_id"])
        former = await self._storage.load(place)
        folded = fold_session_summary(None if former is None else former.value, key, fresh)
        row = {**folded, "mtime": self._clock.now_ms()}
        return [Put(place, row, former.version if former is not None else 0)]

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        found = await self._storage.scan(_transcript(key))
        return [entry for batch in found for entry in batch.value] if found else None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        found = await self.list_session_summaries(project_key)
        return [{"session_id": one["session_id"], "mtime": one["mtime"]} for one in found]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return [found.value for found in await self._storage.scan(_summary(project_key, ""))]

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        prefix = _session(key["project_key"], key["session_id"])
        parts = {found.removeprefix(prefix).split("/")[0] for found in await self._storage.list(prefix)}
        return sorted(unquoted(part) for part in parts if part != _MAIN)

    async def delete(self, key: SessionKey) -> None:
        """Remove a transcript; without a subpath the whole session."""
        subpath = key.get("subpath")
        prefix = _session(key["project_key"], key["session_id"]) if subpath is None else _transcript(key)
        gone = [*await self._storage.list(prefix)]
        if subpath is None:
            gone.append(_summary(key["project_key"], key["session_id"]))
        for start in range(0, len(gone), _MOST_CHANGES):
            await self._storage.write([Delete(one) for one in gone[start : start + _MOST_CHANGES]])
        for known in [place for place in self._known if place.startswith(prefix)]:
            del self._known[known]


def _without(entries: list[SessionStoreEntry], known: set[str]) -> list[SessionStoreEntry]:
    """The entries that are not stored yet; one without a uuid always counts as new."""
    fresh, seen = [], set(known)
    for entry in entries:
        uuid = entry.get("uuid")
        if uuid is not None and uuid in seen:
            continue
        if uuid is not None:
            seen.add(uuid)
        fresh.append(entry)
    return fresh


def _session(project: str, session: str) -> str:
    return f"claude/{_part(project)}/e/{_part(session)}/"


def _transcript(key: SessionKey) -> str:
    subpath = key.get("subpath")
    return f"{_session(key['project_key'], key['session_id'])}{_MAIN if subpath is None else _part(subpath)}/"


def _summary(project: str, session: str) -> str:
    return f"claude/{_part(project)}/s/{_part(session)}"


def _part(text: str) -> str:
    return quoted(text, also="-")
