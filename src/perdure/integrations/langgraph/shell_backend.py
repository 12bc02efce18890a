"""`KeptShellBackend`: a deep agent's shell that outlives the agent, with its folder, variables and running command."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.protocol import ExecuteResponse, SandboxBackendProtocol

from perdure._ground.bridge import Nap, on_a_loop
from perdure.errors import PerdureError, ShellBusy, TimedOut
from perdure.integrations.langgraph.thread_keys import task_id_of
from perdure.integrations.langgraph.thread_lease import inner_app

if TYPE_CHECKING:
    from perdure import Perdure
    from perdure.runtime import CommandResult, Shell
    from perdure.sync import Perdure as BlockingPerdure

_PROMPT_SECONDS = 2.0  # a command that has done its work is still in the shell for a moment
_LOOK_SECONDS = 0.05


class KeptShellBackend(FilesystemBackend, SandboxBackendProtocol):
    """A backend for `create_deep_agent(backend=…)`: files of a folder, and one kept shell per thread.

    `cd`, `export` and functions last from one command to the next, and through the death of the agent. A command that
    takes longer than `timeout` (seconds, 120 by default) keeps running; the answer says so. Commands run with the
    rights of this user: the shell is kept, not isolated.
    """

    def __init__(
        self,
        app: Perdure | BlockingPerdure,
        thread_id: str,
        *,
        root_dir: str | Path | None = None,
        virtual_mode: bool = False,
        timeout: int = 120,
        most_output: int = 100_000,
        shell: str = "main",
        prefix: str = "lg",
    ) -> None:
        super().__init__(root_dir=root_dir, virtual_mode=virtual_mode)
        self._app = inner_app(app)
        self._task_id, self._shell = task_id_of(thread_id, prefix), shell
        self._thread_id, self._timeout, self._most = thread_id, timeout, most_output

    @property
    def id(self) -> str:
        return f"perdure:{self._task_id}:{self._shell}"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return on_a_loop(self.aexecute(command, timeout=timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command in the thread's shell, and give its output and exit code."""
        await self._app.tasks.open(self._task_id, state={"thread_id": self._thread_id})
        runtime, limit = await self._app.runtime(self._task_id), timeout or self._timeout
        try:
            shell = await runtime.shell(self._shell, cwd=str(self.cwd))
            result = await _run_at_prompt(shell, command, limit)
        except TimedOut:
            return ExecuteResponse("The command is still running in the shell; it was not stopped.", None)
        except PerdureError as error:
            return ExecuteResponse(f"The command was not run: {error}", None)
        output = result.output
        truncated = len(output) > self._most
        if truncated:  # the beginning says what was done, the end how it went
            head = self._most // 4
            left_out = len(output) - self._most
            output = f"{output[:head]}\n… {left_out} characters left out …\n{output[-(self._most - head) :]}"
        return ExecuteResponse(output, result.exit_code, truncated)


async def _run_at_prompt(shell: Shell, command: str, limit: int) -> CommandResult:
    """Run it once the shell is free; one that stays busy for two seconds raises ShellBusy."""
    end = time.monotonic() + min(_PROMPT_SECONDS, limit)
    while True:
        try:
            return await shell.run(command, timeout=timedelta(seconds=limit))
        except ShellBusy:
            if time.monotonic() >= end:
                raise
        await Nap(_LOOK_SECONDS)
