"""Hold one SQLite connection for a task: its transaction stays open while clients come and go.

Run as `python -m perdure.keeper.sqlite_holder`. Its configuration is a line of JSON on standard input: name, folder
(of this session alone), path (of the database), hold (seconds), busy (seconds). Clients speak lines of JSON on a socket
in the folder. One that says `attach` is the client; a newer one fences it. Other processes may ask at any time for:
state, wait, cancel, fence, end.

SQLite locks belong to a process, so nothing can be parked: if this process dies, SQLite rolls the transaction back.
The file `held` in the folder shows that a holder was here; the next one finds it at its start and reports the loss.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apsw

from perdure.keeper.core import peer_of
from perdure.keeper.json_text import to_json
from perdure.keeper.session import (
    COMMITTED,
    ROLLED_BACK,
    Ledger,
    Noted,
    StatementCall,
    hold_lock,
    listen,
    read_config,
    tell_starter,
)
from perdure.keeper.session import hold_clock as holdclock
from perdure.keeper.sqlite_holder import json_values as sqlite_json
from perdure.keeper.sqlite_holder.witness import FileGone, Log, Witness

_BATCH = 500  # rows in one answer
_MOST_KEPT_ROWS = 20_000  # in the answer of a call, which is kept whole or not at all
_LONGEST_LINE = 64 << 20
# It was there before, says the keeper, and its folder was removed with all that it had noted.
UNNOTED = "its process died and its notes were removed: whether its last statement was done is not known"
LOST = "its process died, and SQLite rolled back what was not committed"
HELD_TOO_LONG = "the open transaction was rolled back: no client came back to it within the hold limit"


class Holder:
    """The connection, its client of the moment, and how its last statement ended."""

    def __init__(self, path: str, folder: str, hold: float, busy: float, lost: str, ledger: Ledger) -> None:
        self.ledger = ledger
        log = Log(path).end()
        self.connection = apsw.Connection(path)
        self.connection.set_busy_timeout(int(busy * 1000))
        self.witness = Witness(self.connection, path, folder, log)
        self.found = self.witness.find_out()  # what became of the holder before
        self.gone = ""  # what was done to the file
        self.path, self.hold, self.lost, self.door = path, hold, lost, os.path.join(folder, "control")
        self.turn = threading.RLock()  # one statement at a time
        self.changed = threading.Condition()
        self.client: socket.socket | None = None
        self.epoch = 0
        self.idle_limit = 0.0  # seconds without client and transaction, after which it ends; 0 is never
        self.is_busy = self.is_ending = False
        self.left = holdclock.seconds()
        self.outcome: dict[str, Any] | None = None
        self.told: list[str] = []
        self.blocks: dict[str, Any] = {"line": "", "last": 0, "open": [], "ended": {}}
        self._take_over()
        self._cursor: Iterator[Sequence[Any]] | None = None

    def _take_over(self) -> None:
        """Go on after the holder before, which has died."""
        self.blocks |= self.found.get("blocks") or {}
        self.outcome = self.found.get("outcome")
        if self.found.get("transaction") == COMMITTED and self.outcome is not None:  # else it had been answered
            self.ledger.ended(is_committed=True)
        self.ledger.connection_lost()
        self.witness.has_committed = self.found.get("transaction") == COMMITTED

    def close_door(self) -> None:
        """Stop listening: no client finds this holder any more."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.door)

    def put_ledger_back(self) -> None:
        """The session's folder was removed. Waits for the statement under way."""
        with self.turn, contextlib.suppress(FileNotFoundError):  # it may be removed again
            self.ledger.put_back()

    # ── the client ──────────────────────────────────────────────────────────────────────────────

    def attach(self, link: socket.socket) -> int:
        with self.changed:
            self.fence()
            self.client = link
            self.epoch += 1
            self.changed.notify_all()
            return self.epoch

    def fence(self) -> None:
        """Read nothing more from the present client. A statement it has begun runs to its end."""
        with self.changed:
            if self.client is not None:
                with contextlib.suppress(OSError):
                    self.client.shutdown(socket.SHUT_RDWR)
                self.detach(self.client)

    def detach(self, link: socket.socket) -> None:
        with self.changed:
            if self.client is link:
                self.client, self.left = None, holdclock.seconds()
                self.changed.notify_all()

    # ── statements ──────────────────────────────────────────────────────────────────────────────

    def execute(
        self, epoch: int, sql: str, bindings: object, many: bool, call: StatementCall | None = None
    ) -> dict[str, Any]:
        """Run a statement; its first rows. One that belongs to a call is run once, and has all its rows.

        Raises:
            PermissionError: a newer client has come.
        """
        with self.turn:
            if epoch != self.epoch or self.client is None:
                raise PermissionError("a newer client has taken this session over")
            self._busy(True)
            try:
                return self._execute(sql, bindings, many) if call is None else self._once(call, sql, bindings, many)
            finally:
                self._busy(False)

    def _once(self, call: StatementCall, sql: str, bindings: object, many: bool) -> dict[str, Any]:
        known = self.ledger.find(call)
        if known is not None:
            return self._known(known, call)
        was_open = self.connection.in_transaction
        self.ledger.begin(call)
        try:
            answer = self._execute(sql, bindings, many, _MOST_KEPT_ROWS)
        except apsw.Error as error:
            if was_open and self.connection.in_transaction:
                self.ledger.done(to_json(sqlite_json.failure_of(error)).encode(), is_open=True)
            else:
                self.ledger.never_ran()
            raise
        is_open = self.connection.in_transaction
        if is_open and call.block and not self.blocks["open"]:
            self._know_line(call.line)
            self.blocks["open"] = [call.block]
        self.ledger.done(None if answer["more"] else to_json(answer).encode(), is_open=is_open)
        return answer

    def _known(self, known: Noted, call: StatementCall) -> dict[str, Any]:
        if known.call.digest != call.digest:
            return {"another": known.call.text}
        if known.answer is None:
            why = "it is not known whether it was carried out" if known.is_uncertain else "its answer was not kept"
            return {"unanswered": why}
        return {**json.loads(known.answer), **self._transaction()}

    def _execute(self, sql: str, bindings: object, many: bool, most: int = _BATCH) -> dict[str, Any]:
        try:
            self._cursor = None
            self.witness.before(sql, self.blocks)
        except FileGone as problem:
            self._lose(str(problem))
            raise PermissionError(f"{problem}; the statement was not run, and its transaction is rolled back") from None
        try:
            answer = self._carry_out(sql, bindings, many, most)
        finally:
            self.witness.after(self.blocks)
        if not self.connection.in_transaction and (trouble := self.witness.look()):
            self._lose(trouble)
            raise PermissionError(f"{trouble} while the statement ran: it was done to the file that is gone")
        return answer

    def _lose(self, why: str) -> None:
        """The file is not the one it was: nothing more is done to it."""
        self.gone = self.gone or why
        self.roll_back(why)

    def _look(self) -> None:
        """See whether the file is still the one it was; while a statement runs, only at its path."""
        if not self.turn.acquire(blocking=False):
            self.gone = self.gone or self.witness.look_at_path()
            return
        try:
            if problem := self.gone or self.witness.look():
                self._lose(problem)
        finally:
            self.turn.release()

    def _carry_out(self, sql: str, bindings: Any, many: bool, most: int) -> dict[str, Any]:
        before = self.connection.total_changes()
        was_open = self.connection.in_transaction
        outcome: dict[str, Any] = {"state": "done", "statement": sql[:400], "error": None, "changes": 0}
        self._cursor = None
        try:
            cursor = self.connection.cursor()
            # Many are one: all of them, or none.
            with self.connection if many else contextlib.nullcontext():
                rows = cursor.executemany(sql, bindings) if many else cursor.execute(sql, bindings)
                answer = {"columns": sqlite_json.columns_of(cursor), **self._more(rows, most)}
        except apsw.Error as error:
            outcome["error"] = {"code": type(error).__name__, "message": str(error)}
            self._ended(outcome, was_open)
            raise
        outcome["changes"] = self.connection.total_changes() - before
        self._ended(outcome, was_open)
        last = self.connection.last_insert_rowid()
        return {**answer, "changes": outcome["changes"], "last_rowid": last, **self._transaction()}

    def _more(self, rows: Iterator[Sequence[Any]], most: int = _BATCH) -> dict[str, Any]:
        found = []
        for row in rows:
            found.append([sqlite_json.to_plain(value) for value in row])
            if len(found) == most:
                self._cursor = rows
                return {"rows": found, "more": True}
        self._cursor = None
        return {"rows": found, "more": False}

    def more(self, epoch: int) -> dict[str, Any]:
        with self.turn:
            if epoch != self.epoch or self._cursor is None:
                raise PermissionError("there is nothing more to read")
            return self._more(self._cursor)

    def _transaction(self) -> dict[str, Any]:
        return {"transaction": "open" if self.connection.in_transaction else "none"}

    def _ended(self, outcome: dict[str, Any], was_open: bool) -> None:
        outcome |= self._transaction()
        if was_open and not self.connection.in_transaction:
            rolled_back = outcome["statement"].lstrip()[:8].upper() == "ROLLBACK" or outcome["error"]
            self._transaction_ended("ROLLBACK" if rolled_back else "COMMIT")
        self.outcome = outcome

    def _transaction_ended(self, how: str) -> None:
        self.ledger.ended(is_committed=how == "COMMIT")
        self.witness.has_committed = how == "COMMIT"
        if self.blocks["open"]:
            outcome = COMMITTED if how == "COMMIT" else ROLLED_BACK
            self.blocks["ended"] = {"number": self.blocks["open"][0], "how": how, "outcome": outcome}
            self.blocks["open"] = []

    def enter(self, epoch: int, line: str, number: int) -> dict[str, Any]:
        """Begin a numbered block, inside the open one if there is one."""
        is_inner = self.connection.in_transaction
        answer = self.execute(epoch, f"SAVEPOINT perdure_{number}" if is_inner else "BEGIN IMMEDIATE", (), False)
        self._know_line(line)
        self.blocks["open"].append(number)
        self.blocks["last"] = max(self.blocks["last"], number)
        return answer

    def _know_line(self, line: str) -> None:
        if line != self.blocks["line"]:
            self.blocks = {"line": line, "last": 0, "open": [], "ended": {}}

    def undo(self, epoch: int, name: str, path: str) -> dict[str, Any]:
        """Roll back to a savepoint that a call has made, and forget what came after it."""
        self.execute(epoch, f"ROLLBACK TO {name}", (), False)
        answer = self.execute(epoch, f"RELEASE {name}", (), False)
        self.ledger.forget(path)
        return answer

    def leave(self, epoch: int, number: int, commit: bool) -> dict[str, Any]:
        """End a numbered block."""
        if self.blocks["open"][:1] == [number]:
            return self.execute(epoch, "COMMIT" if commit else "ROLLBACK", (), False)
        if not commit:
            self.execute(epoch, f"ROLLBACK TO perdure_{number}", (), False)
        answer = self.execute(epoch, f"RELEASE perdure_{number}", (), False)
        self.blocks["open"] = [other for other in self.blocks["open"] if isinstance(other, str) or other < number]
        return answer

    def roll_back(self, why: str) -> None:
        with self.turn:
            if self.connection.in_transaction:
                self._cursor = None
                self.connection.cursor().execute("ROLLBACK")
                self._transaction_ended(why)

    def _busy(self, is_busy: bool) -> None:
        with self.changed:
            self.is_busy = is_busy
            self.changed.notify_all()

    # ── others ──────────────────────────────────────────────────────────────────────────────────

    def state(self) -> dict[str, Any]:
        self._look()
        return {
            "gone": self.gone or None,
            "found": {name: value for name, value in self.found.items() if name != "blocks"},
            "is_another_file": self.witness.is_another_file,
            "holder": os.getpid(),
            "ledger": self.ledger.identity,
            "path": self.path,
            "attached": self.client is not None,
            "busy": self.is_busy,
            "outcome": self.outcome,
            "blocks": self.blocks,
            "lost": self.lost,
            "lost_parts": self.told,
            "hold_seconds": self.hold,
            **self._transaction(),
        }

    def wait(self, what: str) -> dict[str, Any]:
        conditions: dict[str, Callable[[], bool]] = {
            "quiet": lambda: not self.is_busy,
            "alone": lambda: self.client is None and not self.is_busy,
            "none": lambda: not self.connection.in_transaction,
        }
        with self.changed:
            self.changed.wait_for(conditions[what])
        return self.state()

    def watch_the_time(self) -> None:
        """Roll back an open transaction that no client came back to in time."""
        while not self.is_ending:
            with self.changed:
                is_orphan = self.client is None and self.connection.in_transaction and not self.is_busy
                if self.idle_limit and self.client is None and not is_orphan and not self.is_busy:
                    if holdclock.seconds() >= self.left + self.idle_limit:
                        os.kill(os.getpid(), signal.SIGUSR1)
                        return
                    self.changed.wait(holdclock.longest_wait())
                    continue
                rest = self.left + self.hold - holdclock.seconds()
                if not is_orphan or rest > 0:
                    longest = holdclock.longest_wait()
                    self.changed.wait(min(rest, longest) if is_orphan else longest)
                    continue
                self.told.append(HELD_TOO_LONG)
                self.roll_back(HELD_TOO_LONG)
                self.changed.notify_all()


