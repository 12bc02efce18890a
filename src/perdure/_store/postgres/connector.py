"""Connect to the server, and stay patient when it goes away.

A server that restarts or fails over is gone for some seconds. Whoever was connected before rides that
out here: the work in hand is done again on a new connection. An engine that never reached its server
says so at once instead: there the address is likely wrong, and nothing is under way to be saved.

Prepared statements belong to one server connection, and a pooler (PgBouncer in transaction mode) may
give us another one at any time. They are used only where the process that answers is the one that
greeted us (a pooler greets with a number of its own), and never again once a server did not know one.
A prepared statement keeps its plan, perhaps one made while its tables were nearly empty; so that such a
plan never reads a whole table, none may. That setting lives as long as the prepared statements do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from perdure._store.postgres import address
from perdure._store.postgres import error_translation as trouble
from perdure.errors import PerdureError, StoreRefused

T = TypeVar("T")
OLDEST_SERVER = 14
PATIENCE_SECONDS = 45.0

# Without jit: some versions take a plan that had to ignore this for one worth compiling.
_KEEP_TO_INDEXES = "SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)"


class Connection(psycopg.Connection[Any]):
    """psycopg itself prepares nothing on it: what it has prepared it takes back at a ROLLBACK, and all else with it."""

    may_prepare = False  # by name, as wire.py does


class Lost(Exception):
    """The connection is gone; what was under way may be done again on a new one."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class Patience:
    """How long to go on trying after a connection was lost."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._began: float | None = None
        self._pause = 0.0

    def wait(self, lost: Lost, *, kept: str = "") -> None:
        """A pause before the next try; the first one comes at once.

        Raises:
            StoreUnreachable: that was long enough.
        """
        now = time.monotonic()
        self._began = self._began or now
        if now + self._pause - self._began > self._connector.patience:
            raise self._connector.unreachable(lost.error, now - self._began, kept) from lost.error
        time.sleep(self._pause)
        self._pause = min(max(0.05, self._pause * 1.6), 2.0)


class Connector:
    def __init__(self, url: str, patience: float) -> None:
        self._params = address.parse(url)
        self.place = address.place(self._params)
        self.patience = patience
        self._was_reached = False
        self._may_prepare = True
        self._mutex = threading.Lock()

    def connect(self) -> Connection:
        """A new connection, on which every statement is its own transaction unless it says BEGIN.

        Raises:
            Lost: the server cannot be reached now, but could be before.
            StoreUnreachable: it never could.
            StoreRefused: it is too old.
        """
        connection: Connection | None = None
        try:
            connection = Connection.connect(**self._params, autocommit=True, prepare_threshold=None)
            self._check_version(connection)
            connection.isolation_level, connection.read_only = psycopg.IsolationLevel.READ_COMMITTED, False
            if self._may_prepare and is_direct(connection):
                connection.execute(_KEEP_TO_INDEXES)
                connection.may_prepare = True
        except psycopg.Error as error:
            if connection is not None:
                connection.close()
            if self._was_reached:
                raise Lost(error) from error
            raise self.unreachable(error) from error
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        self._was_reached = True
        return connection

    def _check_version(self, connection: Connection) -> None:
        have = connection.info.server_version
        if have < OLDEST_SERVER * 10_000:
            raise StoreRefused(
                f"{self.place} is PostgreSQL {have // 10_000}; perdure needs {OLDEST_SERVER} or newer",
                kept="the database, untouched",
                do=f"upgrade the server to PostgreSQL {OLDEST_SERVER} or newer, or use another one",
            )

    def persist(self, act: Callable[[], T]) -> T:
        """Do it; as often as its connection is lost, do it again, while there is patience."""
        patience = Patience(self)
        while True:
            try:
                return act()
            except Lost as lost:
                patience.wait(lost)

    # ── what an error means ─────────────────────────────────────────────────────────────────────

    def explain(self, error: Exception, connection: Connection) -> Exception:
        """Lost, when a new connection may help; else the same trouble as callers know it."""
        if isinstance(error, psycopg.Error) and error.sqlstate in trouble.NOT_PREPARED:
            self._may_prepare = False
            return Lost(error)
        return Lost(error) if trouble.is_lost(error, connection) else self.in_our_words(error)

    def in_our_words(self, error: Exception) -> Exception:
        return trouble.in_our_words(error, self.place, self._params)

    def unreachable(self, error: Exception, tried: float = 0.0, kept: str = "") -> PerdureError:
        return trouble.unreachable(error, self.place, self._params, tried=tried, kept=kept)


def is_direct(connection: psycopg.Connection[Any]) -> bool:
    """Whether the process that answers is the one that greeted us, so that nobody stands in between."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] == connection.info.backend_pid
