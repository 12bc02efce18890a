"""Send many statements in one go, and read what each answered: libpq's pipeline, below psycopg's cursors.

A cursor is made for a person's statement: it adapts any value, guesses its type and looks up whether to prepare it,
once more for each of the half dozen statements of a batch. Ours are known beforehand, and so are the types of their
values: that costs a quarter of the time here (decision 0019).

A value goes without a type, because psycopg would name one for each (a small number is a smallint, a missing one is
unknown), and each mix of types is another prepared statement to the server. Our SQL says the types itself, and by them
it is known how a value goes.
"""

from __future__ import annotations

import re
import select
from collections.abc import Iterable
from operator import index

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from perdure._store.postgres.connector import Connection
from perdure._store.rows import Params, Row

# Every parameter says its type.
_PARAMETER = re.compile(r"%\((\w+)\)s(::\w+(?:\[\])?)")
_TEXT, _BINARY = 0, 1
# In libpq's text form a NUL would be the end of a value. In binary a text is its bytes, and the server refuses a NUL;
# a jsonb has the number of its form before them. Whole numbers go as text.
_TEXTS = {"::text": b"", "::json": b"", "::jsonb": b"\1"}
_NUMBERS = {"::bigint", "::int"}
_FINE = (int(ExecStatus.TUPLES_OK), int(ExecStatus.COMMAND_OK))
_ABORTED, _SYNC = int(ExecStatus.PIPELINE_ABORTED), int(ExecStatus.PIPELINE_SYNC)

Value = bytes | None


class Statement:
    """A statement by its name, with `%(parameters)s::type` by theirs."""

    __slots__ = ("_order", "formats", "name", "text")

    def __init__(self, name: str, sql: str) -> None:
        types: dict[str, str] = {}  # the first one said counts, to the server too
        for found in _PARAMETER.finditer(sql):
            types.setdefault(found[1], found[2])
        numbers = {parameter: number for number, parameter in enumerate(types, 1)}
        text = _PARAMETER.sub(lambda found: f"${numbers[found[1]]}{found[2]}", sql)
        self.name, self.text = name.encode(), text.encode()
        self.formats = [_TEXT if type_ in _NUMBERS else _BINARY for type_ in types.values()]
        self._order = tuple((name, _TEXTS.get(type_), type_ in _NUMBERS) for name, type_ in types.items())

    def values(self, params: Params) -> list[Value]:
        values: list[Value] = []
        for name, before, is_number in self._order:
            value = params[name]
            if value is None:
                pass
            elif before is not None:
                value = before + value.encode()
            elif is_number:
                value = b"%d" % index(value)
            elif not isinstance(value, bytes):
                raise TypeError(f"{name} of {self.name.decode()} is of type {type(value).__name__}")
            values.append(value)
        return values


Asked = tuple[Statement, Params]


class Wire:
    """A connection; one caller at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._is_preparing = connection.may_prepare
        self._prepared: set[bytes] = set()
        self._transformer = Transformer(connection)
        self._poll = select.poll()

    def run(self, asked: Iterable[Asked]) -> list[PGresult]:
        """Send them all, then wait for their results.

        Raises:
            psycopg.Error: the first one; nothing that was asked after it was run.
            Exception: of a handler that was called while we waited: the connection is closed.
        """
        # Before anything is sent: a value that cannot be sent leaves nothing half said.
        given = [(statement, statement.values(params)) for statement, params in asked]
        line = self.connection.pgconn
        try:
            line.enter_pipeline_mode()
            if self._is_preparing:
                if unknown := [statement for statement, _ in given if statement.name not in self._prepared]:
                    self._prepare(line, unknown)
                for statement, values in given:
                    line.send_query_prepared(statement.name, values, statement.formats, _BINARY)
            else:
                for statement, values in given:
                    line.send_query_params(statement.text, values, None, statement.formats, _BINARY)
            return self._results(line)
        finally:
            self._leave(line)

    def _leave(self, line: PGconn) -> None:
        """Back to where cursors work. What is still to be read would be taken for the next answer: rather none."""
        if line.status == ConnStatus.OK:
            try:
                line.exit_pipeline_mode()
            except psycopg.Error:
                self.connection.close()

    def _prepare(self, line: PGconn, statements: Iterable[Statement]) -> None:
        # One by one: of several, one that fails would leave it open which of the others are there.
        for statement in statements:
            if statement.name not in self._prepared:  # it may be asked for twice
                line.send_prepare(statement.name, statement.text)
                self._results(line)
                self._prepared.add(statement.name)

    def rows(self, result: PGresult) -> list[Row]:
        count = result.ntuples
        if not count:
            return []
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, count, tuple)

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────

    def _results(self, line: PGconn) -> list[PGresult]:
        """The results of everything that was sent."""
        line.pipeline_sync()
        self._flush(line)
        results: list[PGresult] = []
        error: psycopg.Error | None = None
        while True:
            while line.is_busy():
                self._wait(line, select.POLLIN)
                line.consume_input()
            result = line.get_result()
            if result is None:  # one of them has ended
                if line.status != ConnStatus.OK:
                    raise error or psycopg.OperationalError(line.get_error_message())
                continue
            status = result.status
            if status in _FINE:
                results.append(result)
            elif status == _SYNC:
                break
            elif status != _ABORTED and error is None:
                error = psycopg.errors.error_from_result(result)
        if error is not None:
            raise error
        return results

    def _flush(self, line: PGconn) -> None:
        while line.flush():
            # It may be waiting for us to read before it reads on.
            if self._wait(line, select.POLLIN | select.POLLOUT) & ~select.POLLOUT:
                line.consume_input()

    def _wait(self, line: PGconn, events: int) -> int:
        self._poll.register(line.socket, events)
        return self._poll.poll()[0][1]
