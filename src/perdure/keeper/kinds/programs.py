"""Commands on a terminal or on pipes: what `perdure run` holds, with the recorder that writes down how it went, and the
commands that an agent starts by `rt.command`.

The command of `perdure run` may speak to the keeper: it has a token, so that an agent under it can have shells of its
own. The recorder is a program of perdure that can read and write the store, which the keeper cannot; it is started
again if it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from typing import Any, ClassVar

from perdure._ground.secrets.secret_forms import hide_in_command
from perdure.keeper.core import Answer, Call, Kind, Refused, Verb, untrusted
from perdure.keeper.kinds.services import Service
from perdure.keeper.kinds.spooled_program import MOST_PATIENCE, Spooled, check_command
from perdure.keeper.kinds.terminals import Terminal
from perdure.keeper.process import processes


class CommandUnit(Terminal):
    """A command on a terminal."""

    with_token = True

    @classmethod
    def rebuild(cls, keeper: Any, old: Any) -> dict[str, Any]:
        processes.kill(iter(processes.with_cookie(old.uid)))
        return dict(old.recipe)

    def end(self, number: int = signal.SIGTERM) -> None:
        processes.kill(processes.of_unit(self.unit.pid, self.unit.uid, self.keeper.anchor_pid), number)


class Piped(Spooled):
    """A command without a terminal: its output and its errors are separate, its input is its starter's."""

    with_token = True

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        check_command(recipe)

    @classmethod
    def rebuild(cls, keeper: Any, old: Any) -> dict[str, Any]:
        processes.kill(iter(processes.with_cookie(old.uid)))
        return dict(old.recipe)

    def input(self) -> int:
        return os.dup(self.given_fds[0]) if self.given_fds else super().input()

    def errors(self, output: int) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._errors = untrusted.open_file(self.keeper.units.folder(self.unit) / "errors", flags)
        return self._errors

    def recall(self) -> None:
        super().recall()
        self._errors = untrusted.open_file(self.keeper.units.folder(self.unit) / "errors")

    def read_errors(self, call: Call) -> Answer:
        start = max(0, call.get("start", int, 0))
        size = os.fstat(self._errors).st_size
        data = os.pread(self._errors, min(1 << 18, max(0, size - start)), start)
        return Answer({"start": start, "gap": 0, "end": size, "status": self.unit.ended}, data)

    def end(self, number: int = signal.SIGTERM) -> None:
        processes.kill(processes.of_unit(self.unit.pid, self.unit.uid, self.keeper.anchor_pid), number)

    def forget(self) -> None:
        super().forget()
        with contextlib.suppress(AttributeError, OSError):
            os.close(self._errors)

    verbs: ClassVar[Mapping[str, Verb]] = {**Spooled.verbs, "read_errors": read_errors}


class Pipes(Piped):
    """A command that an agent has started, with the input it was given. It is never started again."""

    with_token = False

    @classmethod
    def rebuild(cls, keeper: object, old: object) -> dict[str, Any]:
        raise Refused("no recipe", what="a command is run once")

    async def ended(self, call: Call) -> Answer:
        """Its exit status, as soon as it has one; without one after so many seconds."""
        seconds = min(float(call.values.get("seconds") or 0.0), MOST_PATIENCE)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait_until(lambda: False)
        return Answer({"status": self.unit.ended, "why": str(self.unit.facts.get("why", ""))})

    def send_signal(self, call: Call) -> Answer:
        """To each of its processes."""
        number = call.get("number", int, signal.SIGTERM)
        if number not in {int(one) for one in signal.valid_signals()}:
            raise Refused("invalid", what=f"signal {number}")
        if self.unit.is_alive:
            processes.kill(processes.of_unit(self.unit.pid, self.unit.uid, self.keeper.anchor_pid), number)
        return Answer()

    verbs: ClassVar[Mapping[str, Verb]] = {**Piped.verbs, "ended": ended, "signal": send_signal}
    writes: ClassVar[frozenset[str]] = frozenset({"signal"})


class Recorder(Service):
    with_token = True
    is_one_by_name = False


def _asked(recipe: dict[str, Any]) -> tuple[Any, ...]:
    return hide_in_command(recipe.get("argv") or ()), recipe.get("input", ""), bool(recipe.get("isolate"))


KINDS = (
    Kind("command", CommandUnit),
    Kind("piped", Piped),
    Kind("pipes", Pipes, _asked, runs_once=True),
    Kind("recorder", Recorder),
)
