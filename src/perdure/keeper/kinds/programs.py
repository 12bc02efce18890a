"""What `perdure run` holds: a command on a terminal or on pipes, and the recorder that writes down how it went.

The command may speak to the keeper: it has a token, so that an agent under `perdure run` can have shells of its
own. The recorder is a program of perdure that can read and write the store, which the keeper cannot; it is started
again if it dies.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from typing import Any, ClassVar

from perdure.keeper.core import Answer, Call, Kind, Verb, untrusted
from perdure.keeper.kinds.services import Service
from perdure.keeper.kinds.spooled_program import Spooled, check_command
from perdure.keeper.kinds.terminals import Terminal
from perdure.keeper.process import processes


class Command(Terminal):
    """A command on a terminal."""

    with_token = True

    @classmethod
    def rebuild(cls, keeper: Any, old: Any) -> dict[str, Any]:
        processes.kill(iter(processes.with_cookie(old.uid)))
        return dict(old.recipe)

    def end(self, number: int = signal.SIGTERM) -> None:
        processes.kill(processes.of_unit(self.unit.pid, self.unit.uid, self.keeper.anchor_pid), number)


class Piped(Spooled):
    """A command without a terminal: its output and its errors apart, its input that of whoever started it."""

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


class Recorder(Service):
    with_token = True
    is_one_by_name = False


KINDS = (Kind("command", Command), Kind("piped", Piped), Kind("recorder", Recorder))
