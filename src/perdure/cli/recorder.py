"""The program that records how a command under `perdure run` ended: python -m perdure.cli.recorder.

The keeper holds it beside the command. Ten times a second it reads the task and the command. It stops the command of a
paused task (SIGSTOP), continues it on resume and ends it on cancel. When the command has ended, it completes or fails
the task or, depending on `--restart`, starts the command again as a new attempt.
"""

from __future__ import annotations

import signal
import sys
from contextlib import AsyncExitStack, suppress

from perdure._app import Perdure
from perdure._ground.bridge import Nap, drive
from perdure._runtime import Record, Runtime
from perdure._runtime import command_runs as running
from perdure._tasks import Task
from perdure.errors import Conflict, NotFound, PerdureError

_LOOK_SECONDS = 0.1
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
# `perdure run` starts the recorder, then the command. If it died in between, the command never starts.
_PATIENCE_LOOKS = 600


class Recorder:
    def __init__(self, app: Perdure, task: Task, rt: Runtime, policy: running.Policy) -> None:
        self._app, self._task, self._rt, self._policy = app, task, rt, policy
        self._lease = AsyncExitStack()
        self._is_stopped = False
        self._restarts = 0

    async def record(self) -> None:
        """Run until the task has ended."""
        await self._hold()
        me = await running.found(self._rt, running.RECORDER)
        assert me is not None
        await self._rt._client.do(me.uid, "ready")
        command = await self._awaited(me)
        if command is None:
            await self._end("fail", {"message": "the command was never started", "kind": "interrupted", "signal": 0})
            return
        while True:
            command = await self._until_end(command)
            if command is None:
                return
            what, value = running.outcome(command.ended or 0, self._policy)
            if what != "again":
                await self._end(what, value)
                return
            command = await self._again(command, me)

    async def _hold(self) -> None:
        """Take the lease, unless another process has it or the task is paused."""
        await self._lease.aclose()
        self._lease = AsyncExitStack()
        with suppress(Conflict):
            await self._lease.enter_async_context(self._task.attempt())

    async def _awaited(self, me: Record) -> Record | None:
        """The command of this attempt: the one that was started after this recorder."""
        for _ in range(_PATIENCE_LOOKS):
            command = await running.found(self._rt, running.COMMAND)
            if command is not None and command.uid > me.uid:
                return command
            await Nap(_LOOK_SECONDS)
        return None

    async def _until_end(self, command: Record) -> Record | None:
        """Wait until the command has ended; None if the task was ended first."""
        while command.is_alive:
            try:
                status = (await self._task.record()).status
            except NotFound:
                status = "cancelled"
            if status in ("cancelled", "failed"):
                await self._rt._client.ask("end", unit=command.uid)
                return None
            await self._follow(status, command)
            await Nap(_LOOK_SECONDS)
            command = await running.found(self._rt, running.COMMAND) or command
        return command

    async def _follow(self, status: str, command: Record) -> None:
        if (status == "paused") is not self._is_stopped:
            self._is_stopped = status == "paused"
            number = signal.SIGSTOP if self._is_stopped else signal.SIGCONT
            await self._rt._client.ask("signal", unit=command.uid, number=int(number))
            if not self._is_stopped:
                await self._hold()

    async def _again(self, command: Record, me: Record) -> Record:
        """Start a new attempt; each one waits longer than the one before."""
        pause = min(_FIRST_PAUSE * 2**self._restarts, _LONGEST_PAUSE)
        self._restarts += 1
        await self._hold()
        await Nap(pause)
        return await running.rebuilt(self._rt, command, me)

    async def _end(self, what: str, value: object) -> None:
        """Record the outcome, unless the command has ended its task itself."""
        while not (await self._task.record()).is_finished:
            try:
                await (self._task.complete(value) if what == "complete" else self._task.fail(value))
            except Conflict:  # a child of the command still has the lease, or a person has just paused the task
                await Nap(_LOOK_SECONDS * 5)
        await self._lease.aclose()


async def main(namespace: str, id: str, policy: running.Policy) -> None:
    async with Perdure(namespace=namespace) as app:
        task = await app.tasks.handle(id)
        await Recorder(app, task, await app.runtime(id), policy).record()


if __name__ == "__main__":
    try:
        drive(main(sys.argv[1], sys.argv[2], sys.argv[3]))  # type: ignore[arg-type]
    except PerdureError as error:
        sys.exit(str(error))
