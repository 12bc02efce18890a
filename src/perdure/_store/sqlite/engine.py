"""The embedded engine: one SQLite file, written by one process at a time, read by all.

Durability is `synchronous=FULL` in WAL mode: a commit that returned has been synced. The price of the
sync is shared by the committer's batches.

Owns the connections. The verbs are in `queries/`, one file each: the first statement has the verb's condition and gives
its answer; if it returns no row, nothing else runs.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from perdure._ground import crash_points as crash
from perdure._ground.config import is_there
from perdure._model import GENESIS, chain
from perdure._store import migrate
from perdure._store.contract import OldReader, Reading
from perdure._store.interrupts import apart
from perdure._store.rows import Params, Row
from perdure._store.sql import Queries, split
from perdure._store.sqlite import batch_verbs as sets
from perdure._store.sqlite import damaged_text as spoiled_text
from perdure._store.sqlite import location as place
from perdure._store.sqlite import log_check as wal
from perdure._store.sqlite import log_readers, page_checksums, page_damage
from perdure._store.sqlite.bulk_insert import BulkStatement
from perdure._store.sqlite.error_translation import Trouble
from perdure._store.sqlite.fork_gate import Gate
from perdure._store.sqlite.verb_plan import Plan, plan_of
from perdure._store.sqlite.write_turns import Turnstile
from perdure._store.sqlite.write_watch import SqliteLine
from perdure._store.write import Write
from perdure.errors import StoreDamaged, StoreUnavailable

T = TypeVar("T")

_HERE = Path(__file__).parent
# "perd": lets `file` and `doctor` tell our stores from other SQLite files.
BATCH_SECONDS = 0.05
PATIENCE_SECONDS = 30.0
# Read pages whatever their checksums.
_UNCHECKED = "PRAGMA checksum_verification = OFF"
log = logging.getLogger("perdure.store")
# A read of ours is over sooner; one that is not has been left open.
_BETWEEN_LOOKS = 0.2


def _chain(*values: Any) -> bytes:
    before, digest = values
    return chain(before, digest)


@contextmanager
def _transaction(cursor: apsw.Cursor) -> Iterator[None]:
    cursor.execute("BEGIN IMMEDIATE")
    try:
        yield
        crash.place("sqlite.before_commit")
        cursor.execute("COMMIT")
    except BaseException:
        if cursor.connection.in_transaction:
            cursor.execute("ROLLBACK")
        raise


class SqliteEngine:
    kind = "sqlite"
    is_local = True

    def __init__(self, path: Path, *, vfs: str | None = None, synchronous: str = "FULL") -> None:
        place.check_sqlite()
        self.path = path
        self.place = str(path)
        self._vfs, self._synchronous = vfs, synchronous
        self._queries = Queries(_HERE / "queries")
        self._plans: dict[str, Plan] = {}
        self._writer: apsw.Connection | None = None
        self._sets: sets.Sets  # of the writer
        self._turnstile = Turnstile(path, PATIENCE_SECONDS)
        self._readers: list[apsw.Connection] = []
        self._listening: apsw.Connection | None = None
        self._is_unchecked = False
        self._mutex, self._hearing = threading.Lock(), threading.Lock()
        self._gate, self._trouble = Gate(path, self.close), Trouble(self.place, PATIENCE_SECONDS)
        self._line = SqliteLine(self._data_version)

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def commit(self, writes: Sequence[Write]) -> list[Row | None]:
        with self._trouble, self._gate.writing:
            writer = self._writer or self._open_writer()
            with self._turnstile:
                if len(writes) == 1 and writes[0].verb == "beat":
                    return self._beat(writer, writes)
                return self._transact_or_again(writer, writes)

    def _beat(self, writer: apsw.Connection, writes: Sequence[Write]) -> list[Row | None]:
        """A beat alone, not heard by this process itself. No other process writes between the two looks."""
        before = self._version_heard()
        rows = self._transact_or_again(writer, writes)
        self._line.pass_over(before, self._version_heard())
        return rows

    def _transact_or_again(self, writer: apsw.Connection, writes: Sequence[Write]) -> list[Row | None]:
        try:
            return self._transact(writer, writes)
        except apsw.IOError as error:
            if not self._is_of_a_record(error):
                raise
            writer.execute(_UNCHECKED).fetchall()
            return self._transact(writer, writes)

    def _transact(self, writer: apsw.Connection, writes: Sequence[Write]) -> list[Row | None]:
        cursor = writer.cursor()
        if sets.are_few_entries(writes) and (rows := self._sets.append_few(cursor, writes)) is not None:
            return rows
        if not sets.are_all(writes) or sets.have_claims(writes):
            with _transaction(cursor):
                return self._run(cursor, writes)
        statements = self._sets.statements(cursor, writes)
        if statements is None or len(statements) > 1:
            with _transaction(cursor):
                return self._run_set(cursor, writes, statements)
        # A transaction of its own, for which the interpreter's lock is given away once.
        answers, left = self._sets.carry_out(cursor, writes, statements)
        if left:
            with _transaction(cursor):
                self._run_left(cursor, writes, answers, left)
        return answers

    def _run(self, cursor: apsw.Cursor, writes: Sequence[Write]) -> list[Row | None]:
        """Run writes in order until they are done, the transaction has lasted long enough, or an attempt's
        write was refused: what that attempt wrote after it must not be in."""
        rows: list[Row | None] = []
        end = time.monotonic() + BATCH_SECONDS
        while len(rows) < len(writes):
            at = len(rows)
            together = sets.stretch(writes, at)
            if together:
                rows += self._run_set(cursor, together, self._sets.statements(cursor, together))
            else:
                rows.append(self._run_one(cursor, writes[at]))
            if any(row is None and write.ordered for row, write in zip(rows[at:], writes[at:], strict=False)):
                break
            if time.monotonic() > end:
                break
        return rows

    def _run_set(
        self, cursor: apsw.Cursor, writes: Sequence[Write], statements: Sequence[BulkStatement] | None
    ) -> list[Row | None]:
        rows: list[Row | None] = [None] * len(writes)
        left: Sequence[int] = range(len(writes))
        if statements is not None:
            rows, left = self._sets.carry_out(cursor, writes, statements)
        self._run_left(cursor, writes, rows, left)
        return rows

    def _run_left(
        self, cursor: apsw.Cursor, writes: Sequence[Write], rows: list[Row | None], left: Sequence[int]
    ) -> None:
        """Run those, one by one. Writes of an attempt after a refused one are refused as well."""
        refused: set[int] = set()
        for number in left:
            write = writes[number]
            if refused and id(write.fence) in refused:
                rows[number] = None
            else:
                rows[number] = self._run_one(cursor, write)
                if rows[number] is None and write.ordered:
                    refused.add(id(write.fence))

    def _run_one(self, cursor: apsw.Cursor, write: Write) -> Row | None:
        plan = self._plan(write.verb)
        params, execute = write.params, cursor.execute
        self._sets.forget(params.get("uid"))
        if plan.begins:
            params = {**params, "head": chain(GENESIS, params["digest"])}
        row: Row | None
        if plan.answer:
            execute(plan.first, params)
            row = (params[plan.answer],) if cursor.connection.changes() else None
        else:
            row = next(iter(execute(plan.first, params).fetchall()), None)
        if row is not None:
            for needed, statement in plan.others:
                if not needed or params[needed] is not None:
                    execute(statement, params)
        return row

    def _plan(self, verb: str) -> Plan:
        plan = self._plans.get(verb)
        if plan is None:
            plan = self._plans[verb] = plan_of(verb, self._queries[verb])
        return plan

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def query(self, name: str, params: Params) -> list[Row]:
        with self._trouble, self._gate.use():
            return self._again_if_damaged(lambda: self._read(name, params))

    def at_one_moment(self, act: Callable[[Reading], T]) -> T:
        with self._trouble, self._gate.use():
            return self._again_if_damaged(lambda: self._looked(act))

    def _again_if_damaged(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except apsw.IOError as error:
            if not self._is_of_a_record(error):
                raise
            with self._mutex:
                self._readers.clear()  # they still refuse such pages; they are closed with their last reference
            return read()

    def _looked(self, act: Callable[[Reading], T]) -> T:
        with self._reader() as reader:
            if reader is None:
                return act(_Look(self, None))
            reader.execute("BEGIN")  # the first query chooses the moment; if one fails, the reader is closed
            found = act(_Look(self, reader))
            reader.execute("COMMIT")
            return found

    def _read(self, name: str, params: Params) -> list[Row]:
        with self._reader() as reader:
            return self._rows(reader, name, params)

    def _rows(self, reader: apsw.Connection | None, name: str, params: Params) -> list[Row]:
        if reader is None:
            return []
        statement = self._queries[name][0]
        try:
            return reader.execute(statement, params).fetchall()
        except UnicodeDecodeError:
            return spoiled_text.read_rows(reader, statement, params)

    def _is_of_a_record(self, error: apsw.IOError) -> bool:
        """True if a page is refused for the sake of a record that can say itself that it is damaged. From then on this
        process reads pages whatever their checksums."""
        if not page_damage.is_of_a_page(error):
            return False
        if not self._is_unchecked:
            if page_damage.has_other_damage(self.path):
                return False
            log.warning("%s: a record was damaged, or changed by another program; see `perdure doctor`", self.place)
            self._is_unchecked = True
        return True

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection | None]:
        with self._mutex:
            reader = self._readers.pop() if self._readers else None
        if reader is None:
            if self._writer is None:
                if not is_there(self.path):
                    yield None
                    return
                self._open_writer()  # migrates first, so that every reader finds the schema it expects
            reader = self._connect()
            reader.execute("PRAGMA query_only = ON")
        try:
            yield reader
        except BaseException:
            reader.close(True)  # another thread may be in the middle of a read
            raise
        with self._mutex:
            self._readers.append(reader)

    def beat(self, worker: str) -> bool:
        """The file has one writer at a time: a beat beside the others would wait for the same turn."""
        return False

    def line(self) -> SqliteLine:
        return self._line

    def _data_version(self) -> int:
        """A number that changes when another connection has written. It is valid for one connection."""
        with self._trouble, self._gate.use():
            if self._listening is None:
                if self._writer is None:
                    return 0  # nothing here to hear yet
                self._listening = self._connect()
            return self._version_heard()

    def _version_heard(self) -> int:
        with self._hearing:
            if self._listening is None:
                return 0
            version: Any = self._listening.execute("PRAGMA data_version").fetchall()[0][0]
            return int(version)

    # ── opening ─────────────────────────────────────────────────────────────────────────────────

    def _open_writer(self) -> apsw.Connection:
        return apart(self._open_writer_here)

    def _open_writer_here(self) -> apsw.Connection:
        with self._mutex:
            if self._writer is None:
                self._gate.check()
                place.check_folder(self.path.resolve().parent)
                place.make_room(self.path)
                self._vfs = self._vfs or page_checksums.find_vfs(self.path)
                try:
                    self._turnstile.open()
                    # Two processes may open a new store at once: one makes it, the other then finds it made.
                    with self._turnstile:
                        self._writer = self._prepared()
                except BaseException:
                    self._turnstile.close()
                    raise
            return self._writer

    def _prepared(self) -> apsw.Connection:
        try:
            return self._prepare(self._connect_whole())
        except apsw.IOError as error:
            if not self._is_of_a_record(error):
                raise
            return self._prepare(self._connect_whole())

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), vfs=self._vfs, statementcachesize=512)
        connection.set_busy_timeout(int(PATIENCE_SECONDS * 1000))
        if self._is_unchecked:
            connection.execute(_UNCHECKED).fetchall()
        connection.execute(f"PRAGMA synchronous = {self._synchronous}").fetchall()
        connection.execute("PRAGMA mmap_size = 0").fetchall()
        connection.create_scalar_function("chain", _chain, 2, deterministic=True)
        return connection

    def _connect_whole(self) -> apsw.Connection:
        """A connection to a store of which nothing that was acknowledged is missing, as far as its log tells."""
        connection = self._connect()
        try:
            # Closing the last connection removes the log, which must not happen while it holds unreadable pages.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            missing = wal.what_is_missing(self.path, connection)
            if missing:
                raise StoreDamaged(
                    f"{self.place} lacks what was written last: {missing}",
                    kept="the file and its log, unchanged; nothing was run",
                    do="restore the store from a backup. To go on without those transactions instead, and have their "
                    f"effects done again, copy the store away and open it once by `sqlite3 {self.place} .tables`",
                )
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: apsw.Connection) -> apsw.Connection:
        self._check_owner(connection)  # before anything is changed: the journal mode stands in the file
        page_checksums.reserve(connection)
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchall()[0][0]
        if mode != "wal":
            raise StoreUnavailable(
                f"{self.place} cannot use a write-ahead log (journal mode stays {mode!r})",
                kept="the file as it was",
                do="put the store on a local disk",
            )
        self._migrate(connection)
        self._sets = sets.Sets(connection)
        return connection

    def _check_owner(self, connection: apsw.Connection) -> None:
        owner = connection.execute("PRAGMA application_id").fetchall()[0][0]
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]
        if owner != page_damage.APPLICATION_ID and (owner or tables):
            raise StoreUnavailable(
                f"{self.place} is a SQLite file of another program",
                kept="the file, unchanged",
                do="choose another path for perdure's store",
            )

    def _migrate(self, connection: apsw.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(page_damage.MIGRATIONS_TABLE)
            applied = {str(name) for (name,) in connection.execute("SELECT name FROM migrations").fetchall()}
            steps = migrate.pending(migrate.load(_HERE / "migrations"), applied, self.place)
            for step in steps:
                for statement in split(step.script):
                    connection.execute(statement).fetchall()
                connection.execute(
                    "INSERT INTO migrations (name, at) VALUES (?, ?)", (step.name, time.time_ns() // 1_000_000)
                )
            if steps:  # otherwise opening a store would write to it each time
                connection.execute(f"PRAGMA application_id = {page_damage.APPLICATION_ID}").fetchall()
            crash.place("sqlite.before_migrated")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    # ── housekeeping ────────────────────────────────────────────────────────────────────────────

    def shrink(self) -> None:
        """Give free pages back to the disk."""
        with self._trouble, self._gate.use():
            writer = self._writer or self._open_writer()
            with self._turnstile:
                writer.execute("VACUUM").fetchall()
                writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def damage(self) -> list[str]:
        """The damage that SQLite itself finds in the file."""
        with self._trouble, self._gate.use(), self._reader() as reader:
            if reader is None:
                return []
            reader.execute(_UNCHECKED).fetchall()
            found = [str(line) for (line,) in reader.execute("PRAGMA integrity_check").fetchall()]
            texts = list(spoiled_text.find_all(reader))
            if not self._is_unchecked:
                reader.execute("PRAGMA checksum_verification = ON").fetchall()
        return ([] if found == ["ok"] else found) + texts + page_damage.in_words(self.path)

    def has_checksums(self) -> bool:
        """True if a flipped bit in a page of the file is noticed."""
        return not is_there(self.path) or page_checksums.has_checksums(self.path)

    def old_readers(self) -> list[OldReader]:
        """Processes that have been reading the file as it was before the last commits, at two looks."""
        before = {reader[:2] for reader in log_readers.find_readers(self.path)}
        if not before:
            return []
        time.sleep(_BETWEEN_LOOKS)
        found = [reader for reader in log_readers.find_readers(self.path) if reader[:2] in before]
        return [
            OldReader(
                f"pid {reader.pid} ({log_readers.command_of(reader.pid)})",
                f"has a read transaction open since frame {reader.mark:,} of {reader.frames:,} of the write-ahead log, "
                "which grows until that ends",
                f"end its transaction, or the process: `kill {reader.pid}`",
            )
            for reader in found
        ]

    def adopt_copy(self) -> None:
        """Take the file as it is, made by a program that does not know the checksums of its pages.

        Raises:
            StoreDamaged: SQLite itself finds it damaged; nothing was changed.
        """
        with self._trouble:
            problems = page_checksums.renew(self.path)
        if problems:
            raise StoreDamaged(
                f"{self.place} is damaged: {'; '.join(problems[:3])}",
                kept="the file as it is",
                do="make the copy again, or restore the file from a backup",
            )

    def bytes_used(self) -> int:
        names = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(name.stat().st_size for name in names if name.exists())

    def close(self) -> None:
        with self._mutex:
            for connection in (*self._readers, self._listening):
                if connection is not None:
                    connection.close()
            if self._writer is not None:
                self._writer.close()
                self._turnstile.close()
            self._readers, self._writer, self._listening = [], None, None

    def mark_forked(self) -> None:
        """In the child of a fork: never close what the parent has open, not even at exit."""
        for connection in (self._writer, self._listening, *self._readers):
            if connection is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        # Their locks last as long as any process has them open, and the parent may be killed in its turn.
        self._turnstile.close()


class _Look(NamedTuple):
    """Queries on one connection, in its transaction."""

    engine: SqliteEngine
    reader: apsw.Connection | None  # None: there is no store yet

    def query(self, name: str, params: Params) -> list[Row]:
        return self.engine._rows(self.reader, name, params)
