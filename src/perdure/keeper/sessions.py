"""Database sessions: the process of each, started again when it dies, and what it said at its start.

A session's process (pgproxy, sqliteholder) speaks to its clients on sockets of its own; the keeper only sees to it
that there is one. Its configuration, with credentials, is handed to it in memory and written down nowhere. What it
parks outlives it in the anchor; so one that died is started again at once, without credentials, and goes on with
what was parked, or says that it cannot.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, ClassVar

from perdure.keeper import processes
from perdure.keeper.access import is_below
from perdure.keeper.kinds import Answer, Call, Gone, Held, Kind, Refused, Verb
from perdure.keeper.processes import COOKIE
from perdure.keeper.spawn import CannotStart, Command

_PROGRAMS = {"postgres": "perdure.keeper.pgproxy", "sqlite": "perdure.keeper.sqliteholder"}
_ENV = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
# So many deaths within this time, and it is not started again.
_MOST_DEATHS, _WELL_SECONDS = 5, 30.0


class Session(Held):
    _is_wanted = True
    _deaths = 0
    _pipe = -1

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._said: asyncio.Future[dict[str, Any]] = self.keeper.loop.create_future()
        self._heard = b""

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        if recipe.get("program") not in _PROGRAMS:
            raise Refused("invalid", what=f"program is {recipe.get('program')!r}")
        if not isinstance(recipe.get("config"), dict) or "options" in recipe["config"]:
            raise Refused("invalid", what="the configuration of a session")

    @classmethod
    def rebuild(cls, keeper: Any, old: Any) -> dict[str, Any]:
        processes.kill(iter(processes.with_cookie(old.uid)))
        return dict(old.recipe)

    def start(self) -> None:
        self._begin(self.given or self._without_credentials())

    def _without_credentials(self) -> bytes:
        """Enough to go on with what was parked."""
        return json.dumps(self.unit.recipe["config"]).encode()

    def _begin(self, config: bytes) -> None:
        whole = {**json.loads(config), "channel": str(self.keeper.listener.getsockname())}
        folder = self.keeper.units.folder(self.unit)
        told = _in_memory(json.dumps(whole).encode() + b"\n")
        self._pipe, theirs = os.pipe()
        os.set_blocking(self._pipe, False)
        log = os.open(folder / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        env = {name: os.environ[name] for name in _ENV if name in os.environ}
        env |= {str(name): str(value) for name, value in self.unit.recipe.get("env", {}).items()}
        program = _PROGRAMS[self.unit.recipe["program"]]
        command = Command([sys.executable, "-m", program], "/", {**env, COOKIE: self.unit.uid}, 0o077)
        if self._said.done():
            self._said = self.keeper.loop.create_future()
        self._heard = b""
        try:
            self.keeper.launch(self, command, (told, theirs, log), is_terminal=False, with_token=True)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            for fd in (told, theirs, log):
                os.close(fd)
        self.keeper.loop.add_reader(self._pipe, self._hear)

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._pipe, 65536)
            self._heard += data
            if data and b"\n" not in self._heard:
                return
            self._close_pipe()
            with contextlib.suppress(ValueError):
                self._tell(json.loads(self._heard))

    def _tell(self, said: dict[str, Any]) -> None:
        if "error" in said:
            self.unit.facts["why"] = said["error"]
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

    async def answer(self, call: Call) -> Answer:
        """What the process says at its start; nothing when it was started by a former keeper."""
        return Answer({"said": await asyncio.shield(self._said) if self.unit.is_alive or self._said.done() else {}})

    # ── its death ───────────────────────────────────────────────────────────────────────────────

    def recover(self) -> None:
        unit = self.unit
        has_exited = any((one.pid, one.start) == (unit.pid, unit.start) for one in self.keeper.anchored.exits())
        if not has_exited and not (
            processes.is_same(unit.pid, unit.start) and is_below(unit.pid, self.keeper.anchor_pid)
        ):
            raise Gone("its process ended with the anchor, and its connection with it")
        self._said.set_result({"how": "kept"} if unit.facts.get("is_ready") else {})

    def recall(self) -> None:
        self._said.set_result({"error": self.unit.facts.get("why", "it has ended"), "kind": "lost"})

    def exited(self) -> None:
        self._close_pipe()
        unit = self.unit
        lived = (unit.ended_at or 0.0) - unit.facts.get("started_at", unit.made_at)
        self._deaths = 1 if lived >= _WELL_SECONDS else self._deaths + 1
        if self._is_wanted and unit.ended != 0 and self._deaths <= _MOST_DEATHS:
            self._again()
            return
        if unit.ended != 0:
            unit.facts.setdefault("why", "its process died")
        if not self._said.done():
            self._said.set_result({"error": unit.facts.get("why", "its process died"), "kind": "lost"})
        self.keeper.save(unit)

    def _again(self) -> None:
        unit = self.unit
        unit.facts["started_at"] = self.keeper.now()
        unit.ended = unit.ended_at = None
        try:
            self._begin(self._without_credentials())
        except (CannotStart, OSError) as error:
            unit.ended, unit.ended_at = -1, self.keeper.now()
            unit.facts["why"] = f"it could not be started again: {error}"
            self.keeper.save(unit)

    def end(self, number: int = signal.SIGUSR1) -> None:
        """It rolls back, says goodbye to the server and lets go of what it has parked."""
        self._is_wanted = False
        super().end(number)

    def about(self) -> dict[str, Any]:
        return {"what": f"{self.unit.recipe['program']} session", "folder": self.unit.recipe["config"].get("folder")}

    verbs: ClassVar[Mapping[str, Verb]] = {"answer": answer}


def _in_memory(data: bytes) -> int:
    """A descriptor to read it from; no file has it."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("session", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


KINDS = (Kind("session", Session, identity=lambda recipe: recipe["config"]["folder"]),)
