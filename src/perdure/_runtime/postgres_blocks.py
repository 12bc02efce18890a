"""Connections into a kept session, and what `async with con.transaction():` means in a durable function.

Outside durable functions it is psycopg's own. Inside, a block outlives the attempt: the next attempt, replaying,
walks into it again and goes on in the same transaction. For that each block is numbered and recorded:

    entered   in the journal, before its BEGIN; a block that the journal does not know is rolled back and begun anew
    left      in the journal, after its COMMIT; in between, the proxy knows how it ended

A block that has ended is walked through without a connection, and one whose transaction is lost too: the statements
in it are recorded steps, and whoever tries a new one is told.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus

from perdure._durable import Run, current_run, step
from perdure._ground.hop import Call
from perdure.errors import TransactionLost

if TYPE_CHECKING:
    from perdure._runtime.postgres import PostgresSession


_COMMITTED = "it was committed by an earlier attempt"


class KeptConnection(psycopg.AsyncConnection[Any]):
    """psycopg's connection, into a kept session."""

    session: PostgresSession
    _over: str = ""  # why the block that is walked through has no transaction

    def transaction(  # type: ignore[override]
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AbstractAsyncContextManager[Any]:
        run = current_run()
        if run is None or savepoint_name is not None or force_rollback:
            return super().transaction(savepoint_name, force_rollback)
        return self._kept_block(run)

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        if self._over:
            raise TransactionLost(self.session.name, self._over)
        return super().cursor(*args, **kwargs)

    async def __aexit__(self, *error: Any) -> None:
        run = current_run()
        if run is not None and run.is_ending:
            self.pgconn.finish()  # neither commit nor roll back: the next attempt goes on here
            return
        await super().__aexit__(*error)

    @asynccontextmanager
    async def _kept_block(self, run: Run) -> AsyncIterator[None]:
        number = _next_number(run, self.session)
        is_new: list[bool] = []

        async def begin() -> None:
            is_new.append(True)
            await self._begin(run, number)

        await _enter(self.session.name, number, begin)
        over = "" if is_new else await self._why_over(run, number)
        before, self._over = self._over, over or self._over
        try:
            yield
        except BaseException as error:
            self._over = before
            if run.is_ending:
                self.pgconn.finish()  # neither commit nor roll back: the next attempt goes on here
                raise
            if not over:
                await self._roll_back(number)
            await _leave(self.session.name, number, "")
            if isinstance(error, psycopg.Rollback) and error.transaction is None:
                return
            raise
        self._over = before
        if not over:
            await self._commit(run, number)
        await _leave(self.session.name, number, "" if over == _COMMITTED else over)

    async def _why_over(self, run: Run, number: int) -> str:
        """Empty when the recorded block is open in this session; else how it ended."""
        await Call(self.session.refresh)
        blocks = self.session.blocks
        if blocks["line"] != _line(run) or number > blocks["last"]:
            return f"its session is lost: {self.session.verdict.reason}"
        if number in blocks["open"]:
            return ""
        ended = blocks["ended"]
        if ended.get("number") != number or ended["how"] == "COMMIT":
            return _COMMITTED
        return str(ended["how"])

    async def _begin(self, run: Run, number: int) -> None:
        """Begin a block that the journal does not know yet; whatever an attempt before had done in it is undone."""
        await Call(self.session.refresh)
        if number in self.session.blocks["open"] and self.session.blocks["line"] == _line(run):
            await self._roll_back(number)
        if self.info.transaction_status == TransactionStatus.IDLE:
            mark = f"/* perdure.block {_line(run)} {number} */"
            await self.execute(f"BEGIN {mark}" if self.autocommit else mark)
        else:
            await self.execute(f"SAVEPOINT perdure_{number}")

    async def _roll_back(self, number: int) -> None:
        await Call(self.session.refresh)
        if self.session.blocks["open"][:1] == [number] or number not in self.session.blocks["open"]:
            await self.rollback()
        else:
            await self.execute(f"ROLLBACK TO SAVEPOINT perdure_{number}")
            await self.execute(f"RELEASE SAVEPOINT perdure_{number}")

    async def _commit(self, run: Run, number: int) -> None:
        """End a block well: what was recorded in it is on disk before the COMMIT goes out."""
        await run.flush()
        await Call(self.session.refresh)
        if self.session.blocks["open"][:1] != [number]:
            await self.execute(f"RELEASE SAVEPOINT perdure_{number}")
        elif self.info.transaction_status == TransactionStatus.INERROR:
            await self.rollback()
            raise TransactionLost(self.session.name, "a statement in it had failed")
        else:
            await self.commit()


def _line(run: Run | None) -> str:
    return f"{run.uid}/{run.line}" if run is not None else ""


_numbers: weakref.WeakKeyDictionary[Run, dict[str, int]] = weakref.WeakKeyDictionary()


def _next_number(run: Run, session: PostgresSession) -> int:
    """The how-manieth block of this attempt it is, in this session."""
    numbers = _numbers.setdefault(run, {})
    numbers[session.name] = numbers.get(session.name, 0) + 1
    return numbers[session.name]


def _identity(session: str, number: int, *_: Any) -> tuple[str, int]:
    return session, number


@step(name="postgres.enter", flush=True, identity=_identity)
async def _enter(session: str, number: int, begin: Callable[[], Awaitable[None]]) -> int:
    """Recorded when a block has begun; its body runs only when the journal does not know the block."""
    await begin()
    return number


@step(name="postgres.leave", flush=True, identity=_identity, raises=[TransactionLost])
async def _leave(session: str, number: int, lost: str) -> int:
    """Recorded when a block has ended; what an earlier attempt has recorded counts, whatever is true now."""
    if lost:
        raise TransactionLost(session, lost)
    return number
