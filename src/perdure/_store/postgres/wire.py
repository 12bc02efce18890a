"""Send many statements in one go, and read what each answered: libpq's pipeline, below psycopg's cursors.

A cursor is made for a person's statement: it adapts any value, guesses its type and looks up whether to prepare it,
once more for each of the half dozen statements of a batch. Ours are known beforehand, and so are the types of their
values: that costs a quarter of the time here (decision 0019).

A value goes without a type, because psycopg would name one for each (a small number is a smallint, a missing one is
unknown), and each mix of types is another prepared statement to the server. Our SQL says the types itself.
"""

from __future__ import annotations

import re
import select
from collections.abc import Iterable, Sequence

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from perdure._store.contract import Params, Row
from perdure._store.postgres.connector import Connection

_NAMED = re.compile(r"%\((\w+)\)s")
_TEXT, _BINARY = 0, 1
_FINE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)

Values = tuple[list[bytes | None], list[int]]  # and their formats


class Statement:
    """A statement by its name, with `%(parameters)s` by theirs."""

    __slots__ = ("_order", "name", "text")

    def __init__(self, name: str, sql: str) -> None:
        numbers: dict[str, int] = {}
        text = _NAMED.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", sql)
        self.name, self.text = name.encode(), text.encode()
        self._order = tuple(numbers)

    def values(self, params: Params) -> Values:
        values: list[bytes | None] = []
        formats: list[int] = []
        for name in self._order:
            value = params[name]
            if isinstance(value, str):
                formats.append(_TEXT)
                values.append(_raw(value))
            elif value is None:
                formats.append(_TEXT)
                values.append(None)
            elif isinstance(value, int):
                formats.append(_TEXT)
                values.append(b"%d" % value)
            elif isinstance(value, bytes):
                formats.append(_BINARY)
                values.append(value)
            else:
                raise TypeError(f"{name} of {self.name.decode()} is of type {type(value).__name__}")
        return values, formats


Asked = tuple[Statement, Params]


def _raw(text: str) -> bytes:
    raw = text.encode()
    if b"\0" in raw:  # libpq would take it for the end
        raise psycopg.DataError("a text for PostgreSQL cannot contain NUL (0x00) characters")
    return raw


class Wire:
    """A connection; one caller at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._is_preparing = connection.prepare_threshold is not None
        self._prepared: set[bytes] = set()
        self._transformer = Transformer(connection)
        self._poll = select.poll()

    def run(self, asked: Iterable[Asked]) -> list[PGresult]:
        """Send them all, then wait for their results.

        Raises:
            psycopg.Error: the first one; nothing that was asked after it was run.
        """
        # Before anything is sent: a value that cannot be sent leaves nothing half said.
        given = [(statement, statement.values(params)) for statement, params in asked]
        line = self.connection.pgconn
        line.enter_pipeline_mode()
        try:
            expected = self._send(line, given)
            line.pipeline_sync()
            self._flush(line)
            return self._read(line, expected)
        finally:
            if line.status == ConnStatus.OK:
                line.exit_pipeline_mode()

    def _send(self, line: PGconn, given: Sequence[tuple[Statement, Values]]) -> list[bytes | None]:
        """What will come back: None for what was asked for, the name of a statement that is being prepared."""
        expected: list[bytes | None] = []
        known = self._prepared.copy() if self._is_preparing else set[bytes]()
        for statement, (values, formats) in given:
            name = statement.name
            if not self._is_preparing:
                line.send_query_params(statement.text, values, None, formats, _BINARY)
            else:
                if name not in known:
                    known.add(name)
                    expected.append(name)
                    line.send_prepare(name, statement.text)
                line.send_query_prepared(name, values, formats, _BINARY)
            expected.append(None)
        return expected

    def _read(self, line: PGconn, expected: Sequence[bytes | None]) -> list[PGresult]:
        results: list[PGresult] = []
        error: psycopg.Error | None = None
        for name in expected:
            result = self._next(line)
            if result is None:
                raise error or psycopg.OperationalError(line.get_error_message())
            if result.status in _FINE:
                if name is None:
                    results.append(result)
                else:
                    self._prepared.add(name)
            elif result.status != ExecStatus.PIPELINE_ABORTED:
                error = error or psycopg.errors.error_from_result(result)
            self._next(line)  # the end of this one
        if self._next(line) is None and error is None:
            raise psycopg.OperationalError(line.get_error_message())
        if error is not None:
            raise error
        return results

    def rows(self, result: PGresult) -> list[Row]:
        count = result.ntuples
        if not count:
            return []
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, count, tuple)

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────

    def _flush(self, line: PGconn) -> None:
        while line.flush():
            # It may be waiting for us to read before it reads on.
            if self._wait(line, select.POLLIN | select.POLLOUT) & ~select.POLLOUT:
                line.consume_input()

    def _next(self, line: PGconn) -> PGresult | None:
        while line.is_busy():
            self._wait(line, select.POLLIN)
            line.consume_input()
        return line.get_result()

    def _wait(self, line: PGconn, events: int) -> int:
        self._poll.register(line.socket, events)
        return self._poll.poll()[0][1]
