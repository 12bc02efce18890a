"""The keeper: holds units for tasks, outlives the agents that made them, and can be replaced while units live.

The anchor starts the keeper, and starts it again whenever it ends. All state is on disk (units.py) and in the anchor
(anchor_client.py), so the keeper can be killed at any point, and `replace` simply executes the new program.

Owns the loop, and the path of a question from its connection to its handler. The core's own questions are in
handlers.py, kinds of units behind the seam of unit_kinds.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Iterable, Iterator
from pathlib import Path
from typing import Any

from perdure._ground.ids import boot_id, pid_ns
from perdure.keeper.anchor import start_of
from perdure.keeper.core import (
    IN_EVERY_VERSION,
    QUESTIONS,
    Anchored,
    AnchorGone,
    Answer,
    Bells,
    Call,
    Connection,
    Door,
    Exit,
    Finished,
    Gone,
    Held,
    Home,
    Labels,
    Limits,
    NotHeld,
    Refused,
    Registry,
    Soon,
    Unit,
    access,
    all_kinds,
    records,
    shortened,
    who_writes,
    wire,
)
from perdure.keeper.core import log as keeper_log
from perdure.keeper.process import CannotStart, Program, is_below, processes, spawn

log = logging.getLogger("perdure.keeper")

_PR_SET_DUMPABLE = 4
# Between being asked to end and being killed.
GRACE_SECONDS = 5.0
# How long an ended unit is kept after another has replaced it.
SUPERSEDED_SECONDS = 3600.0
UNSEEN = -1
_STORE_FOLDER = ".perdure"


class Keeper:
    def __init__(self, home: Path, link: socket.socket, listener: socket.socket, argv: list[str]) -> None:
        self.home, self.listener, self.argv = home, listener, argv
        self.live = Path(listener.getsockname()).parent  # for what must not reach a disk
        self.loop = asyncio.new_event_loop()
        self.anchored, self.anchor_pid = Anchored(link), os.getppid()
        self.kinds = all_kinds()
        self.units = Registry(home, records.Records(self.anchored, argv[0]))
        self.held: dict[str, Held] = {}
        self.writers: dict[str, Connection] = {}
        self.labels = Labels(self.loop)
        self.connections: set[Connection] = set()
        self._tokens: dict[tuple[int, int], str] = {}  # by identity: the unit that was given it
        self._by_process: dict[tuple[int, int], Unit] = {}
        self._answering: set[asyncio.Future[Any]] = set()
        self._for_end: dict[str, list[Soon]] = {}  # by unit: answers that wait for its end
        self.limits, self.finished, self.bells = Limits(self), Finished(self), Bells(self.loop)
        self.door, self.folder = Door(self), Home(self)

    def run(self) -> None:
        """Serve until stopped, or until the anchor has ended."""
        self.loop.set_exception_handler(self._broke)
        asyncio.set_event_loop(self.loop)
        was_removed = self.door.mend()
        self.folder.begin()
        self._tokens = access.tokens_in(self.anchored)
        self.take_up(self.units)
        if was_removed:
            self.door.mend_units()
        self.finished.recover()
        self.door.open()
        self.loop.add_reader(self.anchored.link, self._hear)
        self.anchored.told = lambda: self.loop.call_soon(self._hear)
        self._hear()  # messages of the anchor that came while units were taken over
        self.limits.watch()
        self.loop.run_forever()

    def _broke(self, loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        error = about.get("exception")
        if isinstance(error, AnchorGone):
            loop.stop()
        else:
            log.error("%s", about.get("message"), exc_info=error)

    # ── units of a former keeper ────────────────────────────────────────────────────────────────

    def take_up(self, units: Iterable[Unit]) -> None:
        """Take over units of a former keeper."""
        exits = {(one.pid, one.start): one for one in self.anchored.exits()}
        while self.units.aside:
            self._let_go(self.units.aside.pop())
        for unit in units:
            if unit.is_alive:
                self._take_up_one(unit, exits.get((unit.pid, unit.start)))
            else:
                if (unit.pid, unit.start) in exits:
                    self.anchored.forget(unit.pid, unit.start)
                self._revive(unit)

    def _take_up_one(self, unit: Unit, ended: Exit | None) -> None:
        if unit.boot != boot_id():
            self._gone(unit, "the machine was restarted")
            return
        if unit.pid_ns not in ("", pid_ns()):
            self._gone(unit, "it was another container's, which has ended or cannot be seen from here")
            return
        if unit.kind not in self.kinds:
            return  # of a newer keeper: left alone
        held: Held | None = None
        try:
            self.kinds[unit.kind].held.check(unit.recipe)
            held = self.kinds[unit.kind].held(self, unit)
            held.recover()
            if held.has_process and unit.is_alive and not self._is_ours(unit):
                raise ValueError(f"process {unit.pid} is not the one it had")
        except (Gone, NotHeld) as error:
            self._gone(unit, str(error) if isinstance(error, Gone) else "its descriptors were lost with the anchor")
        except AnchorGone:
            raise
        except Exception as error:  # damage of one unit must not stop the others
            log.exception("unit %s is set aside", unit.uid, exc_info=error)
            self._give_up(unit, held, error)
        else:
            self.held[unit.uid] = held
            if unit.pid:
                self._by_process[unit.pid, unit.start] = unit
            if ended is not None:
                self._exited(ended)

    def _is_ours(self, unit: Unit) -> bool:
        """True if the recorded process is there, or has ended and the anchor knows how."""
        if unit.pid and (unit.start or not start_of(os.getpid())) and start_of(unit.pid) == unit.start:
            return True
        return any((one.pid, one.start) == (unit.pid, unit.start) for one in self.anchored.exits())

    def _give_up(self, unit: Unit, held: Held | None, error: Exception) -> None:
        """A unit whose record or files are damaged is lost, so all its processes must end."""
        if held is not None:
            with contextlib.suppress(Exception):
                held.forget()
        if processes.is_same(unit.pid, unit.start) and is_below(unit.pid, self.anchor_pid):
            processes.kill(processes.of_unit(unit.pid, unit.uid, self.anchor_pid))
        self._let_go(unit.uid)
        why = f"{type(error).__name__}: {shortened(str(getattr(error, 'values', error)))}"
        self.units.unreadable.append(f"{unit.uid}: {why}")
        unit.facts["aside"] = True
        self._gone(unit, f"its record or its files were damaged ({why}) and are set aside")

    def _let_go(self, uid: str) -> None:
        """End the remaining processes of a unit, and drop its descriptors from the anchor."""
        processes.kill(iter(processes.with_cookie(uid)))
        self._drop_descriptors(uid)

    def _drop_descriptors(self, uid: str) -> None:
        for name, _ in list(self.anchored.names()):
            if name.startswith((f"{uid}/", f"token:{uid}", f"fd:{uid}/")):
                self.anchored.drop(name)
        self._tokens = {token: unit for token, unit in self._tokens.items() if unit != uid}

    def _revive(self, unit: Unit) -> None:
        if unit.boot != boot_id() or unit.pid_ns not in ("", pid_ns()) or unit.kind not in self.kinds:
            return
        held = self.kinds[unit.kind].held(self, unit)
        self.held[unit.uid] = held
        if not held.revive():
            del self.held[unit.uid]

    def _gone(self, unit: Unit, why: str) -> None:
        unit.ended, unit.ended_at = UNSEEN, self.now()
        unit.facts["why"] = why
        try:
            self.save(unit)
        except OSError as error:  # its folder is damaged or the disk full: the next keeper finds the same
            log.warning("the end of a unit could not be written down: %s", error)

    # ── connections ─────────────────────────────────────────────────────────────────────────────

    def left(self, connection: Connection) -> None:
        self.connections.discard(connection)
        for uid in [uid for uid, writer in self.writers.items() if writer is connection]:
            del self.writers[uid]
        for held in list(self.held.values()):
            held.left(connection)

    def admit(self, connection: Connection, token: int | None) -> None:
        """Admit a client that has said hello.

        Raises:
            Refused: the client may not speak with this keeper.
        """
        try:
            pid, uid = access.peer_of(connection.sock)
            access.check_user(uid)
            known = self._tokens.get(access.token_id(token)) if token is not None else None
            if known is None:
                access.check_descent(connection.sock, pid, self.anchor_pid)
        except access.Stranger as stranger:
            raise Refused("stranger", what=str(stranger)) from None
        connection.pid, connection.start, connection.speaks_for = pid, start_of(pid), known or ""

    def asked(self, connection: Connection, request: wire.Request) -> None:
        try:
            answer = self._answer(connection, request)
        except Exception as error:
            self._refuse(connection, request, error)
            return
        finally:
            for fd in request.fds:  # a handler that keeps one has made a copy
                os.close(fd)
        if isinstance(answer, Answer):
            self._reply(connection, request, answer)
        elif isinstance(answer, Soon):
            if answer.is_given:
                self._given(connection, request, answer)
            else:
                answer.then(lambda: self._given(connection, request, answer))
        else:
            waiting = asyncio.ensure_future(answer, loop=self.loop)
            self._answering.add(waiting)
            waiting.add_done_callback(lambda done: self._answered(connection, request, done))

    def _answer(self, connection: Connection, request: wire.Request) -> Answer | Soon | Awaitable[Answer]:
        is_frozen = request.verb in IN_EVERY_VERSION and (connection.is_admitted or request.verb == "hello")
        if not connection.version and not is_frozen:
            raise Refused("say hello first")
        call = Call(connection, request.args, request.body, request.fds)
        self.folder.look()
        while connection.is_told:
            self._heard(connection.is_told.pop())
        if request.verb == "do":
            return self._ask_unit(connection, call)
        question = QUESTIONS.get(request.verb)
        if question is None:
            raise Refused("unknown verb", verb=request.verb)
        return question(self, connection, call)

    def _heard(self, uid: str) -> None:
        """The client that had this unit rebuilt has received the answer."""
        if (unit := self.units.get(uid)) is not None:
            unit.facts["rebuild_heard"] = True
            with contextlib.suppress(OSError):  # a full disk: the client is told again
                self.save(unit)

    def _ask_unit(self, connection: Connection, call: Call) -> Answer | Soon | Awaitable[Answer]:
        uid, verb = call.get("unit", str, ""), call.get("do", str, "")
        held = self.held.get(uid) or self._recalled(uid)
        if held is None:
            raise Refused("no unit", unit=uid)
        if verb not in held.verbs:
            raise Refused("unknown verb", verb=f"{held.unit.kind}.{verb}")
        if verb in held.writes:
            self._check_writer(connection, held, call)
        return held.signal_once(call) if verb == "signal" else held.verbs[verb](held, call)

    def _recalled(self, uid: str) -> Held | None:
        """A unit that ended under a former keeper, if something of it can still be read."""
        unit = self.units.get(uid)
        if unit is None or unit.is_alive or unit.kind not in self.kinds:
            return None
        held = self.kinds[unit.kind].held(self, unit)
        try:
            held.recall()
        except (Gone, NotHeld, OSError):
            return None
        self.held[uid] = held
        return held

    def _check_writer(self, connection: Connection, held: Held, call: Call) -> None:
        label, unit = call.get("label", str, ""), held.unit
        if not label:
            self.check_lease(connection, unit, call.get("epoch", int, -1))
        elif not self.labels.renew(unit.uid, label) and not held.is_known(call):
            raise Refused("held", **who_writes(self, unit.uid))

    def check_lease(self, connection: Connection, unit: Unit, epoch: int) -> None:
        if epoch != unit.epoch or self.writers.get(unit.uid) is not connection:
            raise Refused("stale", epoch=unit.epoch)

    def _given(self, connection: Connection, request: wire.Request, soon: Soon) -> None:
        try:
            answer = soon.result()
        except Exception as error:
            self._refuse(connection, request, error)
        else:
            self._reply(connection, request, answer)

    def _answered(self, connection: Connection, request: wire.Request, done: asyncio.Future[Answer]) -> None:
        self._answering.discard(done)
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, Exception):
            self._refuse(connection, request, error)
        elif error is None:
            self._reply(connection, request, done.result())

    def _reply(self, connection: Connection, request: wire.Request, answer: Answer) -> None:
        try:
            connection.send(wire.Reply(request.id, answer.values, answer.body, answer.fds))
        except wire.BadFrame as error:  # without an answer the client would connect and ask again for ever
            for fd in answer.fds:
                os.close(fd)
            connection.send(wire.Refusal(request.id, "broken", {"what": f"the answer is too large: {error}"}))

    def _refuse(self, connection: Connection, request: wire.Request, error: Exception) -> None:
        match error:
            case AnchorGone():
                raise error
            case Refused():
                refusal = wire.Refusal(request.id, error.error, error.values)
            case CannotStart():
                refusal = wire.Refusal(request.id, "cannot start", {"what": str(error)})
            case OSError():
                refusal = wire.Refusal(request.id, "system", {"what": str(error), "errno": error.errno})
            case _:
                log.exception("%s failed", request.verb, exc_info=error)
                refusal = wire.Refusal(request.id, "broken", {"what": f"{type(error).__name__}: {error}"})
        if (unit := self.units.get(str(request.args.get("unit", "")))) is not None:
            refusal.args["unit_name"] = unit.name
        connection.send(refusal)

    # ── processes ───────────────────────────────────────────────────────────────────────────────

    def launch(
        self,
        held: Held,
        command: Program,
        stdio: tuple[int, int, int],
        *,
        is_terminal: bool,
        with_token: bool = False,
        line: int | None = None,
    ) -> None:
        """Start the unit's process; it is on record and watched before it begins. Beside its `stdio` it gets a token,
        or the end of a line, which is closed here.

        Raises:
            CannotStart: it did not begin.
        """
        unit, token = held.unit, access.new_token() if with_token else None
        if token is not None:
            self._tokens[access.token_id(token.fileno())] = unit.uid
            self.anchored.put(f"token:{unit.uid}", token.fileno(), unit.uid)
        try:
            waiting = spawn(command, stdio, is_terminal=is_terminal, token=line if token is None else token.fileno())
        finally:
            if token is not None:
                token.close()
            if line is not None:
                os.close(line)
        unit.pid, unit.start = waiting.pid, waiting.start
        try:
            self.anchored.watch(unit.pid, unit.start)
            self._by_process[unit.pid, unit.start] = unit
            self.save(unit, through_power_loss=True)
        except BaseException:
            waiting.give_up()
            raise
        waiting.go()

    def _hear(self) -> None:
        for one in self.anchored.hear():
            with self.alone("the end of a unit"):
                self._exited(one)

    @contextlib.contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Log an error of one unit, so that it does not affect others."""
        try:
            yield
        except AnchorGone:
            raise
        except Exception as error:
            log.exception("%s went wrong", what, exc_info=error)

    def _exited(self, one: Exit) -> None:
        unit = self._by_process.pop((one.pid, one.start), None)
        if unit is None or not unit.is_alive:
            self.anchored.forget(one.pid, one.start)
            return
        unit.ended, unit.ended_at = one.status, self.now()
        try:
            self.save(unit)
            self.anchored.forget(one.pid, one.start)
        except OSError as error:  # a full disk: the anchor still knows how it ended, and tells the next keeper
            log.warning("the end of a unit could not be written down: %s", error)
        if unit.uid in self.held:
            self.held[unit.uid].exited()

    def ended_unseen(self, unit: Unit) -> None:
        """A process that no anchor watches has ended."""
        self._exited(Exit(unit.pid, unit.start, UNSEEN))

    def signal(self, unit: Unit, number: int) -> None:
        """Send a signal to the unit's session, while its process is still the recorded one."""
        if unit.is_alive and unit.pid and processes.is_same(unit.pid, unit.start):
            with contextlib.suppress(ProcessLookupError):
                os.kill(unit.pid, number)

    def end(self, unit: Unit) -> None:
        """Ask it to end, and kill it after the grace."""
        held = self.held.get(unit.uid)
        if held is not None and unit.is_alive:
            held.end()
            self.loop.call_later(GRACE_SECONDS, self._kill, unit)
        elif held is not None:
            held.superseded()

    def end_of(self, unit: Unit) -> Soon:
        """An answer that is given as soon as it has ended."""
        soon = Soon()
        self._for_end.setdefault(unit.uid, []).append(soon)
        return soon

    def _kill(self, unit: Unit) -> None:
        if unit.is_alive:
            processes.kill(processes.of_unit(unit.pid, unit.uid, self.anchor_pid))
            self.loop.call_later(1.0, self._see_killed, unit)

    def _see_killed(self, unit: Unit) -> None:
        """Record the end of a killed process that the anchor did not watch, so that no client waits for ever."""
        if unit.is_alive and not self._is_ours(unit) and unit.uid in self.held:
            self._gone(unit, "it was ended, and its exit status was not seen")
            self.held[unit.uid].exited()

    def tidy(self) -> None:
        """Forget ended units an hour after others took their places."""
        for unit in self.units:
            if not unit.is_alive and self.now() - (unit.ended_at or 0.0) > SUPERSEDED_SECONDS:
                newest = self.units.find(unit.owner.namespace, unit.owner.uid, unit.name)
                if newest is not None and newest.uid != unit.uid:
                    self.forget(unit)

    def forget(self, unit: Unit) -> None:
        """Remove the record of a unit that has ended, with all that was kept of it."""
        held = self.held.pop(unit.uid, None)
        if held is not None:
            held.forget()
        self._drop_descriptors(unit.uid)
        self.units.remove(unit)

    # ── small things ────────────────────────────────────────────────────────────────────────────

    def save(self, unit: Unit, *, through_power_loss: bool = False) -> None:
        try:
            self.units.save(unit, through_power_loss=through_power_loss)
        except FileNotFoundError:
            if self.folder.is_there:  # else it will be made again, with all records that are in memory
                raise
        finally:
            if not unit.is_alive:
                for soon in self._for_end.pop(unit.uid, ()):
                    soon.give(Answer())

    @property
    def hidden(self) -> list[str]:
        """The paths hidden from isolated units: sockets, records, and the store where it is beside them."""
        in_memory = [base for base in ("/dev/shm", f"/run/user/{os.getuid()}") if os.path.isdir(base)]  # noqa: S108
        live = [] if str(self.live.parent) in in_memory else [str(self.live)]
        home = self.home.parent if self.home.parent.name == _STORE_FOLDER else self.home
        return [*in_memory, *live, str(home)]

    @staticmethod
    def now() -> float:
        return time.time()

    def replace(self) -> None:
        """Execute `argv` in this process's place; clients connect anew, units notice nothing."""
        for connection in list(self.connections):
            connection.close()
        self.units.records.close()
        link, listener = self.anchored.link.fileno(), self.listener.fileno()
        for fd in (link, listener):
            os.set_inheritable(fd, True)
        os.execv(self.argv[0], [*self.argv, str(self.home), str(link), str(listener)])

    def stop(self) -> None:
        shutil.rmtree(self.live, ignore_errors=True)
        self.anchored.stop()
        self.loop.stop()


def main(argv: list[str]) -> None:
    """`argv`: how this program is started, then the home, the anchor's link, the listening socket."""
    if argv[-1] == "--check":  # whether all can be imported
        all_kinds()
        return
    *command, home, link, listener = argv
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    keeper_log.begin()
    os.umask(0o077)
    for fd in (int(link), int(listener)):
        os.set_inheritable(fd, False)
    keeper = Keeper(Path(home), socket.socket(fileno=int(link)), socket.socket(fileno=int(listener)), command)
    with contextlib.suppress(AnchorGone):
        keeper.run()
