"""SQLite sessions that outlive the process: the same connection, the same transaction, the next client.

    db = await rt.sqlite("books", "books.db")
    async with db.transaction():
        await db.execute("INSERT INTO books VALUES (?, ?)", (1, "Walden"))

The connection is held by a process of its own (perdure.keeper.sqlite_holder). That process's death, unlike
this one's, ends the transaction: SQLite's locks cannot be handed on.
"""

from __future__ import annotations

import json
import os
import socket
import time
import weakref
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure._durable import UnitCall, current_attempt, patched, step, unit_call
from perdure._ground.bridge import Call
from perdure._ground.durations import Duration
from perdure._model import Level, Verdict
from perdure._runtime.sessions.broken_links import mended
from perdure._runtime.sessions.lone_statements import note_lone
from perdure._runtime.sessions.postgres_verdicts import NEW_SESSION
from perdure._runtime.sessions.session_processes import (
    LOOK_SECONDS,
    ONCE,
    START_SECONDS,
    SessionPlace,
    ask,
    seconds_of,
    started,
)
from perdure._runtime.sessions.statements import (
    IN_A_STEP,
    LONGEST_ANSWER,
    call_in_step,
    control_of,
    refuse,
    wait_for_journal,
)
from perdure._runtime.sessions.transaction_blocks import Over, check_unfinished, end_transaction, kept_block
from perdure.errors import (
    InvalidInput,
    ReplayDiverged,
    SessionLost,
    SessionUnavailable,
    SqlFailed,
    StatementUnanswered,
)
from perdure.keeper import StatementCall, digest_of

Bindings = Sequence[Any] | Mapping[str, Any]
_VALUES = (str, int, float, bytes, type(None))


