"""The names that a client has given to statements and portals of its session. Pure.

The next client uses the same names for its own, so they are closed when a client is gone.
"""

from __future__ import annotations

from perdure.keeper.pgproxy.protocol import transaction_ends as endings
from perdure.keeper.pgproxy.protocol import wire


class Names:
    def __init__(self) -> None:
        self.statements: set[bytes] = set()
        self.portals: set[bytes] = set()
        self._endings: dict[bytes, str] = {}  # by name of a statement: its possible effect on the transaction

    def __len__(self) -> int:
        return len(self.statements) + len(self.portals)

    def parse(self, message: bytes) -> bytes:
        """A statement is prepared; its text."""
        name, at = wire.text(message, 5)
        sql = wire.text(message, at)[0]
        if name:
            self.statements.add(name)
        self._endings[name] = endings.ending_of(sql)
        return sql

    def bind(self, message: bytes) -> str:
        """A portal is made of a statement; returns that one's possible effect on the transaction."""
        name, at = wire.text(message, 5)
        if name:
            self.portals.add(name)
        return self._endings.get(wire.text(message, at)[0], endings.NONE)

    def close(self, message: bytes) -> None:
        (self.statements if message[5:6] == b"S" else self.portals).discard(message[6:-1])

    def close_all(self) -> bytes:
        """The messages that close them all."""
        messages = [*map(wire.close_portal, sorted(self.portals)), *map(wire.close_statement, sorted(self.statements))]
        self.statements.clear()
        self.portals.clear()
        return b"".join(messages)

    def facts(self) -> dict[str, list[str]]:
        """As `of` reads them."""
        return {
            "statements": sorted(name.decode("utf-8", "surrogateescape") for name in self.statements),
            "portals": sorted(name.decode("utf-8", "surrogateescape") for name in self.portals),
        }

    @classmethod
    def of(cls, facts: dict[str, list[str]]) -> Names:
        found = cls()
        found.statements = {name.encode("utf-8", "surrogateescape") for name in facts["statements"]}
        found.portals = {name.encode("utf-8", "surrogateescape") for name in facts["portals"]}
        return found
