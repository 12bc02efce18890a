"""Database sessions: the process of each, started again when it dies, and what it said at its start.

A session's process (pgproxy, sqlite_holder) speaks to its clients on sockets of its own; the keeper only starts it,
and starts it again. Its configuration, with credentials, is handed over in memory and never written to disk. The
descriptors that it parks outlive it in the anchor. So a process that died is started again at once, without
credentials, and continues with the parked connection or reports that it cannot.

A session is over when its process has ended and left nothing: neither a parked descriptor nor the mark of a held file.
The next process of the same folder takes up what is left, under whatever unit that is. If there will be none, it is
closed, so that no connection is held open for a session that is called lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from perdure._ground.secrets.secret_forms import hide_forms
from perdure.keeper.core import Answer, Call, Gone, Held, Kind, Refused, Unit, Verb, untrusted
from perdure.keeper.process import COOKIE, CannotStart, Program, is_below, memory_file_with, processes

PROGRAMS = {"postgres": "perdure.keeper.pgproxy", "sqlite": "perdure.keeper.sqlite_holder"}
_ENV = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
# A holder's file in its folder, for as long as it holds a connection that cannot be parked.
_MARK = "held"
# What is parked beside the connection and keeps nothing alive.
_NOT_ALIVE = (".recipe", ".ledger")
# So many deaths within this time, and it is not started again.
_MOST_DEATHS, _WELL_SECONDS = 5, 30.0
_ORPHAN_SECONDS = 0.1


class SessionUnit(Held):
    _is_wanted = True
    _deaths = 0
    _pipe = -1

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._said: asyncio.Future[dict[str, Any]] = self.keeper.loop.create_future()
        self._heard = b""

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        if recipe.get("program") not in PROGRAMS:
            raise Refused("invalid", what=f"program is {recipe.get('program')!r}")
        if not isinstance(recipe.get("config"), dict) or "options" in recipe["config"]:
            raise Refused("invalid", what="the configuration of a session")

    @classmethod
    def rebuild(cls, keeper: Any, old: Any) -> dict[str, Any]:
        processes.kill(iter(processes.with_cookie(old.uid)))
        if processes.is_same(old.pid, old.start):  # its environment may be hidden from us
            processes.kill(iter([old.pid]))
        return dict(old.recipe)

    def start(self) -> None:
        self._inherit()
        self._begin(self.given or self._without_credentials())

    def _without_credentials(self) -> bytes:
        """Enough to go on with what was parked."""
        return json.dumps(self.unit.recipe["config"]).encode()

    def _begin(self, config: bytes) -> None:
        whole = bytearray(config.rstrip()[:-1])  # put together as bytes: these can be overwritten
        whole += b', "channel": ' + json.dumps(str(self.keeper.listener.getsockname())).encode() + b"}\n"
        folder = self.keeper.units.folder(self.unit)
        # Its folder may have been removed while it was dead. What it has parked is still good.
        os.makedirs(self._folder(self.unit), mode=0o700, exist_ok=True)
        told = memory_file_with(whole)
        whole[:] = bytes(len(whole))
        self._pipe, theirs = os.pipe()
        os.set_blocking(self._pipe, False)
        # Its report at the start is for the next client that opens it, also if this keeper does not live to hear it.
        self.keeper.anchored.put(self._pipe_name, self._pipe)
        log = untrusted.open_file(folder / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        env = {name: os.environ[name] for name in _ENV if name in os.environ}
        env |= {str(name): str(value) for name, value in self.unit.recipe.get("env", {}).items()}
        program = PROGRAMS[self.unit.recipe["program"]]
        command = Program([sys.executable, "-m", program], "/", {**env, COOKIE: self.unit.uid}, 0o077)
        if self._said.done():
            self._said = self.keeper.loop.create_future()
        self._heard = b""
        try:
            self.keeper.launch(self, command, (told, theirs, log), is_terminal=False, with_token=True)
        except BaseException:
            self._close_pipe()
            raise
        finally:
            for fd in (told, theirs, log):
                os.close(fd)
        self.keeper.loop.add_reader(self._pipe, self._hear)

    @property
    def _pipe_name(self) -> str:
        return f"{self.unit.uid}/said"

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._pipe, 65536)
            self._heard += data
            if data and b"\n" not in self._heard:
                return
            with contextlib.suppress(ValueError):
                self._tell(json.loads(self._heard))
            self._close_pipe()

    def _tell(self, said: dict[str, Any]) -> None:
        if "error" in said:
            self.unit.facts["why"] = hide_forms(str(said["error"]))
        else:
            self.unit.facts["is_ready"] = True
        if not self._said.done():
            self._said.set_result(said)
        self.keeper.save(self.unit)

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            self.keeper.loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
            with contextlib.suppress(KeyError):
                self.keeper.anchored.drop(self._pipe_name)

    async def answer(self, call: Call) -> Answer:
        """The report of the process at its start; nothing if a former keeper started it."""
        return Answer({"said": await asyncio.shield(self._said) if self.unit.is_alive or self._said.done() else {}})

    # ── what it leaves ──────────────────────────────────────────────────────────────────────────

    def _parked(self, uid: str) -> list[str]:
        return [name for name, _ in self.keeper.anchored.names() if name.startswith(f"fd:{uid}/")]

    def _inherit(self) -> None:
        """Take over what units before this one have parked for the same folder."""
        folder, anchored = self._folder(self.unit), self.keeper.anchored
        for other in self.keeper.units:
            if other.kind == self.unit.kind and other.uid != self.unit.uid and self._folder(other) == folder:
                for name in self._parked(other.uid):
                    fd, about = anchored.get(name)
                    anchored.put(name.replace(other.uid, self.unit.uid, 1), fd, about)
                    os.close(fd)
                    anchored.drop(name)

    @staticmethod
    def _folder(unit: Unit) -> str:
        return str(unit.recipe["config"].get("folder"))

    def _has_left_something(self) -> bool:
        is_held = os.path.exists(os.path.join(self._folder(self.unit), _MARK))
        return is_held or any(not name.endswith(_NOT_ALIVE) for name in self._parked(self.unit.uid))

    def _let_go(self) -> None:
        """No process will take it up: close it, and the server rolls back."""
        for name in self._parked(self.unit.uid):
            fd, _ = self.keeper.anchored.get(name)
            with socket.socket(fileno=fd) if _is_socket(fd) else os.fdopen(fd, "rb", closefd=True) as parked:
                if isinstance(parked, socket.socket):
                    with contextlib.suppress(OSError):
                        parked.shutdown(socket.SHUT_RDWR)
            self.keeper.anchored.drop(name)

    # ── its death ───────────────────────────────────────────────────────────────────────────────

    def recover(self) -> None:
        unit = self.unit
        has_exited = any((one.pid, one.start) == (unit.pid, unit.start) for one in self.keeper.anchored.exits())
        if not has_exited and not processes.is_same(unit.pid, unit.start):
            unit.facts["is_over"] = True
            raise Gone("its process ended with the anchor, and its connection with it")
        if unit.facts.get("is_ready"):
            self._said.set_result({"how": "kept"})
        else:
            self._hear_on()
        if not has_exited and not is_below(unit.pid, self.keeper.anchor_pid):
            self._watch_orphan()

    def _hear_on(self) -> None:
        """The keeper that started it has died before it was ready: its answer is still to come."""
        try:
            self._pipe = self.keeper.anchored.get(self._pipe_name)[0]
        except KeyError:  # it was lost with the anchor, or a former perdure did not keep it
            self._said.set_result({"how": "kept"})
            return
        os.set_blocking(self._pipe, False)
        self.keeper.loop.add_reader(self._pipe, self._hear)

    def _watch_orphan(self) -> None:
        """Its anchor has died, and it lives on: its end will not be reported to any other process."""
        if self.unit.is_alive and processes.is_same(self.unit.pid, self.unit.start):
            self.keeper.loop.call_later(_ORPHAN_SECONDS, self._watch_orphan)
        elif self.unit.is_alive:
            self.keeper.ended_unseen(self.unit)

    def revive(self) -> bool:
        unit = self.unit
        newest = self.keeper.units.find(unit.owner.namespace, unit.owner.uid, unit.name)
        if unit.facts.get("is_over") or newest is not unit or not self._has_left_something():
            return False
        self._again()
        return unit.is_alive

    def look(self) -> None:
        if not os.path.exists(self._door):
            self.mend()

    def mend(self) -> None:
        """Have its process put its sockets back: it lives, and its transaction with it."""
        unit = self.unit
        if not processes.is_same(unit.pid, unit.start):
            return
        # The signal ends a process without a handler. One that has just been started makes its sockets by itself.
        if processes.catches(unit.pid, signal.SIGUSR2):
            os.makedirs(os.path.dirname(self._door), mode=0o700, exist_ok=True)
            self.keeper.signal(self.unit, signal.SIGUSR2)

    @property
    def _door(self) -> str:
        return os.path.join(str(self.unit.recipe["config"].get("folder")), "control")

    def recall(self) -> None:
        self._said.set_result({"error": self.unit.facts.get("why", "it has ended"), "kind": "lost"})

    def exited(self) -> None:
        if self._pipe >= 0:
            self._hear()  # its last words
            self._close_pipe()
        unit = self.unit
        lived = (unit.ended_at or 0.0) - unit.facts.get("started_at", unit.made_at)
        self._deaths = 1 if lived >= _WELL_SECONDS else self._deaths + 1
        has_died = unit.ended != 0 or self._has_left_something()
        if self._is_wanted and has_died and self._deaths <= _MOST_DEATHS:
            self._again()
            return
        if has_died:
            unit.facts.setdefault("why", "its process died")
            self._let_go()
        unit.facts["is_over"] = True
        if not self._said.done():
            self._said.set_result({"error": unit.facts.get("why", "its process died"), "kind": "lost"})
        self.keeper.save(unit)

    def _again(self) -> None:
        unit = self.unit
        unit.facts["started_at"] = self.keeper.now()
        unit.ended = unit.ended_at = None
        config = {**unit.recipe["config"], "is_again": bool(unit.facts.get("is_ready"))}
        try:
            self._begin(json.dumps(config).encode())
        except (CannotStart, OSError) as error:
            unit.ended, unit.ended_at = -1, self.keeper.now()
            unit.facts["why"] = f"it could not be started again: {error}"
            unit.facts["is_over"] = True
            self._let_go()
            self.keeper.save(unit)

    def end(self, number: int = signal.SIGUSR1) -> None:
        """It rolls back, says goodbye to the server and lets go of what it has parked."""
        self._is_wanted = False
        super().end(number)

    def about(self) -> dict[str, Any]:
        return {"what": f"{self.unit.recipe['program']} session", "folder": self.unit.recipe["config"].get("folder")}

    verbs: ClassVar[Mapping[str, Verb]] = {"answer": answer}


def _is_socket(fd: int) -> bool:
    return stat.S_ISSOCK(os.fstat(fd).st_mode)


KINDS = (Kind("session", SessionUnit, identity=lambda recipe: recipe["config"]["folder"]),)
