"""Servers and other programs in the background: their log by offset, their ports, their restarts.

A service has a session of its own, default signal dispositions, no descriptors but its own, and nothing to read.
If it was opened with restarts, it is started again after a failure: each time a little later, and not for ever. If the
anchor dies, services live on. The next keeper finds them by process id, start time and the cookie in their environment,
and takes them over or, before a rebuild, ends them. There are never two processes of one service.

Owns when a service is started again. The waiting client finds out when it is ready, by its ports and its log.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from perdure.keeper.core import Answer, Call, Gone, Kind, Refused, Unit, Verb
from perdure.keeper.kinds.spooled_program import UNSEEN, Spooled, check_command
from perdure.keeper.process import OWNER, CannotStart, Program, is_running, ports, processes

# After this many failures, each sooner than this after its start, it is not started again.
MOST_RESTARTS = 5
_WELL_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
GRACE_SECONDS = 5.0
# How long killed processes may take to disappear, with their ports.
_PATIENCE_SECONDS, _LOOK_SECONDS = 1.0, 0.002


class Service(Spooled):
    is_one_by_name = True  # another one of this name, for a task of this id, is a former one
    _is_wanted = True
    _restart: asyncio.TimerHandle  # of the restart that is due

    def start(self) -> None:
        self._end_others()
        port = self.unit.recipe.get("port")
        if port and ports.is_taken(port):
            # If it belongs to another unit, it is left alone.
            raise Refused("port taken", port=port)
        super().start()
        self.unit.facts["told"] = {"to": [], "is": self._identity, "was": None}

    def _end_others(self) -> None:
        """End what runs under this task's id and this name already: its records were removed, or its store was and was
        made again, or the task is another one of the same id now. There are never two of one."""
        if not self.is_one_by_name:
            return
        mine, others = self.unit, set(processes.with_variable(OWNER, self._owner_mark))
        for unit in self.keeper.units:
            if unit.uid == mine.uid or unit.uid not in self.keeper.held or _named(unit) != _named(mine):
                continue
            if not unit.is_alive:  # it may wait to be started again
                self.keeper.held[unit.uid].superseded()
            else:
                unit.facts["why"] = "another service of this name was started for a task of the same id"
                self.keeper.held[unit.uid].superseded()
                others |= set(processes.of_unit(unit.pid, unit.uid, self.keeper.anchor_pid))
        processes.kill(iter(others))
        end = time.monotonic() + _PATIENCE_SECONDS
        while any(is_running(pid) for pid in others) and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        if others:
            told = f"process {min(others)} ran without a record that could be found; it was ended first"
            mine.facts |= {"instead_of": "", "why_rebuilt": told}

    @property
    def _owner_mark(self) -> str:
        unit = self.unit
        whose = json.dumps((str(self.keeper.home), *_named(unit)))
        return hashlib.sha256(whose.encode()).hexdigest()[:32]

    def command(self) -> Program:
        made = super().command()
        return replace(made, env={**made.env, OWNER: self._owner_mark}) if self.is_one_by_name else made

    @property
    def _identity(self) -> list[int]:
        return [self.unit.pid, self.unit.start]

    # ── which process a client knows ────────────────────────────────────────────────────────────

    def found(self, by: list[int]) -> dict[str, Any]:
        """The process that a client was last told of, if the service has another one now.

        A restart is told to each open of the attempt that finds it, and not to the next attempt.
        """
        unit, told = self.unit, self._told()
        if told["is"] != self._identity:
            told = {"to": by, "is": self._identity, "was": told["is"]}
        elif told["to"] != by:
            told = {"to": by, "is": self._identity, "was": None}
        if told != unit.facts.get("told"):
            unit.facts["told"] = told
            self.keeper.save(unit)
        return {"restarted_from": told["was"]}

    def _told(self) -> dict[str, Any]:
        # A record of a former perdure does not say; one that was never restarted is the one it was made as.
        made = [0, 0] if self.unit.facts.get("restarts") else self._identity
        told: dict[str, Any] = self.unit.facts.get("told") or {"to": [], "is": made, "was": None}
        return told

    def about(self) -> dict[str, Any]:
        known = self._told()["is"]
        return {**super().about(), "restarted_from": known if known != self._identity else None}

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        check_command(recipe)
        if recipe.get("restart", "never") not in ("never", "on-failure"):
            raise Refused("invalid", what=f"restart is {recipe['restart']!r}")
        port = recipe.get("port")
        if port is not None and not (isinstance(port, int) and 0 < port < 65536):
            raise Refused("invalid", what=f"port is {port!r}")

    @classmethod
    def rebuild(cls, keeper: Any, old: Any) -> dict[str, Any]:
        """The same command, folder and environment as at its start, whichever client asks."""
        # A leftover process of the old one would be a second one beside the new.
        processes.kill(iter(processes.with_cookie(old.uid)))
        return dict(old.recipe)

    def state(self, call: Call) -> Answer:
        unit, mine = self.unit, self._pids()
        return Answer(
            {
                "pid": unit.pid,
                "start": unit.start,
                "pids": mine,
                "ports": ports.ports_of(mine),
                "status": unit.ended,
                "end": self.size,
                "log_from": unit.facts.get("log_from", 0),
                "restarts": unit.facts.get("restarts", 0),
                "why": unit.facts.get("why", ""),
            }
        )

    def _pids(self) -> list[int]:
        """All its processes. Once its first one has ended, that pid may be a stranger's."""
        unit = self.unit
        if not unit.is_alive:
            return list(processes.with_cookie(unit.uid))
        return list(processes.of_unit(unit.pid, unit.uid, self.keeper.anchor_pid))

    def send_signal(self, call: Call) -> Answer:
        number = call.get("number", int, signal.SIGTERM)
        if number not in {int(one) for one in signal.valid_signals()}:
            raise Refused("invalid", what=f"signal {number}")
        self.keeper.signal(self.unit, number)
        return Answer()

    def note_ready(self, call: Call) -> Answer:
        """A client has found it ready."""
        self.unit.facts["ready_at"] = self.keeper.now()
        self.keeper.save(self.unit)
        return Answer()

    # ── starting it again ───────────────────────────────────────────────────────────────────────

    def exited(self) -> None:
        super().exited()
        unit = self.unit
        if not self._is_wanted or unit.recipe.get("restart") != "on-failure" or unit.ended == 0:
            return
        lived = (unit.ended_at or 0.0) - unit.facts.get("started_at", unit.made_at)
        count = 0 if lived >= _WELL_SECONDS else unit.facts.get("failures", 0)
        if count >= MOST_RESTARTS:
            unit.facts["why"] = f"it failed {count + 1} times in a row; its log says why"
        elif unit.recipe.get("secret_env"):
            # They are not stored: the next client that opens it sends them.
            unit.facts["why"] = "it failed, and cannot be started again without the secrets of its environment"
        else:
            unit.facts["failures"] = count + 1
            unit.facts["failed_with"] = unit.ended
            unit.facts["restart_due"] = True
            self._pause(min(_FIRST_PAUSE * 2**count, _LONGEST_PAUSE))
        self.keeper.save(unit)

    def _pause(self, seconds: float) -> None:
        self._restart = self.keeper.loop.call_later(seconds, self.expect)

    def revive(self) -> bool:
        if not self.unit.facts.get("restart_due"):
            return super().revive()
        try:
            self.recall()
        except Gone:
            self._attach(new=True)
        self._pause(0.0)
        return True

    def expect(self) -> None:
        unit = self.unit
        if not unit.facts.pop("restart_due", False) or unit.uid not in self.keeper.held:
            return
        self._restart.cancel()
        processes.kill(iter(self._pids()))
        unit.facts["restarts"] = unit.facts.get("restarts", 0) + 1
        unit.facts["started_at"] = self.keeper.now()
        unit.ended = unit.ended_at = None
        before = self.size
        try:
            self.begin()
            # What the former process wrote says nothing of this one. (A log that was removed begins anew.)
            unit.facts["log_from"] = before if self.size >= before else 0
            self.keeper.save(unit)
        except (CannotStart, OSError) as error:
            unit.ended, unit.ended_at = UNSEEN, self.keeper.now()
            unit.facts["why"] = f"it could not be started again: {error}"
            self.keeper.save(unit)

    def superseded(self) -> None:
        self._is_wanted = False
        if self.unit.facts.pop("restart_due", False):
            self._restart.cancel()
            self.keeper.save(self.unit)

    # ── ending it ───────────────────────────────────────────────────────────────────────────────

    def end(self, number: int = signal.SIGTERM) -> None:
        """All of it at once: children that it has forked twice would not hear of its end."""
        self._is_wanted = False
        processes.kill(iter(self._pids()), number)
        self.keeper.loop.call_later(GRACE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        processes.kill(iter(self._pids()))

    verbs: ClassVar[Mapping[str, Verb]] = {**Spooled.verbs, "state": state, "signal": send_signal, "ready": note_ready}
    writes: ClassVar[frozenset[str]] = frozenset({"signal"})


def _named(unit: Unit) -> tuple[str, ...]:
    return unit.owner.namespace, unit.owner.task, unit.kind, unit.name


KINDS = (Kind("service", Service),)
