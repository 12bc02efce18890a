"""Ring by NOTIFY, and hear by LISTEN.

A ring is sent after the commit it is about, on another connection: inside the transaction it would make every commit
of the database wait for every other. Listening needs a connection of its own, straight to the server: through a
pooler nothing is heard, and what others do is found by looking.
"""

from __future__ import annotations

import os
import select
import uuid
from collections.abc import Callable

import psycopg

from perdure._store.contract import ALL_KINDS, Kinds
from perdure._store.postgres import fork
from perdure._store.postgres.connector import Connection, Connector, Lost, is_direct
from perdure.errors import PerdureError

CHANNEL = "perdure"
_LONGEST_SECONDS = 1.0
# After a connection that was lost, or could not be made.
_REST_SECONDS = 1.0


class PostgresLine:
    has_to_be_told = True

    def __init__(self, connector: Connector, notify: Callable[[str], None]) -> None:
        self._connector, self._notify = connector, notify
        self._connection: Connection | None = None
        self._us = uuid.uuid4().hex  # so that we do not hear ourselves
        self._interrupted, self._interrupt = os.pipe()
        self._is_closed = self.is_open = False

    def tell(self, kinds: Kinds) -> None:
        self._notify(f"{self._us} {' '.join(sorted(kinds))}")

    def hear(self) -> Kinds:
        try:
            if self._connection is None:
                return self._listen()
            select.select([self._connection.fileno(), self._interrupted], [], [], _LONGEST_SECONDS)
            return self._heard(self._connection)
        except (psycopg.Error, OSError, PerdureError, Lost):
            self.hang_up()
            self._rest()
            return frozenset()

    def _listen(self) -> Kinds:
        """Begin to listen; earlier news was not heard, so it may have been anything."""
        self._connection = self._connector.connect()
        if not is_direct(self._connection):
            self.hang_up()
            self._rest()
            return frozenset()
        self._connection.execute(f"LISTEN {CHANNEL}".encode(), prepare=False)
        self.is_open = True
        return ALL_KINDS

    def _heard(self, connection: Connection) -> Kinds:
        said = [notice.payload for notice in connection.notifies(timeout=0)]
        return (
            frozenset(kind for text in said if not text.startswith(self._us) for kind in text.split()[1:]) & ALL_KINDS
        )

    def _rest(self) -> None:
        select.select([self._interrupted], [], [], _REST_SECONDS)

    def hang_up(self) -> None:
        self.is_open = False
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def interrupt(self) -> None:
        os.write(self._interrupt, b"!")

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.hang_up()
            os.close(self._interrupted)
            os.close(self._interrupt)

    def mark_forked(self) -> None:
        self.is_open = False
        fork.leave_alone(self._connection)
        self._connection = None
