"""`@transaction(db)`: an effect on a database, with a marker written in the same commit.

After a crash the marker proves that the transaction happened and holds its result, so no person has to be asked. An
exception in the function, or a COMMIT that the database refuses, rolls everything back: it has definitely not happened.
Only a COMMIT whose reply was lost is uncertain, and the marker settles that too, on the next connection.

`pg_probe` is for transactions that a user runs inside an @effect: PostgreSQL remembers how each one ended.
"""

from __future__ import annotations

import base64
import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from perdure._durable.attempt import is_leaving, running_effect
from perdure._durable.databases.commit_markers import (
    SQLITES,
    CommitMarker,
    FoundMarker,
    MarkedConnection,
    Psycopg,
    Sqlite,
    driver_of,
    opened,
    plain,
    psycopg_rows,
)
from perdure._durable.databases.sqlalchemy_markers import Sqlalchemy
from perdure._durable.effects import DID_NOT_HAPPEN, UNKNOWN, Effect, EffectCall, Happened, Walk, home_of, remember
from perdure._ground import crash_points as crash
from perdure._ground.bridge import Nap, drive
from perdure._ground.encoding import codec
from perdure.errors import InvalidInput, NoTask

log = logging.getLogger("perdure.effects")

P = ParamSpec("P")
R = TypeVar("R")

# A transaction whose client has died ends by itself once the server notices.
_LOOKS, _LOOK_SECONDS = 100, 0.05


def transaction(db: Any, /, **options: Any) -> Callable[[Callable[Concatenate[Any, P], R]], Effect[P, R]]:
    """An effect that is one transaction on `db`; the function's first argument is the open connection.

    `db` is a connection (psycopg, sqlite3, apsw, SQLAlchemy), a pool or an engine, or a function that opens a new
    connection, which is closed afterwards. The function must not commit or roll back. Options as for @effect: name,
    retry, undo, timeout, identity, raises.
    """

    def decorate(function: Callable[Concatenate[Any, P], R]) -> Effect[P, R]:
        made: Effect[P, R] = Effect(_TransactionCall(db, function, **options))
        remember(made.call)
        return made

    return decorate


class Unanswered(Exception):
    """COMMIT was sent, and its outcome is not known yet."""