@dataclass(frozen=True)
class SqliteResult:
    """The result of a statement."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    changes: int
    last_rowid: int

    def one(self) -> tuple[Any, ...] | None:
        return self.rows[0] if self.rows else None


@dataclass(frozen=True)
class SqliteOutcome:
    """The outcome of the last statement, whichever client sent it."""

    state: str
    statement: str
    error: dict[str, str] | None
    changes: int
    transaction: str


async def open_sqlite(
    place: SessionPlace, name: str, path: str | Path, *, hold: Duration = "10m", busy: Duration = "5s"
) -> SqliteSession:
    """The session of this name: the one that lives, or a new one; its verdict says which.

    Raises:
        InvalidInput: the path or a limit makes no sense.
        SessionUnavailable: the file cannot be opened.
    """
    session = SqliteSession(place, name, path, seconds_of("hold", hold), seconds_of("busy", busy))
    session.is_once = patched(ONCE)
    await session._open()
    attempt = current_attempt()
    if attempt is not None:
        attempt.unwinding.before.append(session.cut_off)
        if session.is_once:
            await check_unfinished(attempt, session)
    return session


class SqliteSession:
    """One kept connection to a SQLite file. `level` and `verdict` tell how it came back."""

    over: Over | None = None
    block: str = ""
    depth: int = 0
    is_once: bool = True  # False in a task that was begun before statements were done once per call
    path: Path
    verdict: Verdict
    in_transaction: bool

    def __init__(self, place: SessionPlace, name: str, path: str | Path, hold: float, busy: float) -> None:
        self.name = name
        self.path = Path(path).absolute()
        self.verdict = Verdict("lost", "not opened yet")
        self.last_outcome: SqliteOutcome | None = None
        self.in_transaction = False
        self._place, self._hold, self._busy = place, hold, busy
        self._folder = place.of("sq", name)
        self._link: socket.socket | None = None
        self._pid = os.getpid()
        self._holder = 0  # the process that this one is attached to
        self._ledger = ""  # which memory of statements it has; "" from a holder of an earlier version

    @property
    def level(self) -> Level:
        return self.verdict.level

    @property
    def folder(self) -> Path:
        return self._folder

    async def execute(self, sql: str, bindings: Bindings = ()) -> SqliteResult:
        """Run a statement, in the open transaction if there is one.

        Raises:
            SqlFailed: SQLite refused it.
            SessionLost: the holder died, or a newer client has come; open the session again.
        """
        return await self._do("execute", sql, _plain_bindings(bindings))

    async def executemany(self, sql: str, many: Sequence[Bindings]) -> SqliteResult:
        return await self._do("executemany", sql, [_plain_bindings(one) for one in many])

    async def fetch(self, sql: str, bindings: Bindings = ()) -> Sequence[tuple[Any, ...]]:
        """All rows of a query."""
        return (await self.execute(sql, bindings)).rows

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """A block that is committed at its end and rolled back by an exception; a savepoint inside another one.

        In a durable function the block outlives the attempt: a pause in it leaves the transaction open, and the
        next attempt continues inside it.
        """
        place = unit_call()
        if place is None or (place.is_body and not self.is_once):
            return self._block()
        if not place.is_body:
            return kept_block(place.attempt, self, lambda _: False)
        if not self.in_transaction:
            raise refuse(self.name, "a transaction of its own inside a step", IN_A_STEP)
        return self._savepoint(place)

    async def cancel(self) -> None:
        """Interrupt the statement that is running."""
        await Call(lambda: ask(self._folder, {"ask": "cancel"}))

    async def close(self) -> None:
        """Let go of it; it stays as it is for the next client."""
        if self._link is not None:
            self._link.close()
            self._link = None

    async def end(self) -> None:
        """Roll back, close the connection, and leave nothing behind."""
        await Call(lambda: ask(self._folder, {"ask": "end"}))

    @asynccontextmanager
    async def _block(self) -> AsyncIterator[None]:
        savepoint = f"block_{os.urandom(4).hex()}" if self.in_transaction else ""
        await self.execute(f"SAVEPOINT {savepoint}" if savepoint else "BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if savepoint:
                await self.execute(f"ROLLBACK TO {savepoint}")
                await self.execute(f"RELEASE {savepoint}")
            elif self.in_transaction:
                await self.execute("ROLLBACK")
            raise
        await self.execute(f"RELEASE {savepoint}" if savepoint else "COMMIT")

    # ── statements ──────────────────────────────────────────────────────────────────────────────

    async def _do(self, verb: str, sql: str, bindings: Any) -> SqliteResult:
        place = unit_call()
        if place is None or not self.is_once:
            if self.over is not None:
                raise self.over.error(self.name)
            return _result(await Call(lambda: self._execute(verb, sql, bindings)))
        control = control_of(sql)
        if place.is_body:
            if control:
                raise refuse(self.name, f"{control.upper()} inside a step", IN_A_STEP)
            return _result(await self._in_step(place, verb, sql, bindings))
        if self.depth and control:
            raise refuse(self.name, f"{control.upper()} inside `db.transaction()`", "leave it to the block")
        if control in ("commit", "rollback"):
            await end_transaction(place.attempt, self, control.upper(), lambda: self._end_by(sql, bindings))
            return SqliteResult([], [], 0, 0)
        return await self._in_function(verb, sql, bindings)

    @mended
    async def _end_by(self, sql: str, bindings: Any) -> None:
        await Call(lambda: self._execute("execute", sql, bindings))

    async def _in_function(self, verb: str, sql: str, bindings: Any) -> SqliteResult:
        async def carry_out() -> bytes:
            place = unit_call()
            assert place is not None
            answer = json.dumps(await self._in_step(place, verb, sql, bindings)).encode()
            if len(answer) > LONGEST_ANSWER:
                raise StatementUnanswered(self.name, sql, f"its answer of {len(answer)} bytes is too large to be kept")
            return answer

        return _result(json.loads(await _statement(self.name, _digest(verb, sql, bindings), carry_out)))

    @mended
    async def _in_step(self, place: UnitCall, verb: str, sql: str, bindings: Any) -> dict[str, Any]:
        if self.over is not None:
            raise self.over.error(self.name)
        path = place.next_path(self.name)
        if not self.block and (self.in_transaction or control_of(sql) == "begin"):
            self.block = path
        if not self.block:
            await note_lone(place, self.name, self._ledger, path, sql)
        await wait_for_journal(place, self.block)
        call = call_in_step(place, self.name, _digest(verb, sql, bindings), sql, self.block, path)
        answer = await Call(lambda: self._execute(verb, sql, bindings, call))
        if "another" in answer:
            diverged = ReplayDiverged(place.attempt.task_id, place.attempt.cursor.last, answer["another"], sql)
            raise place.attempt.poison(diverged)
        if "unanswered" in answer:
            raise StatementUnanswered(self.name, sql, answer["unanswered"])
        return answer

    @asynccontextmanager
    async def _savepoint(self, place: UnitCall) -> AsyncIterator[None]:
        """A block inside a step: a savepoint, made and ended once."""
        path = place.coming_path(self.name)
        name = f"perdure_{digest_of(path.encode())[:12]}"
        await self.execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            if not place.attempt.is_ending:
                await self._undo_savepoint(name, path)
            raise
        await self.execute(f"RELEASE {name}")

    @mended
    async def _undo_savepoint(self, name: str, path: str) -> None:
        await Call(lambda: self._ask({"ask": "undo", "name": name, "path": path}))

    # ── for blocks ──────────────────────────────────────────────────────────────────────────────

    @mended
    async def _open(self) -> None:
        await Call(self._find)

    async def is_broken_by(self, error: Exception) -> bool:
        if not isinstance(error, SessionLost):
            return False
        return await Call(self._has_holder_ended)

    @property
    def label(self) -> str:
        return self.name

    @property
    def unit_identity(self) -> str:
        """The identity of this argument in a recorded step."""
        return f"sqlite:{self.name}"

    @mended
    async def known(self) -> dict[str, Any]:
        state = await Call(lambda: self._ask({"ask": "state"}))
        return {**state["blocks"], "lost": self.verdict.reason}

    @mended
    async def enter_block(self, line: str, number: int) -> None:
        await Call(lambda: self._ask({"ask": "enter", "line": line, "number": number}))

    @mended
    async def commit_note(self) -> dict[str, Any]:
        try:
            answer = await Call(lambda: ask(self._folder, {"ask": "promise"}))
        except SessionUnavailable:  # a holder of an earlier version
            return {}
        return (answer or {}).get("note") or {}

    @mended
    async def outcome_of(self, note: dict[str, Any], *, is_over: bool) -> tuple[str, str]:
        answer = await Call(lambda: self._ask({"ask": "outcome", "note": note}))
        return answer["ended"], answer["why"]

    @mended
    async def commit_block(self, number: int) -> None:
        await Call(lambda: self._ask({"ask": "leave", "number": number, "commit": True}))

    @mended
    async def undo_block(self, number: int) -> None:
        await Call(lambda: self._ask({"ask": "leave", "number": number, "commit": False}))

    @mended
    async def roll_back(self) -> None:
        await Call(lambda: self._execute("execute", "ROLLBACK", []))

    def cut_off(self) -> None:
        """Disconnect this process from the session. Blocks for a moment."""
        if self._link is not None:
            ask(self._folder, {"ask": "fence"})
            self._link.close()
            self._link = None

    # ── the holder ──────────────────────────────────────────────────────────────────────────────

    def _find(self) -> None:
        if not self.path.parent.is_dir():
            raise InvalidInput(f"there is no folder {self.path.parent}", do="make it, or name another path")
        lost, end = "", time.monotonic() + START_SECONDS
        while True:
            state = ask(self._folder, {"ask": "state"})
            self._holder = 0 if state is None else state["holder"]
            try:
                is_new, lost = self._have_holder(state, lost)
                self._enter(is_new, lost)
                return
            except SessionLost:
                # A holder that ended since it was found has a successor, which knows what became of the transaction.
                if time.monotonic() > end or not self._has_holder_ended():
                    raise
                time.sleep(LOOK_SECONDS)

    def _have_holder(self, state: dict[str, Any] | None, lost: str) -> tuple[bool, str]:
        """Start a holder where there is none, or one whose file is gone. Whether it is new, and what was lost."""
        if state is not None and state["gone"]:
            lost = state["gone"]
            ask(self._folder, {"ask": "end"})
        elif state is not None:
            return False, lost
        config = {
            "name": f"sq:{self._folder.name}",
            "label": self.name,
            "folder": str(self._folder),
            "path": str(self.path),
            "hold": self._hold,
            "busy": self._busy,
        }
        answer = started(self._place, "sqlite", config, self._folder)
        if answer.get("kind") == "lost":
            raise SessionUnavailable(self.name, answer["error"])
        self._holder = 0
        return answer["how"] == "new", lost or answer.get("lost") or ""

    def _enter(self, is_new: bool, lost: str) -> None:
        state = self._attach()
        if state["path"] != str(self.path):
            raise InvalidInput(
                f"the session {self.name!r} is open on {state['path']}", do="choose another name, or end it first"
            )
        self._ask({"ask": "hold", "seconds": self._hold})
        self.verdict = _verdict({**state, "lost": state["lost"] or lost}, is_new)

    def _has_holder_ended(self) -> bool:
        """True if the process that this one was attached to has gone, or its file; else a newer client has come."""
        state = ask(self._folder, {"ask": "state"})
        return state is None or bool(state["gone"]) or state["holder"] != self._holder

    def _attach(self) -> dict[str, Any]:
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(str(self._folder / "control"))
        except OSError:
            link.close()
            raise SessionLost(self.name, "its holder is gone") from None
        self._link, self._rest = link, b""
        weakref.finalize(self, link.close)
        state = self._ask({"ask": "attach"})
        self._holder, self._ledger = state["holder"], str(state.get("ledger") or "")
        return state

    def _execute(self, verb: str, sql: str, bindings: Any, call: StatementCall | None = None) -> dict[str, Any]:
        told = {} if call is None else {"call": list(call)}
        answer = self._ask({"ask": verb, "sql": sql, "bindings": bindings, **told})
        while answer.get("more"):
            following = self._ask({"ask": "more"})
            answer["rows"] += following["rows"]
            answer["more"] = following["more"]
        return answer

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._link is None or self._pid != os.getpid():
            raise SessionLost(self.name, "this process has been cut off from it")
        try:
            self._link.sendall(json.dumps(question).encode() + b"\n")
            line = self._line(self._link)
        except OSError:
            line = b""
        if not line:
            self._link.close()
            self._link = None
            raise SessionLost(self.name, "its holder died, or a newer client has come")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SessionLost(self.name, answer["error"])
        if "transaction" in answer:
            self.in_transaction = answer["transaction"] == "open"
        if "failed" in answer:
            raise SqlFailed(self.name, answer["failed"], answer["message"])
        if answer.get("outcome"):
            self.last_outcome = SqliteOutcome(**answer["outcome"])
        return answer

    def _line(self, link: socket.socket) -> bytes:
        """The next line; nothing when the other end is gone."""
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            part = link.recv(1 << 16)
            if not part:
                return b""
            parts.append(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line


@step(name="session.sql", identity=lambda label, digest, _: (label, digest), raises=[SqlFailed])
async def _statement(label: str, digest: str, carry_out: Callable[[], Awaitable[bytes]]) -> bytes:
    """A statement that stands in the function itself; its answer is on record."""
    return await carry_out()


def _digest(verb: str, sql: str, bindings: Any) -> str:
    return digest_of(verb.encode(), sql.encode(), json.dumps(bindings, sort_keys=True).encode())


def _result(answer: dict[str, Any]) -> SqliteResult:
    found = [tuple(map(_value, row)) for row in answer["rows"]]
    return SqliteResult(answer["columns"], found, answer["changes"], answer["last_rowid"])


def _plain_bindings(bindings: Bindings) -> Any:
    if isinstance(bindings, Mapping):
        return {str(name): _plain(value) for name, value in bindings.items()}
    return [_plain(value) for value in bindings]


def _plain(value: Any) -> Any:
    if not isinstance(value, _VALUES):
        raise InvalidInput(f"SQLite has no {type(value).__name__}", do="bind str, int, float, bytes or None")
    return {"bytes": b64encode(value).decode()} if isinstance(value, bytes) else value


def _value(plain: Any) -> Any:
    return b64decode(plain["bytes"]) if isinstance(plain, dict) else plain


def _verdict(state: dict[str, Any], is_new: bool) -> Verdict:
    if state["lost"]:
        return _lost(state, state.get("found") or {})
    if is_new:
        return Verdict("kept", NEW_SESSION)
    since = [*state["lost_parts"]]
    if state["outcome"]:
        error = state["outcome"]["error"]
        said = f"failed, {error['message']}" if error else f"done, {state['outcome']['changes']} rows changed"
        since.append(f"{state['outcome']['statement'][:80]}: {said}")
    same = ["the connection with its temp tables and pragmas"]
    same += ["the transaction is open"] if state["transaction"] == "open" else []
    return Verdict("kept", "the holder kept it", same=same, since_you_left=since)


def _lost(state: dict[str, Any], found: dict[str, Any]) -> Verdict:
    """The verdict on a session whose holder has died, or whose file was replaced."""
    differs = ["a new connection: no temp tables, no pragmas, no open transaction"]
    if state.get("is_another_file"):
        differs.append(f"another file stands at {state['path']}")
    since = [_told(found["outcome"])] if found.get("outcome") else []
    assume, options = ["that anything uncommitted is there"], ["begin the transaction anew"]
    if found.get("transaction") == "committed":
        since += [] if since else ["its last transaction was committed"]
        assume = ["that the last transaction was rolled back: it was committed"]
        options = ["continue after the transaction: it was committed"]
    elif found.get("transaction") == "uncertain":
        since.append(f"whether its last transaction was committed is uncertain: {found['why']}")
        assume = ["that the last transaction was rolled back, or was not"]
        options = ["look at the data before you do any of it again"]
    elif not found:
        assume.append("that a COMMIT sent just before was done, or was not")
    return Verdict("lost", state["lost"], differs=differs, since_you_left=since, do_not_assume=assume, options=options)


def _told(outcome: dict[str, Any]) -> str:
    said = {
        "done": "was committed; the answer to it was lost",
        "undone": "was under way, and was rolled back",
    }
    return (
        f"{outcome['statement'][:80]}: {said.get(outcome['state'], 'was under way; whether it was done is uncertain')}"
    )
