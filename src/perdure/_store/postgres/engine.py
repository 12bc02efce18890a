"""The scale-out engine: one PostgreSQL database, written and read by many processes on many machines.

Nothing that we rely on outlives a transaction on the server: no session settings, locks or listeners (where
one can listen, one looks sooner, that is all). So it works through PgBouncer in transaction mode. All our
tables are in the schema `perdure`.

Owns the readers and the housekeeping. Writing is in writer.py, what a verb does in `queries/`, one
statement each: the first part carries the verb's condition, and the rest is made from what it returned.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

import psycopg

from perdure._store.contract import Again, OldReader, Reading
from perdure._store.interrupts import is_interruptible
from perdure._store.postgres import batch_plan as plan
from perdure._store.postgres import error_translation as trouble
from perdure._store.postgres import fork
from perdure._store.postgres import schema_upgrade as form
from perdure._store.postgres.connector import PATIENCE_SECONDS, Connection, Connector, Lost
from perdure._store.postgres.notifications import CHANNEL, PostgresLine
from perdure._store.postgres.wire import Statement, Wire
from perdure._store.postgres.writer import Writer
from perdure._store.rows import Params, Row
from perdure._store.write import Write
from perdure.errors import PerdureError

T = TypeVar("T")

# The reader threads of a process are few; more connections than they need are not kept.
_IDLE_READERS = 8
LONG_MS = 10 * 60_000  # a transaction that is open for longer is told

# Every verb finds its rows by their keys. The planner, left to itself, plans some of them anew each time, because it
# takes an array for a long one: a third of the time of a small batch.
_KEEP_PLANS = b"SELECT set_config('plan_cache_mode', 'force_generic_plan', false)"

# The machine of a client may vanish in the middle of what it sends. The server then waits for the rest, with the rows
# of the batch locked, and none of its time-outs counts there: it has to ask whether there still is a machine. By itself
# it would after two hours.
_ASK_FOR_US = b"""
    SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
           set_config('tcp_keepalives_count', '3', false)
