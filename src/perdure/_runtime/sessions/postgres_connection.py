"""psycopg connections into a kept session.

Outside durable functions a connection is psycopg's own in all it does. Inside, a transaction outlives the attempt
(transaction_blocks.py), and each statement happens once per call (statements.py).
"""

from __future__ import annotations

import os
import select
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from typing import Any, Protocol, cast

import psycopg
from psycopg import errors as psycopg_errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import TransactionStatus
from psycopg.sql import Composable

from perdure._durable import UnitCall, current_attempt, step, unit_call
from perdure._ground.bridge import Call
from perdure._model import Verdict
from perdure._runtime.sessions import postgres_answers
from perdure._runtime.sessions.broken_links import mended
from perdure._runtime.sessions.lone_statements import note_lone
from perdure._runtime.sessions.statements import (
    IN_A_STEP,
    LONGEST_ANSWER,
    call_in_step,
    control_of,
    refuse,
    wait_for_journal,
)
from perdure._runtime.sessions.transaction_blocks import Over, check_unfinished, end_transaction, kept_block
from perdure.errors import ReplayDiverged, SessionLost, StatementUnanswered, TransactionLost
from perdure.keeper import digest_of, pgproxy

_ERRORS = [
    found for found in vars(psycopg_errors).values() if isinstance(found, type) and issubclass(found, psycopg.Error)
]


class KeptCursor(psycopg.AsyncCursor[Any]):
    """psycopg's cursor; in a durable function its statements happen once per call."""

    _about = b""  # a note to the proxy ahead of the next statement
    _is_answered = False  # the next statement does not reach the server

    async def execute(self, query: Any, params: Any = None, **how: Any) -> Any:
        connection, place = cast(KeptConnection, self._conn), unit_call()
        plainly = super().execute
        if place is None or not connection.session.is_once:
            return await plainly(query, params, **how)
        await connection.do_once(place, self, query, params, lambda: plainly(query, params, **how))
        return self

    def _execute_gen(self, *args: Any, **kwargs: Any) -> Any:
        connection, about = cast(KeptConnection, self._conn), self._about
        if about:
            if not self._is_answered:
                yield from connection._start_query()
            self._about = b""
            connection.is_answered = self._is_answered
            connection.tell(about)
        try:
            yield from super()._execute_gen(*args, **kwargs)
        finally:
            connection.is_answered = self._is_answered = False

    async def executemany(self, query: Any, params_seq: Iterable[Any], *, returning: bool = False) -> None:
        connection = cast(KeptConnection, self._conn)
        if unit_call() is None or not connection.session.is_once:
            await super().executemany(query, params_seq, returning=returning)
            return
        if returning:
            raise refuse(connection.label, "executemany(returning=True)", "execute the statement once for each row")
        rows = 0
        for params in params_seq:
            await self.execute(query, params)
            rows += max(self.rowcount, 0)
        self._rowcount = rows

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        connection = cast(KeptConnection, self._conn)
        connection.refuse_in_function("stream()", "use execute() and fetch the rows, in parts if there are many")
        return super().stream(*args, **kwargs)

    def copy(self, statement: Any, *args: Any, **kwargs: Any) -> Any:
        connection = cast(KeptConnection, self._conn)
        connection.refuse_in_function("COPY", "use INSERT, or do the COPY in an @effect with a connection of its own")
        return super().copy(statement, *args, **kwargs)


@lru_cache(maxsize=64)
def _kept(factory: type[Any]) -> type[Any]:
    """Derive from a foreign cursor class, so that its statements happen once too."""
    return factory if issubclass(factory, KeptCursor) else type(factory.__name__, (KeptCursor, factory), {})


class KeptSession(Protocol):
    """The session behind a connection. postgres.py implements it."""

    name: str
    verdict: Verdict
    blocks: dict[str, Any]
    ledger: str
    is_once: bool

    def refresh(self) -> dict[str, Any]: ...

    def commit_note(self) -> dict[str, Any]: ...

    def outcome_of(self, note: dict[str, Any], *, is_over: bool) -> tuple[str, str]: ...


