"""The outcome of a statement, for clients that were not connected when it ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_LONGEST_TEXT = 2000
TRANSACTION = {b"I": "none", b"T": "open", b"E": "failed"}


@dataclass(slots=True)
class Outcome:
    """The known outcome of a statement, or of a batch of them, by its last command."""

    state: str = "done"  # done, never sent, undone (rolled back with its transaction), or uncertain
    statement: str = ""  # its beginning
    tag: str | None = None  # INSERT 0 3, COMMIT, …
    error: dict[str, str] = field(default_factory=dict)  # code, message
    transaction: str = "none"  # none, open or failed, afterwards
    handed_over: bool = False  # to a client that was there; whether it read it is unknown

    def failed(self, fields: dict[str, str]) -> None:
        self.error = {"code": fields.get("C", "")[:10], "message": fields.get("M", "")[:_LONGEST_TEXT]}

    @property
    def rows(self) -> int | None:
        last = (self.tag or "").rpartition(" ")[2]
        return int(last) if last.isdecimal() else None

    def facts(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "statement": self.statement,
            "tag": self.tag,
            "rows": self.rows,
            "error": self.error or None,
            "transaction": self.transaction,
            "handed_over": self.handed_over,
        }

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Outcome:
        known = {name: facts[name] for name in ("state", "statement", "tag", "transaction", "handed_over")}
        return cls(**known, error=facts.get("error") or {})
