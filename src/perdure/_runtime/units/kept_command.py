"""Commands with pipes that outlive the agent: output and errors apart, input given at the start, a result by key."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from perdure._durable import step
from perdure._ground.durations import Duration, require_timedelta
from perdure._runtime.units.shell import exit_code
from perdure._runtime.units.unit import Unit
from perdure.errors import TimedOut, UnitEnded

# One wait at the keeper; a longer one is several.
_WAIT_SECONDS = 5.0
MOST_BYTES = 1 << 20
_LONGEST_KEY = 100


@dataclass(frozen=True)
class CommandEnd:
    """The exit of a command and its output; of a long output the last part."""

    exit_code: int  # minus the signal that ended it
    stdout: bytes
    stderr: bytes
    stdout_gap: int = 0  # bytes before `stdout` that are left out
    stderr_gap: int = 0


def _of_command(command: KeptCommand, *args: Any, **named: Any) -> Any:
    return [command.name, list(args), named]


class KeptCommand(Unit):
    """A command that runs once per key, in this process's life or beyond it."""

    def _check(self) -> None:
        """A command that has ended can still be read."""
        if not self.uid:
            raise UnitEnded(self.name, str(self.record.facts["why"]))

    @property
    def pid(self) -> int:
        return self.record.pid

    @step(name="command.result", identity=_of_command)
    async def result(self, *, timeout: Duration | None = None, most: int = MOST_BYTES) -> CommandEnd:
        """Its exit code and output, once it has ended; at most `most` bytes of each stream, the last ones.

        Raises:
            TimedOut: it has not ended in time, and runs on.
            UnitEnded: the machine or its anchor ended, so its exit code is not known.
        """
        limit = require_timedelta("timeout", timeout)
        end = None if limit is None else time.monotonic() + limit.total_seconds()
        while (status := await self._ended(end)) is None:
            if end is not None and time.monotonic() >= end:
                raise TimedOut(
                    f"the command {self.name!r} has not ended within {limit}",
                    kept="it runs on, and its output is kept",
                    do="ask again with the same key, or end it with kill()",
                )
        if status < 0:
            raise UnitEnded(self.name, str(self.record.facts.get("why") or "nobody saw how it ended"))
        stdout, out_gap = await self._tail("read", most)
        stderr, err_gap = await self._tail("read_errors", most)
        return CommandEnd(exit_code(status), stdout, stderr, out_gap, err_gap)

    async def _ended(self, end: float | None) -> int | None:
        rest = _WAIT_SECONDS if end is None else max(0.0, min(_WAIT_SECONDS, end - time.monotonic()))
        status: int | None = (await self.ask("ended", seconds=rest)).args["status"]
        return status

    async def _tail(self, verb: str, most: int) -> tuple[bytes, int]:
        size = int((await self.ask(verb, start=1 << 62)).args["end"])
        first, parts = max(0, size - most), []
        at = first
        while at < size:
            reply = await self.ask(verb, start=at)
            if not reply.body:
                break
            first += int(reply.args["gap"])
            parts.append(reply.body)
            at = int(reply.args["start"]) + len(reply.body)
        return b"".join(parts), first

    @step(name="command.stdout", identity=_of_command)
    async def stdout(self, from_offset: int = 0) -> bytes:
        """Its output from an offset on, as far as there is some now; at most 256 kB."""
        return (await self.ask("read", start=from_offset)).body

    @step(name="command.stderr", identity=_of_command)
    async def stderr(self, from_offset: int = 0) -> bytes:
        """Its errors from an offset on, as far as there are some now; at most 256 kB."""
        return (await self.ask("read_errors", start=from_offset)).body

    async def signal(self, number: int) -> None:
        """Send a signal to each of its processes."""
        await self.write("signal", number=number)

    async def kill(self) -> None:
        """End it and every process it has started, at once. It has ended when this returns."""
        await self.write("signal", number=int(signal.SIGKILL))
        await self.end()


def command_name(key: str) -> str:
    """The name of the unit for a key; a long key by its digest."""
    return f"command:{key if len(key) <= _LONGEST_KEY else f'{key[:60]}~{sha256(key.encode()).hexdigest()[:32]}'}"


@contextmanager
def input_file(data: bytes) -> Iterator[int]:
    """A descriptor to read this from, to its end."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        file.seek(0)
        yield file.fileno()
