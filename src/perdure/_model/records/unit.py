"""A live thing kept for a task, and how it was restored: its level and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Level = Literal["kept", "imaged", "rebuilt", "lost"]
Rebuild = Literal["auto", "ask", "never"]


class Verdict(Struct, frozen=True):
    """How a unit was restored, in words a model can act on."""

    level: Level
    reason: str
    same: Sequence[str] = ()
    differs: Sequence[str] = ()
    since_you_left: Sequence[str] = ()
    waiting: str | None = None
    do_not_assume: Sequence[str] = ()
    options: Sequence[str] = ()

    def for_model(self, name: str) -> str:
        """A few lines for a model's context."""
        lines = [f"{name}: {self.level} ({self.reason})"]
        parts = {
            "the same": self.same,
            "differs": self.differs,
            "since you left": self.since_you_left,
            "waits for": [self.waiting] if self.waiting else [],
            "do not assume": self.do_not_assume,
            "you can": self.options,
        }
        lines += [f"  {title}: {'; '.join(items)}" for title, items in parts.items() if items]
        return "\n".join(lines)