# ── the process ──────────────────────────────────────────────────────────────────────────────────


class _Conversation:
    """One connection, in a thread of its own."""

    def __init__(self, holder: Holder, link: socket.socket) -> None:
        self.holder, self.link, self.epoch = holder, link, 0

    def run(self) -> None:
        try:
            self._answer_all()
        finally:  # also when the client that asked for the end has not waited for the answer
            if self.holder.is_ending:
                os.kill(os.getpid(), signal.SIGUSR1)
        self.holder.detach(self.link)

    def _answer_all(self) -> None:
        with contextlib.suppress(OSError), self.link, self.link.makefile("rb") as lines:
            while not self.holder.is_ending and (line := lines.readline(_LONGEST_LINE)):
                try:
                    answer = self._do(json.loads(line))
                except apsw.Error as error:
                    answer = {**sqlite_json.failure_of(error), **self.holder._transaction()}
                except Exception as error:
                    answer = {"error": f"{error}" if isinstance(error, PermissionError) else repr(error)}
                self.link.sendall(json.dumps(answer).encode() + b"\n")

    def _do(self, asked: dict[str, Any]) -> dict[str, Any]:
        holder = self.holder
        match asked["ask"]:
            case "attach":
                self.epoch = holder.attach(self.link)
                answer = holder.state()
                holder.lost, holder.told, holder.found = "", [], {}  # it was told
                return answer
            case "execute":
                return holder.execute(
                    self.epoch,
                    asked["sql"],
                    sqlite_json.bindings_of(asked["bindings"]),
                    False,
                    sqlite_json.call_of(asked),
                )
            case "executemany":
                many = list(map(sqlite_json.bindings_of, asked["bindings"]))
                return holder.execute(self.epoch, asked["sql"], many, True, sqlite_json.call_of(asked))
            case "more":
                return holder.more(self.epoch)
            case "undo":
                return holder.undo(self.epoch, asked["name"], asked["path"])
            case "enter":
                return holder.enter(self.epoch, asked["line"], asked["number"])
            case "leave":
                return holder.leave(self.epoch, asked["number"], asked["commit"])
            case "promise":
                with holder.turn:
                    return {"note": holder.witness.promise()}
            case "outcome":
                with holder.turn:
                    return holder.witness.outcome_of(asked["note"])
            case "state":
                return holder.state()
            case "wait":
                return holder.wait(asked["for"])
            case "cancel":
                holder.connection.interrupt()
                return holder.state()
            case "fence":
                holder.fence()
                return holder.state()
            case "hold":
                with holder.changed:
                    holder.hold = float(asked["seconds"])
                    holder.changed.notify_all()
                return holder.state()
            case "end":
                holder.is_ending = True
                holder.close_door()  # before the answer: a client that has it must not find this holder again
                return {"ended": True}
            case other:
                return {"error": f"{other!r} is not known"}


