"""PostgreSQL sessions that outlive the process: the same backend, the same transaction, the next client.

    db  = await rt.postgres("main", dsn, hold="10m")
    con = await db.connect()            # psycopg; may already be inside its transaction

Owns the client's side: finding or starting the session's proxy, its verdict, and handing out connections. The proxy
itself is perdure.keeper.pgproxy; postgres_connection.py has the behaviour of a connection in a durable function.
"""

from __future__ import annotations

import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from perdure._durable import current_attempt, patched
from perdure._ground.bridge import Call
from perdure._ground.durations import Duration
from perdure._model import Level, Verdict
from perdure._runtime.sessions import postgres_address
from perdure._runtime.sessions.broken_links import mended
from perdure._runtime.sessions.postgres_verdicts import kept, verdict_of
from perdure._runtime.sessions.session_processes import (
    LOOK_SECONDS,
    ONCE,
    START_SECONDS,
    SessionPlace,
    ask,
    seconds_of,
    started,
)
from perdure.errors import Conflict, SessionLost, SessionUnavailable, SqlFailed
from perdure.keeper import pgproxy

if TYPE_CHECKING:
    from perdure._runtime.sessions.postgres_connection import KeptConnection


@dataclass(frozen=True)
class StatementOutcome:
    """The outcome of a statement whose client had gone before it ended."""

    state: str  # done, never sent, undone (rolled back with its transaction), or uncertain
    statement: str  # its beginning
    tag: str | None  # INSERT 0 3, COMMIT, …
    rows: int | None
    error: dict[str, str] | None  # code and message
    transaction: str  # "none", "open" or "failed", after the statement
    handed_over: bool  # to a client that was there


async def open_postgres(
    place: SessionPlace, name: str, dsn: str, *, hold: Duration, rebuild: Literal["auto", "never"] = "never"
) -> PostgresSession:
    """The session of this name: the one that lives, or a new one; its verdict says which.

    Raises:
        InvalidInput: the address or the hold limit make no sense.
        SessionUnavailable: the server refuses us, or stays away.
    """
    session = PostgresSession(place, name, dsn, seconds_of("hold", hold), rebuild)
    session.is_once = patched(ONCE)
    await session._open()
    attempt = current_attempt()
    if attempt is not None:
        attempt.unwinding.before.append(session.detach)
    return session