class KeptConnection(psycopg.AsyncConnection[Any]):
    """psycopg's connection, into a kept session."""

    session: KeptSession
    over: Over | None = None
    block: str = ""
    depth: int = 0
    is_answered: bool = False
    is_fenced: bool = False

    def transaction(  # type: ignore[override]
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AbstractAsyncContextManager[Any]:
        place = unit_call()
        if place is None or savepoint_name is not None or force_rollback:
            return super().transaction(savepoint_name, force_rollback)
        if not place.is_body:
            return kept_block(place.attempt, self, _asks_to_be_undone)
        if not self.is_once:
            return super().transaction()
        if self.info.transaction_status == TransactionStatus.IDLE:
            raise refuse(self.label, "a transaction of its own inside a step", IN_A_STEP)
        return self._savepoint(place)

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        if self.over is not None and (not self.is_once or unit_call() is None):
            raise self.over.error(self.label)
        if args or kwargs.get("name"):
            self.refuse_in_function("a named cursor", "fetch the rows of execute(), in parts if there are many")
        before = self.cursor_factory
        self.cursor_factory = _kept(cast(Any, before))
        try:
            return super().cursor(*args, **kwargs)
        finally:
            self.cursor_factory = before

    def pipeline(self) -> Any:
        self.refuse_in_function("a pipeline", "execute the statements one after the other")
        return super().pipeline()

    async def commit(self) -> None:
        await self._end("COMMIT", super().commit)

    async def rollback(self) -> None:
        await self._end("ROLLBACK", super().rollback)

    async def _end(self, how: str, act: Callable[[], Awaitable[None]]) -> None:
        place = unit_call()
        if place is None or not self.is_once:
            await act()
            return
        if place.is_body:
            raise refuse(self.label, f"{how} inside a step", IN_A_STEP)
        if self.depth:
            raise psycopg.ProgrammingError(f"{how} inside `async with con.transaction()`: the block does that itself")
        await end_transaction(place.attempt, self, how, lambda: self._ended(act))

    @mended
    async def _ended(self, act: Callable[[], Awaitable[None]]) -> None:
        await act()

    async def __aexit__(self, *error: Any) -> None:
        attempt = current_attempt()
        if attempt is not None and attempt.is_ending:
            self.cut_off()
            return
        await super().__aexit__(*error)

    # ── statements ──────────────────────────────────────────────────────────────────────────────

    async def do_once(
        self, place: UnitCall, cursor: KeptCursor, query: Any, params: Any, act: Callable[[], Awaitable[Any]]
    ) -> None:
        """Carry a statement out, unless this call of it was carried out before."""
        text, digest = self._spelled(query, params)
        control = control_of(text)
        if place.is_body:
            if control:
                raise refuse(self.label, f"{control.upper()} inside a step", IN_A_STEP)
            await self._in_step(place, cursor, text, digest, act)
        elif control in ("commit", "rollback"):
            await (self.commit() if control == "commit" else self.rollback())
            await self._answer(cursor, postgres_answers.only_tag(control.upper()), act)
        elif control == "begin" and self.depth:
            raise psycopg.ProgrammingError("BEGIN inside `async with con.transaction()`")
        else:
            await self._in_function(cursor, text, digest, act)

    async def _in_function(self, cursor: KeptCursor, text: str, digest: str, act: Callable[[], Awaitable[Any]]) -> None:
        is_done, trouble = False, None

        async def carry_out() -> bytes:
            nonlocal is_done, trouble
            place = unit_call()
            assert place is not None
            try:
                await self._in_step(place, cursor, text, digest, act)
                is_done = True
                answer = postgres_answers.answer_of(cursor)
            except psycopg.Error as error:
                trouble = error
                raise
            if len(answer) > LONGEST_ANSWER:
                raise StatementUnanswered(
                    self.label, text, f"its answer of {len(answer)} bytes is too large to be kept"
                )
            return answer

        try:
            answer = await _statement(self.label, digest, carry_out)
        except BaseException:
            if trouble is not None:
                raise trouble from None  # with all that the server has said about it
            raise
        if not is_done:
            await self._answer(cursor, answer, act)

    @mended
    async def _in_step(
        self, place: UnitCall, cursor: KeptCursor, text: str, digest: str, act: Callable[[], Awaitable[Any]]
    ) -> None:
        if self.over is not None:
            raise self.over.error(self.label)
        path = place.next_path(self.label)
        block = self._block_of(path, text)
        if not block:
            await note_lone(place, self.label, self.session.ledger, path, text)
        await wait_for_journal(place, block)
        cursor._about = pgproxy.note(call_in_step(place, self.label, digest, text, block, path))
        try:
            await act()
        except psycopg.Error as error:
            if error.sqlstate == pgproxy.ANOTHER:
                known = error.diag.message_hint or "another statement"
                diverged = ReplayDiverged(place.attempt.task_id, place.attempt.cursor.last, known, text)
                raise place.attempt.poison(diverged) from None
            if error.sqlstate in (pgproxy.NOT_KEPT, pgproxy.UNCERTAIN, pgproxy.UNWRITTEN):
                raise StatementUnanswered(self.label, text, error.diag.message_primary or "") from None
            raise

    def _block_of(self, path: str, text: str) -> str:
        """The transaction that a statement belongs to, or begins."""
        if not self.block:
            is_alone = self.autocommit and control_of(text) != "begin"
            if self.info.transaction_status == TransactionStatus.IDLE and is_alone:
                return ""
            self.block = path
        return self.block

    @mended
    async def _answer(self, cursor: KeptCursor, answer: bytes, act: Callable[[], Awaitable[Any]]) -> None:
        """Have a statement answered as it was before, without the server."""
        cursor._about, cursor._is_answered = pgproxy.give(answer), True
        await act()

    @asynccontextmanager
    async def _savepoint(self, place: UnitCall) -> Any:
        """A block inside a step: a savepoint, made and ended once."""
        path = place.coming_path(self.label)
        name = f"perdure_{digest_of(path.encode())[:12]}"
        await self.execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException as error:
            if place.attempt.is_ending:
                raise
            await self._undo_savepoint(name, path)
            if not _asks_to_be_undone(error):
                raise
        else:
            await self.execute(f"RELEASE SAVEPOINT {name}")

    @mended
    async def _undo_savepoint(self, name: str, path: str) -> None:
        cursor = super().cursor()
        self.tell(pgproxy.undo(path))
        await psycopg.AsyncCursor.execute(cursor, f"ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}".encode())

    def _spelled(self, query: Any, params: Any) -> tuple[str, str]:
        """A statement's text, and what tells it from others with its values."""
        text = query.as_string(self) if isinstance(query, Composable) else query
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        names: Sequence[str] = ()
        values: list[Any] = []
        if isinstance(params, Mapping):
            names = sorted(params)
            values = [params[name] for name in names]
        elif params is not None:
            values = list(params)
        dumped = Transformer(self).dump_sequence(values, [PyFormat.AUTO] * len(values))
        parts = [b"-" if value is None else b"+" + bytes(value) for value in dumped]
        return text, digest_of(text.encode(), *map(str.encode, names), *parts)

    def _start_query(self) -> Any:
        if not self.is_answered:
            yield from super()._start_query()

    def tell(self, message: bytes) -> None:
        """Say something to the proxy, between two statements. It does not answer, so psycopg hears nothing of it."""
        link, view = self.pgconn.socket, memoryview(message)
        while view:
            try:
                view = view[os.write(link, view) :]
            except BlockingIOError:
                select.select([], [link], [])
            except OSError:
                return  # the next statement will say so

    def refuse_in_function(self, what: str, do: str) -> None:
        if unit_call() is not None and self.session.is_once:
            raise refuse(self.label, what, do)

    # ── for blocks ──────────────────────────────────────────────────────────────────────────────

    @property
    def label(self) -> str:
        return self.session.name

    @property
    def unit_identity(self) -> str:
        """The identity of this argument in a recorded step."""
        return f"postgres:{self.session.name}"

    @property
    def is_once(self) -> bool:
        return self.session.is_once

    async def is_broken_by(self, error: Exception) -> bool:
        if isinstance(error, psycopg.Error) and error.diag.message_hint == pgproxy.FENCED:
            self.is_fenced = True
        is_gone = isinstance(error, SessionLost) or (isinstance(error, psycopg.OperationalError) and self.broken)
        return is_gone and not self.is_fenced

    async def come_back(self) -> None:
        """A connection was made: find the transaction that an earlier attempt has left open."""
        attempt = current_attempt()
        if attempt is not None and self.is_once:
            await check_unfinished(attempt, self)

    @mended
    async def known(self) -> dict[str, Any]:
        await Call(self.session.refresh)
        return {**self.session.blocks, "lost": self.session.verdict.reason}

    @mended
    async def enter_block(self, line: str, number: int) -> None:
        if self.info.transaction_status == TransactionStatus.IDLE:
            mark = f"/* perdure.block {line} {number} */"
            await self._plainly(f"BEGIN {mark}" if self.autocommit else mark)
        else:
            await self._plainly(f"SAVEPOINT perdure_{number}")

    @mended
    async def commit_note(self) -> dict[str, Any]:
        if self.info.transaction_status != TransactionStatus.INTRANS:
            return {}
        note = await Call(self.session.commit_note)
        if refused := note.pop("refused", ""):
            await super().rollback()
            raise TransactionLost(self.label, f"the server refused a question before its COMMIT: {refused}")
        return note

    @mended
    async def outcome_of(self, note: dict[str, Any], *, is_over: bool) -> tuple[str, str]:
        return await Call(lambda: self.session.outcome_of(note, is_over=is_over))

    @mended
    async def commit_block(self, number: int) -> None:
        if not await self._is_outer(number):
            await self._plainly(f"RELEASE SAVEPOINT perdure_{number}")
        elif self.info.transaction_status == TransactionStatus.INERROR:
            await super().rollback()
            raise TransactionLost(self.label, "a statement in it had failed")
        else:
            await super().commit()

    @mended
    async def undo_block(self, number: int) -> None:
        if await self._is_outer(number):
            await super().rollback()
        else:
            await self._plainly(f"ROLLBACK TO SAVEPOINT perdure_{number}")
            await self._plainly(f"RELEASE SAVEPOINT perdure_{number}")

    @mended
    async def roll_back(self) -> None:
        await super().rollback()

    async def _plainly(self, sql: str) -> None:
        await psycopg.AsyncCursor.execute(super().cursor(), sql.encode())

    async def _is_outer(self, number: int) -> bool:
        opened = (await self.known())["open"]
        return opened[:1] == [number] or number not in opened

    def cut_off(self) -> None:
        self.pgconn.finish()


@step(name="session.sql", identity=lambda label, digest, _: (label, digest), raises=_ERRORS)
async def _statement(label: str, digest: str, carry_out: Callable[[], Awaitable[bytes]]) -> bytes:
    """A statement that stands in the function itself; its answer is on record."""
    return await carry_out()


def _asks_to_be_undone(error: BaseException) -> bool:
    return isinstance(error, psycopg.Rollback) and error.transaction is None
