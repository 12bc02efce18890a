"""The open transaction blocks of a durable function, and the outcome of the last one. Pure.

A durable function that is replayed walks through `async with con.transaction():` again, also through blocks that
have ended in an earlier attempt. The client numbers the blocks of a task's line in the order it comes to them and
says so in the statements it sends anyway; here they are read, so that the next attempt knows for each number whether
to go on inside it or to pass it by.

    BEGIN /* perdure.block LINE N */        or the comment alone, when the driver has sent the BEGIN
    SAVEPOINT perdure_N                     a block inside a block
    RELEASE SAVEPOINT perdure_N

A transaction that was begun without a block is named by the call that began it, a text instead of a number.
"""

from __future__ import annotations

import re
from typing import Any

from perdure.keeper.session import COMMITTED, ROLLED_BACK, UNCERTAIN

_OUTER = re.compile(rb"(?:BEGIN[A-Z ,]* )?/\* perdure\.block (\S{1,200}) (\d{1,9}) \*/\0?")
_INNER = re.compile(rb"(SAVEPOINT|RELEASE SAVEPOINT) perdure_(\d{1,9})\0?")


class Blocks:
    def __init__(self) -> None:
        self.line = ""
        self.last = 0  # the highest number that was entered
        self.open: list[int | str] = []
        self.ended: dict[str, Any] = {}  # the last outer one: number, how, outcome

    def asked(self, sql: bytes) -> bool:
        """Read a statement that is on its way to the server; whether it was about a block."""
        if b"perdure" not in sql[:120]:
            return False
        if outer := _OUTER.fullmatch(sql):
            self._enter_outer(outer[1].decode("utf-8", "replace"), int(outer[2]))
        elif inner := _INNER.fullmatch(sql):
            number = int(inner[2])
            if inner[1] == b"SAVEPOINT":
                self.open.append(number)
                self.last = max(self.last, number)
            else:
                self.open = [other for other in self.open if isinstance(other, str) or other < number]
        return True

    def enter(self, line: str, block: str) -> None:
        """A call began a transaction; that of a numbered block is known already."""
        if block.isdecimal():
            self._enter_outer(line, int(block))
            return
        if line != self.line:
            self.line, self.last, self.ended = line, 0, {}
        self.open = [block]

    def _enter_outer(self, line: str, number: int) -> None:
        if line != self.line:
            self.line, self.last, self.ended = line, 0, {}
        self.open = [number]
        self.last = max(self.last, number)

    def transaction_ended(self, how: str, outcome: str = "") -> None:
        """`how` is for people; `outcome` says which it is where that does not follow from a COMMIT or ROLLBACK."""
        if self.open:
            outcome = outcome or (COMMITTED if how == "COMMIT" else ROLLED_BACK)
            self.ended = {"number": self.open[0], "how": how, "outcome": outcome}
            self.open = []

    def ended_by_server(self, tag: str, why: str) -> None:
        """The server has said so, with the tag of its last command; `why` if we have rolled it back ourselves."""
        if tag in ("COMMIT", "ROLLBACK"):
            self.transaction_ended(tag)
        elif why or not tag:
            self.transaction_ended(why or "ROLLBACK")
        else:
            self.transaction_ended(tag, UNCERTAIN)  # it was prepared, or a batch has ended it

    def facts(self) -> dict[str, Any]:
        return {"line": self.line, "last": self.last, "open": self.open, "ended": self.ended}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Blocks:
        blocks = cls()
        blocks.line, blocks.last = facts["line"], facts["last"]
        blocks.open, blocks.ended = facts["open"], facts["ended"]
        return blocks