class PostgresSession:
    """One kept session. `level` and `verdict` tell how it came back."""

    verdict: Verdict

    def __init__(self, place: SessionPlace, name: str, dsn: str, hold: float, rebuild: str) -> None:
        self.name = name
        self.verdict = Verdict("lost", "not opened yet")
        self.last_outcome: StatementOutcome | None = None
        self.blocks: dict[str, Any] = {}
        self.ledger: str = ""  # which memory of statements it has; "" from a proxy of an earlier version
        self._place, self._dsn, self._hold, self._rebuild = place, dsn, hold, rebuild
        self._folder = place.of("pg", name)
        self._user = self._database = ""
        self.is_once = True  # False in a task that was begun before statements were done once per call
        self._connections: weakref.WeakSet[KeptConnection] = weakref.WeakSet()

    block = ""  # it is not in a transaction itself; its connections are

    @property
    def label(self) -> str:
        return self.name

    @property
    def level(self) -> Level:
        return self.verdict.level

    @property
    def unit_identity(self) -> str:
        """The identity of this argument in a recorded step."""
        return f"postgres:{self.name}"

    @property
    def url(self) -> str:
        """For other drivers, one connection at a time; see docs/guide/sessions.md before giving it to a pool.

        A client that comes this way into an open transaction cannot roll it back by accident, as pools do.
        """
        return postgres_address.client_url(self._folder, self._user, self._database, guarded=True)

    @property
    def backend_pid(self) -> int:
        return int(self._state()["pid"])

    async def connect(self, **options: Any) -> KeptConnection:
        """A psycopg connection into the session, in its transaction if one is open; older clients are fenced.

        Options are those of psycopg.AsyncConnection.connect. Waits until a statement under way has ended.

        Raises:
            SessionLost: the server ended the session since it was opened; open it again for a new one.
        """
        return await self._connected(options)

    @mended
    async def _open(self) -> None:
        await Call(self._find)

    async def is_broken_by(self, error: Exception) -> bool:
        """True if it is that the session's process or its server has gone, and not that a newer client has come."""
        import psycopg

        return isinstance(error, psycopg.OperationalError | SessionLost) and await Call(self._is_gone)

    @mended
    async def _connected(self, options: dict[str, Any]) -> KeptConnection:
        from perdure._runtime.sessions.postgres_connection import KeptConnection

        await Call(self._be_there)
        target = postgres_address.client_options(self._folder, self._user, self._database, guarded=False)
        connection = await KeptConnection.connect(**{**options, **target})
        connection.session = self
        self._connections.add(connection)
        await Call(self.refresh)
        await connection.come_back()
        return connection

    async def commit(self) -> None:
        """Commit the open transaction, whichever client began it.

        Raises:
            SqlFailed: the server refused, and rolled it back.
        """
        await Call(lambda: self._end_transaction("commit"))

    async def rollback(self) -> None:
        """Roll back the open transaction, whichever client began it."""
        await Call(lambda: self._end_transaction("rollback"))

    async def cancel(self) -> None:
        """Cancel the running statement, whichever client sent it."""
        await Call(lambda: self._ask({"ask": "cancel"}))

    async def end(self) -> None:
        """Roll back, close the session, and leave nothing behind."""
        for trace in ("was-here", "recipe", "trace", "ledger"):
            (self._folder / trace).unlink(missing_ok=True)
        await Call(lambda: ask(self._folder, {"ask": "end"}))

    def detach(self) -> None:
        """Disconnect this process, so that no `with` on its stack can end the kept transaction. Blocks for a moment."""
        with suppress(SessionUnavailable):  # it stands still, or is of no use: closing our end has to do
            ask(self._folder, {"ask": "fence", "why": "the task is paused; its session is kept for its next attempt"})
        for connection in list(self._connections):
            connection.pgconn.finish()

    def refresh(self) -> dict[str, Any]:
        """Read how things stand; blocks for a moment."""
        state = self._state()
        self._know(state)
        return state

    def commit_note(self) -> dict[str, Any]:
        """The server's identity of the open transaction, by which its COMMIT can be looked up. Blocks for a moment."""
        try:
            state = self._ask({"ask": "number"})
        except SessionUnavailable:  # a proxy of an earlier version, or a server that is slow to answer
            return {}
        return {"number": state["number"], "server": state["server"], "refused": state["number_refused"]}

    def outcome_of(self, note: dict[str, Any], *, is_over: bool) -> tuple[str, str]:
        """The outcome of the COMMIT with this note: committed, rolled back or uncertain, with the reason. Asks the
        server, and blocks until it has answered.

        Raises:
            SessionUnavailable: the server cannot be asked now.
        """
        backend = (note.get("server") or {}).get("backend")
        try:
            return pgproxy.outcome_of_commit(
                postgres_address.options_of(self._dsn), note, is_over=is_over and backend != self.backend_pid
            )
        except ConnectionError as problem:
            raise SessionUnavailable(self.name, str(problem)) from None

    # ── finding, starting ───────────────────────────────────────────────────────────────────────

    def _find(self) -> None:
        """Find the session's proxy, or start one that takes over from a dead one."""
        options = postgres_address.options_of(self._dsn)
        lost, recipe, end = "", "", time.monotonic() + START_SECONDS
        while True:
            state = ask(self._folder, {"ask": "state"})
            if state is not None:
                self._refuse_another(state, options)
            if state is not None and state["gone"] is not None:
                lost, recipe = state["gone"], self._recipe() or recipe
                ask(self._folder, {"ask": "end"})
                state = None
            try:
                self.verdict = self._kept(state) if state is not None else self._started(options, lost, recipe)
                return
            except SessionLost:  # the proxy ended since it was found; the next one knows what became of the connection
                if time.monotonic() > end:
                    raise
                time.sleep(LOOK_SECONDS)

    def _kept(self, state: dict[str, Any]) -> Verdict:
        self._know(self._ask({"ask": "hold", "seconds": self._hold}))
        return kept(state)

    def _started(self, options: dict[str, str], lost: str, recipe: str) -> Verdict:
        mark = self._folder / "was-here"
        was_here = mark.exists()
        answer = self._launch(options, recipe)
        state = self.refresh()
        if state["gone"] is not None:
            raise SessionLost(self.name, state["gone"])
        self._refuse_another(state, options)
        mark.touch()
        lost = lost or answer.get("lost") or ("its proxy is gone, and with it the connection" if was_here else "")
        return verdict_of(answer, state, lost)

    def _refuse_another(self, state: dict[str, Any], options: dict[str, str]) -> None:
        """A name is one session: another database under it would be worked in by mistake."""
        wanted = (options.get("user"), options.get("dbname"))
        hosts = options.get("host", "").split(",")
        is_there = state["route"]["host"] in hosts or hosts == [""]
        if wanted != (state["user"], state["database"]) or not is_there:
            where = f"{state['user']}@{state['route']['host']}/{state['database']}"
            raise Conflict(
                f"the session {self.name!r} is open as {where}",
                kept="that session",
                do="choose another name, or end it",
            )

    def _recipe(self) -> str:
        return str((ask(self._folder, {"ask": "recipe"}) or {}).get("recipe") or "")

    def _be_there(self) -> None:
        """Make sure that a proxy runs: a dead one is replaced by one that takes over its connection."""
        state = ask(self._folder, {"ask": "state"})
        if state is None:
            answer = self._launch(None, "")
            if answer.get("kind") == "lost":
                raise SessionLost(self.name, answer["error"])
        elif state["gone"] is not None:
            raise SessionLost(self.name, state["gone"])

    def _is_gone(self) -> bool:
        state = ask(self._folder, {"ask": "state"})
        return state is None or state["gone"] is not None

    def _launch(self, options: dict[str, str] | None, recipe: str) -> dict[str, Any]:
        config = {
            "name": f"pg:{self._folder.name}",
            "label": self.name,
            "folder": str(self._folder),
            "options": options,
            "hold": self._hold,
            "rebuild": self._rebuild,
            "recipe": recipe,
            "parking": str(self._place.parking) if self._place.parking else None,
        }
        return started(self._place, "postgres", config, self._folder)

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        answer = ask(self._folder, question)
        if answer is None:
            raise SessionLost(self.name, "its proxy is gone")
        return answer

    def _end_transaction(self, how: str) -> None:
        ended = self._ask({"ask": how}).get("ended") or {}
        if ended.get("error"):
            raise SqlFailed(self.name, ended["error"]["code"], ended["error"]["message"])

    def _state(self) -> dict[str, Any]:
        return self._ask({"ask": "state"})

    def _know(self, state: dict[str, Any]) -> None:
        self._user, self._database = state["user"], state["database"]
        self.blocks, self.ledger = state["blocks"], str(state.get("ledger") or "")
        outcome = state["outcome"]
        self.last_outcome = StatementOutcome(**outcome) if outcome else None

    @property
    def folder(self) -> Path:
        return self._folder