"""

_TABLES = b"SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'perdure' ORDER BY tablename"
_SIZE = b"""
    SELECT COALESCE(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
    WHERE relnamespace = to_regnamespace('perdure') AND relkind = 'r'
"""


class PostgresEngine:
    kind = "postgres"
    is_local = False

    def __init__(self, url: str, *, patience: float = PATIENCE_SECONDS) -> None:
        self._connector = Connector(url, patience)
        self.place = self._connector.place
        self._writer = Writer(self._connector, self._open_writer)
        self._readers: list[Wire] = []
        self._line = PostgresLine(self._connector, self._notify)
        self._is_closed = False
        self._is_ready = False  # the schema is there, in the form we know
        self._mutex = threading.Lock()
        self._preparing = threading.Lock()

    def be_hasty(self, patience: float) -> None:
        """Try for so many seconds to reach a server that is away; after that, tell further callers at once."""
        self._connector.patience, self._connector.is_hasty = patience, True

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def commit(self, writes: Sequence[Write]) -> list[Row | None]:
        with self._errors():
            if not self._is_ready:
                self._writer.hang_up()  # opened anew, it is made ready
            return self._writer.commit(writes)

    def _open_writer(self) -> Connection:
        connection = self._connector.connect()
        try:
            connection.execute(_ASK_FOR_US)
            if connection.may_prepare:
                connection.execute(_KEEP_PLANS)
            self._make_ready(connection)
        except Exception as error:
            explained = self._connector.explain(error, connection)
            connection.close()
            raise explained from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_ready(self, connection: Connection) -> None:
        with self._preparing:
            if not self._is_ready:
                form.bring_up(connection, self.place)
                self._is_ready = True

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def query(self, name: str, params: Params) -> list[Row]:
        with self._errors():
            return self._connector.persist(lambda: self._read(plan.query(name), params))

    def at_one_moment(self, act: Callable[[Reading], T]) -> T:
        with self._errors():
            found = self._connector.persist(lambda: self._looked(act))
        return found()

    def _looked(self, act: Callable[[Reading], T]) -> Callable[[], T]:
        """What gives the result of `act`, or raises its own error, which is none of the connection's."""
        with self._reader() as reader:
            look = _Look(reader if self._finds_tables(reader) else None)
            try:
                if look.reader is not None:
                    reader.run([plan.BEGIN_LOOK])
                found = _kept(act, look)
                if look.reader is not None:
                    reader.run([plan.COMMIT])
            except BaseException:
                reader.connection.close()  # in the middle of a transaction
                raise
            return found

    def _read(self, statement: Statement, params: Params) -> list[Row]:
        with self._reader() as reader:
            return reader.rows(*reader.run([(statement, params)])) if self._finds_tables(reader) else []

    def _finds_tables(self, reader: Wire) -> bool:
        """True if the store was ever written to; if so, it has its present form from here on."""
        if not self._is_ready:
            if not form.is_there(reader.connection):
                return False
            self._make_ready(reader.connection)
        return True

    @contextmanager
    def _reader(self) -> Iterator[Wire]:
        with self._mutex:
            reader = self._readers.pop() if self._readers else None
        reader = reader or Wire(self._connector.connect())
        try:
            yield reader
        except Exception as error:
            explained = self._connector.explain(error, reader.connection)
            if _is_a_handlers(error):
                reader.connection.close()  # in the middle of a read, perhaps
                raise
            if isinstance(explained, Lost):
                # Those that lie idle were lost with it, most likely.
                self._close_readers(reader)
            elif isinstance(error, psycopg.Error):
                self._keep(reader)
            else:
                reader.connection.close()
            raise explained from error
        except BaseException:
            reader.connection.close()
            raise
        self._keep(reader)

    def _keep(self, reader: Wire) -> None:
        with self._mutex:
            if len(self._readers) < _IDLE_READERS and not reader.connection.closed and not self._is_closed:
                self._readers.append(reader)
                return
        reader.connection.close()

    def _close_readers(self, *others: Wire) -> None:
        with self._mutex:
            idle, self._readers = self._readers, []
        for reader in (*idle, *others):
            reader.connection.close()

    def beat(self, worker: str) -> bool:
        """One statement that bypasses the committer, whose batch may be waiting for locked rows."""
        with self._errors():
            try:
                with self._reader() as reader:
                    reader.run([(plan.query("beat"), {"worker": worker})])
            except Lost as lost:
                raise self._connector.unreachable(lost.error) from lost
        return True

    # ── ringing ─────────────────────────────────────────────────────────────────────────────────

    def line(self) -> PostgresLine:
        return self._line

    def _notify(self, payload: str) -> None:
        with suppress(PerdureError, Lost, psycopg.Error), self._reader() as reader:
            reader.connection.execute(b"SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    # ── housekeeping ────────────────────────────────────────────────────────────────────────────

    def shrink(self) -> None:
        """Free the space of deleted rows for new ones, and forget committers that are long gone."""
        with self._errors():
            self._connector.persist(self._vacuum)

    def _vacuum(self) -> None:
        with self._reader() as reader:
            tables = [name for (name,) in reader.connection.execute(_TABLES).fetchall()]
            if "committers" in tables:
                reader.run([(plan.statement("forget_committers"), {})])
            for name in tables:
                reader.connection.execute(f"VACUUM (ANALYZE) perdure.{name}".encode(), prepare=False)

    def damage(self) -> list[str]:
        """PostgreSQL has no such check for a client; damage shows when it is read."""
        return []

    def has_checksums(self) -> bool:
        """True if the server finds flipped bits in its pages; True while there is no store."""
        rows = self._ask("has_checksums", {})
        return not rows or bool(rows[0][0])

    def old_readers(self) -> list[OldReader]:
        """Sessions of this database with a transaction that was begun long ago."""
        return [
            OldReader(
                f"server process {pid} ({user} from {client}{f', {program}' if program else ''})",
                f"has a transaction open for {milliseconds // 60_000} minutes ({state}): nothing deleted since then "
                "can be taken away, and tables grow",
                f"end that program's transaction, or: `SELECT pg_terminate_backend({pid})`",
            )
            for pid, user, program, client, state, milliseconds in self._ask("old_transactions", {"longer_ms": LONG_MS})
        ]

    def _ask(self, name: str, params: Params) -> list[Row]:
        with self._errors():
            return self._connector.persist(lambda: self._read(plan.statement(name), params))

    def bytes_used(self) -> int:
        with self._errors():
            return self._connector.persist(self._size)

    def _size(self) -> int:
        with self._reader() as reader:
            row = reader.connection.execute(_SIZE).fetchone()
            return int(row[0]) if row is not None else 0

    def close(self) -> None:
        self._is_closed = True  # a read still under way closes its own connection
        self._line.close()
        self._writer.close()
        self._close_readers()

    def mark_forked(self) -> None:
        self._writer.mark_forked()
        for reader in self._readers:
            fork.leave_alone(reader.connection)
        self._readers = []
        self._line.mark_forked()
        # The former holder of the lock does not exist here.
        self._mutex, self._preparing = threading.Lock(), threading.Lock()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """PostgreSQL's errors in our words, and psycopg's, which refuses some values itself."""
        try:
            yield
        except (PerdureError, Again) as error:
            if trouble.is_without_schema(error.__cause__):
                self._is_ready = False  # the tables were dropped; look again before the next call
            raise
        except Exception as error:
            if _is_a_handlers(error):
                raise
            raise self._connector.in_our_words(error) from error


class _Look:
    """Queries on one connection, in its transaction."""

    def __init__(self, reader: Wire | None) -> None:
        self.reader = reader  # None: there are no tables
        self.has_failed = False

    def query(self, name: str, params: Params) -> list[Row]:
        if self.reader is None:
            return []
        try:
            return self.reader.rows(*self.reader.run([(plan.query(name), params)]))
        except BaseException:
            self.has_failed = True
            raise


def _kept(act: Callable[[Reading], T], look: _Look) -> Callable[[], T]:
    """What gives the result of `act`, or raises its error; that of a query is raised at once."""
    try:
        found = act(look)
    except Exception as error:
        if look.has_failed:
            raise
        wrong = error

        def fail() -> T:
            raise wrong

        return fail
    return lambda: found


def _is_a_handlers(error: Exception) -> bool:
    """True if the error is not PostgreSQL's, psycopg's or a value's: a signal handler raised it while we read."""
    ours = (psycopg.Error, PerdureError, Again, Lost, ValueError, TypeError, LookupError, ArithmeticError, struct.error)
    return is_interruptible() and not isinstance(error, ours)