Tell = Callable[[dict[str, Any]], None]


def main(config: dict[str, Any], answer: Tell | None = None) -> None:
    """Be the holder of one session; returns when it has been ended."""
    tell = answer or tell_starter
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    folder = config["folder"]
    lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell({"error": "the session has a holder already", "kind": "twice"})
        return
    mark = os.path.join(folder, "held")
    lost = LOST if os.path.exists(mark) else UNNOTED if config.get("is_again") else ""
    ledger = Ledger(os.path.join(folder, "ledger"))
    try:
        holder = Holder(config["path"], folder, float(config["hold"]), float(config.get("busy", 5)), lost, ledger)
    except apsw.Error as error:
        tell({"error": str(error), "kind": "open"})
        return
    with open(mark, "w", encoding="utf-8"):
        pass
    if "channel" not in config:  # nothing else would ever end it
        holder.idle_limit = float(config["hold"]) + 3600
    listener = listen(holder.door)
    threading.Thread(target=holder.watch_the_time, daemon=True).start()
    signal.signal(signal.SIGUSR1, _told_to_end)
    signal.signal(signal.SIGUSR2, lambda *_: _put_back(holder, folder))
    tell({"how": "new", "lost": lost})
    with contextlib.suppress(_EndAsked):
        _serve(holder, listener)
    holder.roll_back("the session was ended")
    holder.connection.close()
    holder.witness.forget()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(mark)


def _put_back(holder: Holder, folder: str) -> None:
    """SIGUSR2, from the keeper: the folder was removed, and is there again, empty."""
    hold_lock(folder)
    holder.witness.put_back()
    threading.Thread(target=holder.put_ledger_back, daemon=True).start()
    with open(os.path.join(folder, "held"), "w", encoding="utf-8"):
        pass
    if not holder.is_ending and not os.path.exists(holder.door):
        listener = listen(holder.door)
        threading.Thread(target=_serve, args=(holder, listener), daemon=True).start()


class _EndAsked(BaseException):
    """SIGUSR1, from the keeper or from this process itself: end."""


def _told_to_end(*_: object) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # a second one would cut its end short
    raise _EndAsked


def _serve(holder: Holder, listener: socket.socket) -> None:
    while True:
        link, _ = listener.accept()
        if peer_of(link)[1] not in (os.geteuid(), 0):
            link.close()
            continue
        threading.Thread(target=_Conversation(holder, link).run, daemon=True).start()


if __name__ == "__main__":
    main(read_config())
