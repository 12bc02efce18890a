"""A program on a terminal of its own that the keeper holds: output by offset, input by id.

Owns the master side of the terminal. It never leaves the keeper and the anchor. What a shell adds, to know where
one command ends and the next begins, is in shells.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from perdure.keeper.core import Answer, Call, Gone, Held, Refused, Soon, Verb, untrusted
from perdure.keeper.kinds.inputs import Inputs
from perdure.keeper.kinds.output_log import OutLog, Part
from perdure.keeper.kinds.spooled_program import check_command
from perdure.keeper.process import COOKIE, Program
from perdure.keeper.process import terminal_state as ttys

ROWS, COLUMNS = 40, 120
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
# How often a terminal is looked at while an answer waits for echo to go off.
_LOOK_SECONDS = 0.02


class Terminal(Held):
    """Any program on a terminal."""

    with_token = False

    @property
    def place(self) -> Path:
        """A folder that outlives the keeper, not the machine's running: in memory where that is possible. The program
        can write to it, also when it is isolated: what is read from there is not trusted."""
        return self.keeper.live / self.unit.uid

    @property
    def private(self) -> Path:
        """The same for the keeper alone; an isolated program does not see it."""
        return self.keeper.live / f"{self.unit.uid}.kept"

    def start(self) -> None:
        recipe, uid = self.unit.recipe, self.unit.uid
        self._master, slave = os.openpty()
        try:
            ttys.resize(self._master, int(recipe.get("rows") or ROWS), int(recipe.get("columns") or COLUMNS))
            self.log = OutLog.create(self.keeper.anchored, f"{uid}/out")
            self.keeper.anchored.put(f"{uid}/pty", self._master)
            self._open()
            self.keeper.launch(
                self,
                self.command(),
                (slave, slave, slave),
                is_terminal=True,
                with_token=self.with_token,
                line=self.line(),
            )
        except BaseException:
            self.keeper.loop.remove_reader(self._master)
            raise
        finally:
            os.close(slave)

    def line(self) -> int | None:
        """A descriptor the program gets beside its terminal; it is closed here afterwards."""
        return None

    def command(self) -> Program:
        recipe = self.unit.recipe
        env = {**recipe["env"], **self.secrets, COOKIE: self.unit.uid}
        env.setdefault("TERM", "xterm-256color")
        return self.program(self.argv, env, shown=(str(self.place),))

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        check_command(recipe)

    def recover(self) -> None:
        self._master, _ = self.keeper.anchored.get(f"{self.unit.uid}/pty")
        self.log = OutLog.recover(self.keeper.anchored, f"{self.unit.uid}/out")
        self._open()

    def recall(self) -> None:
        """Its terminal is gone; its output is still there, as long as the machine runs."""
        try:
            self.log = OutLog.recover(self.keeper.anchored, f"{self.unit.uid}/out")
        except KeyError:
            raise Gone("its output is gone") from None
        self._master, self.has_ended = -1, True
        self._prepare()

    def _open(self) -> None:
        self._prepare()
        os.set_blocking(self._master, False)
        self.has_ended = False  # the terminal; no process may be left on it
        self.keeper.loop.add_reader(self._master, self._read)

    def _prepare(self) -> None:
        for folder in (self.place, self.private):
            untrusted.make_folder(folder)
        untrusted.take_over(self.place / "inputs", self.private / "inputs", untrusted.MOST_JOURNAL)
        self._inputs = Inputs(self.private / "inputs")
        self._to_write: deque[tuple[str, memoryview, Soon]] = deque()
        self._waiting: list[tuple[Soon, int, float]] = []  # for output after an offset, until a moment
        self._is_writer = False  # the loop tells when more can be written
        self._patience: asyncio.TimerHandle | None = None

    def mend(self) -> None:
        for folder in (self.place, self.private):
            untrusted.make_folder(folder)
        self._inputs.write_again()

    # ── output ──────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        if self.log.take_from(self._master) is None:
            self._hang_up()
            return
        self.touch()
        self.saw()
        self._wake()

    def _wake(self) -> None:
        """Answer the clients that wait for output that is there now, or, once the program has ended, for output that
        will not come."""
        if self._waiting:
            is_over, end = self.has_ended or self.unit.ended is not None, self.log.end
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                waiter, start, _ = one
                if is_over or start < end:
                    waiter.give(self._from(start))
                else:
                    self._waiting.append(one)

    def wait(self, call: Call) -> Answer | Soon:
        """Answered as soon as there is output after an offset, or there will be none, or some seconds have passed."""
        start, seconds = max(0, call.get("start", int, 0)), float(call.values.get("seconds", 10))
        if self.log.end > start or self.has_ended or not self.unit.is_alive:
            return self._from(start)
        waiter, until = Soon(), self.keeper.loop.time() + seconds
        self._waiting.append((waiter, start, until))
        self._be_patient(until)
        return waiter

    def _be_patient(self, until: float) -> None:
        if self._patience is not None and self._patience.when() > until:
            self._patience.cancel()
            self._patience = None
        if self._patience is None:
            self._patience = self.keeper.loop.call_at(until, self._lose_patience)

    def _lose_patience(self) -> None:
        """Answer those who have waited long enough."""
        now, self._patience = self.keeper.loop.time(), None
        for waiter, start, until in self._waiting:
            if until <= now:
                waiter.give(self._from(start))
        self._waiting = [one for one in self._waiting if not one[0].is_given]
        if self._waiting:
            self._be_patient(min(until for _, _, until in self._waiting))

    def _from(self, start: int) -> Answer:
        part = self.log.read(start)
        return Answer(self._place_of(part), part.data)

    def saw(self) -> None:
        """There is new output; for what a kind reads out of it."""

    def _hang_up(self) -> None:
        """No process has the terminal open any more."""
        self.keeper.loop.remove_reader(self._master)
        self.keeper.loop.remove_writer(self._master)
        self.has_ended = True
        for _, _, done in self._to_write:
            done.give(Refused("ended"))
        self._to_write.clear()
        self._wake()

    def exited(self) -> None:
        """Its program has ended. What it left in the background may still write to the terminal."""
        while not self.has_ended and self.log.take_from(self._master):
            self.saw()
        self._wake()

    def read(self, call: Call) -> Answer:
        """The output from an offset on."""
        return self._from(max(0, call.get("start", int, 0)))

    def _place_of(self, part: Part) -> dict[str, Any]:
        return {
            "start": part.start,
            "gap": part.gap,
            "end": self.log.end,
            "status": self.unit.ended,
            "is_over": self.has_ended,
        }

    # ── input ───────────────────────────────────────────────────────────────────────────────────

    def send(self, call: Call) -> Answer | Soon:
        """Write it once, whatever becomes of the question; answered when all of it is written."""
        id = _checked(call.get("id", str, ""))
        known = self._inputs.state(id)
        if known == "done":
            return Answer({"again": True, "offset": self._inputs.last_at})
        if known == "begun" and not any(id == waiting for waiting, _, _ in self._to_write):
            raise Refused("uncertain", id=id)
        if call.get("unless_secret", bool, False) and self.waits_for() == "secret":
            raise Refused("secret")
        return self.write(id, call.body)

    def write(self, id: str, data: bytes) -> Soon:
        if self.has_ended or not self.unit.is_alive:
            raise Refused("ended")
        for waiting, _, done in self._to_write:
            if id == waiting:
                return done
        self._inputs.begin(id, data, self.log.end)
        done = Soon()
        self._to_write.append((id, memoryview(data), done))
        self.touch()
        self._write()
        return done

    def _write(self) -> None:
        loop = self.keeper.loop
        try:
            while self._to_write:
                id, data, done = self._to_write[0]
                written = os.write(self._master, data[:4096]) if data else 0
                if written < len(data):
                    self._to_write[0] = (id, data[written:], done)
                    continue
                self._to_write.popleft()
                self._inputs.end(id)
                done.give(Answer({"offset": self._inputs.last_at}))
            if self._is_writer:
                self._is_writer = False
                loop.remove_writer(self._master)
        except BlockingIOError:
            self._is_writer = True
            loop.add_writer(self._master, self._write)
        except OSError:
            self._hang_up()

    async def answer(self, call: Call) -> Answer:
        """Write an answer once echo is off; its text is not stored."""
        id, seconds = _checked(call.get("id", str, "")), float(call.values.get("seconds", 30))
        if self._inputs.state(id) == "done":
            return Answer({"again": True})
        if self._inputs.state(id) == "begun":
            raise Refused("uncertain", id=id)
        end = self.keeper.loop.time() + seconds
        while not self._asks_for_secret():
            if self.keeper.loop.time() > end or self.has_ended:
                raise Refused("not asked", seconds=seconds)
            await asyncio.sleep(_LOOK_SECONDS)
        return await self.write(id, call.body)

    def _asks_for_secret(self) -> bool:
        return not self.has_ended and ttys.mode(self._master).is_secret

    def is_known(self, call: Call) -> bool:
        if call.get("do", str, "") not in ("send", "answer"):
            return super().is_known(call)
        return self._inputs.state(call.get("id", str, "")) is not None

    def input_state(self, call: Call) -> Answer:
        """Whether an input was written: done, begun, or null."""
        return Answer({"state": self._inputs.state(call.get("id", str, "")), "offset": self._inputs.last_at})

    # ── the terminal ────────────────────────────────────────────────────────────────────────────

    def resize(self, call: Call) -> Answer:
        rows, columns = call.get("rows", int, 0), call.get("columns", int, 0)
        if not (0 < rows < 10_000 and 0 < columns < 10_000):
            raise Refused("invalid", what=f"a terminal of {rows} × {columns}")
        ttys.resize(self._master, rows, columns)
        return Answer()

    def send_signal(self, call: Call) -> Answer:
        """To the foreground process, as a key on the terminal would."""
        number, group = call.get("number", int, signal.SIGINT), ttys.in_front(self._master)
        if number not in {int(one) for one in signal.valid_signals()}:
            raise Refused("invalid", what=f"signal {number}")
        if group > 1 and not self.has_ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, number)
        return Answer({"group": group})

    def state(self, call: Call) -> Answer:
        if self.has_ended or not self.unit.is_alive:
            return Answer({"waiting": None, "status": self.unit.ended, "end": self.log.end})
        rows, columns = ttys.size(self._master)
        front = ttys.in_front(self._master)
        return Answer(
            {
                "waiting": self.waits_for(),
                "front": front,
                "is_own": front == self.leader,
                "rows": rows,
                "columns": columns,
                "status": self.unit.ended,
                "end": self.log.end,
            }
        )

    def waits_for(self) -> ttys.Waiting | None:
        return ttys.waits_for(self._master)

    @property
    def leader(self) -> int:
        """The program itself: the first process of the terminal's session."""
        return ttys.leader(self._master) or self.unit.pid

    # ── the unit ────────────────────────────────────────────────────────────────────────────────

    def about(self) -> dict[str, Any]:
        told = {"end": self.log.end, "begin": self.log.begin, "last_input_at": self._inputs.last_at}
        if self.has_ended or not self.unit.is_alive:
            return told
        rows, columns = ttys.size(self._master)
        return {**told, "rows": rows, "columns": columns}

    def end(self, number: int = signal.SIGHUP) -> None:
        super().end(number)  # interactive shells do not heed SIGTERM

    def forget(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # it may have stopped early
            if self._master >= 0:
                self._hang_up()
                os.close(self._master)
            self._inputs.close()
            self.log.forget(self.keeper.anchored, f"{self.unit.uid}/out")
        for folder in (self.place, self.private):
            shutil.rmtree(folder, ignore_errors=True)

    verbs: ClassVar[Mapping[str, Verb]] = {
        "read": read,
        "wait": wait,
        "send": send,
        "answer": answer,
        "input_state": input_state,
        "resize": resize,
        "signal": send_signal,
        "state": state,
    }
    writes: ClassVar[frozenset[str]] = frozenset({"send", "answer", "resize", "signal"})


def _checked(id: str) -> str:
    if not _ID.fullmatch(id):
        raise Refused("invalid", what=f"an input without an id: {id!r}")
    return id
