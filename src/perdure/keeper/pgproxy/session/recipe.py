"""The recipe to build a session anew: the statements that shaped it, and those of its open transaction. Pure.

Kept in memory only, because it contains users' data. A statement is kept as the exact bytes its client sent, with its
result: tags, a digest of its rows, the transaction's status. Built anew it must have the same result; if not, the
database has changed and nothing is built.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any

MOST_BYTES = 256 * 1024
# Statements whose work outlives their transaction and belongs to this session alone.
_SHAPING_TAGS = frozenset({"SET", "RESET", "LISTEN", "UNLISTEN", "PREPARE", "DEALLOCATE", "DISCARD"})
_SHAPING_SQL = re.compile(rb"\bCREATE\s+(?:LOCAL\s+|GLOBAL\s+)?TEMP(?:ORARY)?\b|\bset_config\s*\(", re.IGNORECASE)


@dataclass
class Entry:
    """One batch and what came of it."""

    batch: bytes
    needs: dict[bytes, bytes] = field(default_factory=dict)  # statements it names that earlier batches have parsed
    tags: list[str] = field(default_factory=list)
    rows: str = ""
    status: str = "I"
    failed: bool = False
    path: str = ""  # of the call that asked for it

    @property
    def shapes(self) -> bool:
        is_temporary = _SHAPING_SQL.search(self.batch) is not None
        return not self.failed and (is_temporary or any(tag.split(" ")[0] in _SHAPING_TAGS for tag in self.tags))

    @property
    def size(self) -> int:
        return len(self.batch) + sum(map(len, self.needs.values()))

    def facts(self) -> list[Any]:
        needs = {_text(name): _text(parse) for name, parse in self.needs.items()}
        return [_text(self.batch), needs, self.tags, self.rows, self.status, self.failed, self.path]

    @classmethod
    def of(cls, facts: list[Any]) -> Entry:
        batch, needs, tags, rows, status, failed, *more = facts  # a recipe of an older version has no paths
        known = {b64decode(name): b64decode(parse) for name, parse in needs.items()}
        return cls(b64decode(batch), known, tags, rows, status, failed, *more)


def _text(data: bytes) -> str:
    return b64encode(data).decode()


class SessionRecipe:
    def __init__(self) -> None:
        self.shaping: list[Entry] = []
        self.open: list[Entry] = []  # of the open transaction
        self.spoiled = ""  # why the open transaction cannot be built anew
        self.blocks: dict[str, Any] = {}
        self.rests = 0  # how many batches had been answered when it was written

    def ended(self, entry: Entry, before: str) -> None:
        """A batch has ended: the transaction's status was `before`."""
        if entry.status != "I":
            if "COMMIT" in entry.tags or "ROLLBACK" in entry.tags:
                self.open, self.spoiled = [], "it was begun in the same breath as another one ended"
            self._add(entry)
            return
        if before == "I":
            self.shaping += [entry] if entry.shapes else []
        elif "COMMIT" in entry.tags:
            self.committed()
        self.open, self.spoiled = [], ""
        self._keep_small()

    def committed(self) -> None:
        """The open transaction was committed: its changes to the session stay, the rest must not be applied again."""
        self.shaping += [other for other in self.open if other.shapes]
        self.open, self.spoiled = [], ""

    def _add(self, entry: Entry) -> None:
        self.open.append(entry)
        if sum(other.size for other in self.open) > MOST_BYTES:
            self.spoil("its statements are too large to be kept for that")

    def _keep_small(self) -> None:
        while sum(entry.size for entry in self.shaping) > MOST_BYTES:
            del self.shaping[0]

    def spoil(self, why: str) -> None:
        """The open transaction cannot be built anew."""
        self.open, self.spoiled = [], why

    def facts(self) -> dict[str, Any]:
        return {
            "shaping": [entry.facts() for entry in self.shaping],
            "open": [entry.facts() for entry in self.open],
            "spoiled": self.spoiled,
            "blocks": self.blocks,
            "rests": self.rests,
        }

    @classmethod
    def of(cls, facts: dict[str, Any]) -> SessionRecipe:
        recipe = cls()
        recipe.shaping = [Entry.of(entry) for entry in facts["shaping"]]
        recipe.open = [Entry.of(entry) for entry in facts["open"]]
        recipe.spoiled, recipe.blocks = facts["spoiled"], facts["blocks"]
        recipe.rests = facts.get("rests", 0)
        return recipe
