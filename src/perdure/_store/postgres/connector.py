"""Connect to the server, and keep trying when it is unreachable.

A server that restarts or fails over is gone for some seconds. Whoever was connected before rides that
out here: the work in hand is done again on a new connection. An engine that never reached its server
says so at once instead: there the address is likely wrong, and nothing is under way to be saved.

Prepared statements belong to one server connection, and a pooler (PgBouncer in transaction mode) may
give us another one at any time. They are used only where the process that answers is the one that
greeted us (a pooler greets with a number of its own), and never again once a server did not know one.
A prepared statement keeps its plan, perhaps one made while its tables were nearly empty; so that such a
plan never reads a whole table, none may. That setting lives as long as the prepared statements do.

A server that was replaced by its standby may come back and still call itself a primary. Each promotion begins a new
timeline, so a server on an earlier timeline than one this process has been connected to is refused, and the other
hosts of the address are tried. A COMMIT that was not replicated although the server was told to wait for its standby
is announced by the server in a notice; `is_replicated` remembers it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
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


# The name of the server's function that waits for a standby, in every language of its messages.
_WAIT_FOR_STANDBY = "SyncRepWaitForLSN"
_TIMELINE = "SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"


class Connection(psycopg.Connection[Any]):
    """psycopg itself prepares nothing on it: what it has prepared it takes back at a ROLLBACK, and all else with it."""

    may_prepare = False  # by name, as wire.py does
    is_replicated = True  # False once the server gave up waiting for its standby, and committed all the same

    def watch_replication(self) -> None:
        self.add_notice_handler(self._look_at_notice)

    def _look_at_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.source_function == _WAIT_FOR_STANDBY:
            self.is_replicated = False


class Lost(Exception):
    """The connection is gone; what was under way may be done again on a new one."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class Patience:
    """The time to keep trying after a connection was lost."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._began: float | None = None
        self._pause = 0.0

    def wait(self, lost: Lost, *, kept: str = "") -> None:
        """Wait before the next try; the first one is immediate.

        Raises:
            StoreUnreachable: that was long enough.
        """
        now = time.monotonic()
        self._began = self._began or now
        if now + self._pause - self._began > self._connector.patience_now:
            self._connector.has_given_up = True
            raise self._connector.unreachable(lost.error, now - self._began, kept) from lost.error
        time.sleep(self._pause)
        self._pause = min(max(0.05, self._pause * 1.6), 2.0)


class Connector:
    def __init__(self, url: str, patience: float) -> None:
        self._params = address.parse(url)
        self.place = address.place(self._params)
        self.patience = patience
        self.is_hasty = False
        self.has_given_up = False  # a caller has, and no connection was made since
        self._was_reached = False
        self._may_prepare = True
        self._timeline = 0  # the latest that any server had
        self._mutex = threading.Lock()

    @property
    def patience_now(self) -> float:
        """How long a caller tries. A hasty one tries twice where another has given up, and waits for nothing: callers
        who wait one after the other would hold up all others."""
        return 0.0 if self.is_hasty and self.has_given_up else self.patience

    def connect(self) -> Connection:
        """A new connection, on which every statement is its own transaction unless it says BEGIN.

        Raises:
            Lost: the server cannot be reached now, but could be before.
            StoreUnreachable: it never could.
            StoreRefused: it is too old.
        """
        refusal: StoreRefused | None = None
        for params in self._addresses():
            try:
                connection = self._connect(params)
            except psycopg.Error as error:
                if refusal is not None:
                    continue  # that one does not answer, and an earlier one was refused
                if self._was_reached:
                    raise Lost(error) from error
                raise self.unreachable(error) from error
            refusal = self._refusal(connection)
            if refusal is None:
                self._was_reached, self.has_given_up = True, False
                return connection
            connection.close()
        assert refusal is not None
        raise Lost(refusal)

    def _addresses(self) -> Iterator[dict[str, Any]]:
        """The address as it is, then each of its hosts alone: libpq takes the first that calls itself a primary."""
        yield self._params
        yield from address.single_hosts(self._params)

    def _connect(self, params: dict[str, Any]) -> Connection:
        connection = Connection.connect(**params, autocommit=True, prepare_threshold=None)
        try:
            self._check_version(connection)
            connection.watch_replication()
            connection.isolation_level, connection.read_only = psycopg.IsolationLevel.READ_COMMITTED, False
            if self._may_prepare and is_direct(connection):
                connection.execute(_KEEP_TO_INDEXES)
                connection.may_prepare = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _refusal(self, connection: Connection) -> StoreRefused | None:
        """Why this server must not be written to, although it calls itself a primary."""
        timeline = timeline_of(connection)
        if timeline is None:
            return None
        with self._mutex:
            latest = self._timeline = max(self._timeline, timeline)
        if timeline == latest:
            return None
        return StoreRefused(
            f"{connection.info.host} is a former primary: it is on timeline {timeline}, and this process has used "
            f"timeline {latest}",
            kept="all that was acknowledged, on the server that was promoted; nothing was written to this one",
            do="make the former primary a standby (pg_rewind, pg_basebackup), and name both hosts in the address",
        )

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


def timeline_of(connection: psycopg.Connection[Any]) -> int | None:
    """The timeline that the server writes to; None where it cannot be asked (another engine, a standby)."""
    try:
        row = connection.execute(_TIMELINE).fetchone()
    except psycopg.Error:
        if connection.closed or connection.broken:
            raise
        return None
    return None if row is None or row[0] is None else int(row[0], 16)


def is_direct(connection: psycopg.Connection[Any]) -> bool:
    """True if the process that answers is the one that greeted us, so that no pooler is in between."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] == connection.info.backend_pid