class _TransactionCall(EffectCall):
    """An effect that its marker settles, so it can always be sent again."""

    def __init__(self, db: Any, function: Callable[..., Any], **options: Any) -> None:
        self._db, self._inner = db, function
        super().__init__(_without_connection(self, function), keyed=True, home=home_of(function), **options)

    def is_definite(self, error: BaseException, *, is_sent_again: bool = False) -> bool:
        return not isinstance(error, Unanswered)

    async def carry_out(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        walk = _walk("a @transaction")
        attempt = walk.attempt
        marker = CommitMarker(walk.key, attempt.uid, walk.path, walk.asked, attempt.store.clock.now_ms())
        work = _Work(self, walk, marker)
        try:
            async with opened(self._db) as connection:
                await work.do(connection, args, kwargs)
        except BaseException as error:
            if is_leaving(error):
                raise
            if work.is_committed:
                log.warning("%s has committed; closing its connection failed: %s", walk.shown, _in_short(error))
            elif _is_sent_again(walk) and not work.has_looked:
                # An earlier COMMIT may have succeeded. Only the marker can tell, and this try did not reach it.
                raise Unanswered(f"its marker could not be looked for: {_in_short(error)}") from error
            else:
                raise
        crash.place("transaction.committed")
        return work.value

    def run_inner(self, connection: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._inner(connection, *args, **kwargs)

    def of_marker(self, found: FoundMarker) -> Any:
        if found.result is None:
            raise Unanswered(f"{self.name} has ended its transaction itself; it is unknown what was committed")
        return codec.decode(found.result, self.signature.returns)


class _Work:
    """One try of a transaction. How far it got decides what an error means."""

    def __init__(self, call: _TransactionCall, walk: Walk, marker: CommitMarker) -> None:
        self._call, self._walk, self._marker = call, walk, marker
        self.has_looked = self.is_committed = False
        self.value: Any = None

    async def do(self, connection: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        side = _marked(connection, _store_path(self._walk))
        await side.begin()
        try:
            found = await side.claim(self._marker)
            self.has_looked = True
            if found is None:
                await self._inside(side, self._call.run_inner(connection, args, kwargs))
        except BaseException as error:
            await self._roll_back(side, error)
            raise
        if found is not None:
            self.value, self.is_committed = self._call.of_marker(found), True
            await side.roll_back()
            return
        try:
            await side.commit()
        except BaseException as error:
            if is_leaving(error) or await self._is_refused(side):
                raise
            raise Unanswered(f"the answer to COMMIT was lost: {_in_short(error)}") from error
        self.is_committed = True

    async def _inside(self, side: MarkedConnection, called: Any) -> None:
        data, self.value = codec.round_trip(await plain(called), self._call.signature.returns)
        if not await side.finish(self._marker, data):
            await self._mark_again(side)
            raise Unanswered("it has ended its transaction itself, and its marker is lost")
        crash.place("transaction.before_commit")

    async def _mark_again(self, side: MarkedConnection) -> None:
        """The function has committed by itself, and it is unknown what. Write a marker without a result, so that the
        transaction is not run again."""
        await side.roll_back()
        await side.begin()
        await side.claim(self._marker)
        await side.commit()

    async def _is_refused(self, side: MarkedConnection) -> bool:
        """True if a COMMIT that failed was refused and so has definitely not happened: the database still answers and
        has no marker."""
        try:
            await side.roll_back()
            return not await self._is_marked(side)
        except Exception:
            return False

    async def _roll_back(self, side: MarkedConnection, error: BaseException) -> None:
        was_ended = not side.is_inside()
        await side.roll_back()
        if isinstance(error, Unanswered):
            return
        if was_ended and isinstance(error, Exception) and await self._is_marked(side):
            raise Unanswered(f"it has committed by itself, and then raised {_in_short(error)}") from error
        if self.has_looked or not _is_sent_again(self._walk):
            self._walk.is_open = False

    async def _is_marked(self, side: MarkedConnection) -> bool:
        await side.begin()
        try:
            return await side.claim(self._marker) is not None
        finally:
            await side.roll_back()


def _is_sent_again(walk: Walk) -> bool:
    """True if an earlier try may have committed."""
    return walk.again not in ("", "not done")


def _in_short(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _without_connection(call: _TransactionCall, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the signature its callers see."""
    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()
    if first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        raise InvalidInput(f"the first argument of {function.__qualname__} must be the connection")

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def called(*args: Any, **kwargs: Any) -> Any:
            return await call.carry_out(args, kwargs)
    else:

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return drive(call.carry_out(args, kwargs))

    del called.__wrapped__  # else inspect would find its signature and annotations there
    called.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    called.__annotations__ = {name: hint for name, hint in function.__annotations__.items() if name != first.name}
    return called


def _walk(what: str) -> Walk:
    walk = running_effect.get(None)
    if not isinstance(walk, Walk):
        raise NoTask(what)
    return walk


def _store_path(walk: Walk) -> str | None:
    path = getattr(walk.attempt.store.engine, "path", None)
    return None if path is None else str(path)


# ── transactions of the user's own ───────────────────────────────────────────────────────────────


class pg_probe:
    """A `verify` for effects that run a PostgreSQL transaction of their own.

        probe = pg_probe(connect)

        @effect(verify=probe)
        async def book(order: str) -> int:
            async with await connect() as con:
                row = await con.execute(…)
                await probe.mark(con, result=row[0])      # before COMMIT: stores this transaction's number
            return row[0]

    After a crash, PostgreSQL (13 or newer) is asked how that transaction ended. A transaction that was not marked was
    never committed, so the code must call `mark` before every COMMIT.
    """

    def __init__(self, db: Any) -> None:
        self._db = db

    async def mark(self, connection: Any, result: Any = None) -> None:
        """Store the number of the connection's transaction and the effect's result.

        Raises:
            InvalidInput: the connection is not inside a transaction; nothing was stored.
        """
        walk = _walk("pg_probe.mark()")
        [(number,)] = await psycopg_rows(connection, "SELECT pg_current_xact_id()::text")
        if int(connection.info.transaction_status) == 0:  # the SELECT was a transaction by itself
            raise InvalidInput(
                f"pg_probe.mark is called outside a transaction of {connection!r}",
                kept="nothing was stored; statements committed by autocommit stay",
                do="do the work and mark it inside `with connection.transaction():`",
            )
        data = codec.encode(result, walk.call.signature.returns)
        await walk.mark(xid=str(number), result=base64.b64encode(data).decode())
        crash.place("probe.marked")

    def mark_here(self, connection: Any, result: Any = None) -> None:
        """The same for a plain `def` with a blocking connection."""
        drive(self.mark(connection, result))

    async def __call__(self, *_: Any, **__: Any) -> Any:
        walk = _walk("pg_probe")
        number = walk.marks.get("mark.xid")
        if number is None:
            return DID_NOT_HAPPEN
        status = "in progress"
        async with opened(self._db) as connection:
            for _look in range(_LOOKS):
                [(status,)] = await psycopg_rows(connection, "SELECT pg_xact_status(%s::xid8)", (str(number),))
                if status != "in progress":
                    break
                await Nap(_LOOK_SECONDS)
        if status == "committed":
            data = base64.b64decode(str(walk.marks.get("mark.result") or ""))
            return Happened(codec.decode(data, walk.call.signature.returns))
        return DID_NOT_HAPPEN if status == "aborted" else UNKNOWN


def _marked(connection: Any, store_path: str | None) -> MarkedConnection:
    """The connection, wrapped for its driver.

    Raises:
        InvalidInput: the driver is not known, or it is a connection to perdure's own store.
    """
    driver = driver_of(connection)
    # A driver's other objects (a cursor, a session) cannot do everything that is needed.
    if driver == "psycopg" and hasattr(connection, "transaction"):
        return Psycopg(connection)
    if driver in SQLITES and hasattr(connection, "in_transaction"):
        return Sqlite(connection, store_path)
    if driver == "sqlalchemy" and hasattr(connection, "exec_driver_sql"):
        return Sqlalchemy(connection, store_path)
    raise InvalidInput(
        f"@transaction cannot use a {type(connection).__module__}.{type(connection).__qualname__}",
        kept="nothing was written",
        do="give a connection of psycopg, sqlite3, apsw or SQLAlchemy, or a function that opens one",
    )
