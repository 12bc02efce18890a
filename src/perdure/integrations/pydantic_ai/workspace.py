"""`PerdureWorkspace`: a folder of this machine whose commands are kept: they outlive the agent and run once."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from pydantic_ai.workspaces import (
    CommandResult,
    LocalWorkspaceBackend,
    WorkspaceCommand,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from perdure import idempotency_key
from perdure.errors import NoTask, PerdureError, TimedOut, UnitEnded
from perdure.runtime import KeptCommand

if TYPE_CHECKING:
    from perdure import Perdure

_MOST_OUTPUT = 64 * 1024 * 1024
# The shell says 127 for a program that is not there and 126 for one that may not be run, as a person's shell does.
_EXEC = ["sh", "-c", 'exec "$@"', "sh"]


class PerdureWorkspace(LocalWorkspaceBackend):
    """Commands of an agent with `PerdureDurability`, run by perdure's keeper in a folder.

    Inside a durable function a command that was running when the agent died is waited for, not started again. Files are
    those of the folder. Nothing is isolated.
    """

    def __init__(
        self,
        app: Perdure,
        working_dir: str | Path,
        *,
        task_id: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`task_id` is the task that the commands belong to; `ref.id` is it, for another process to attach by."""
        super().__init__(working_dir, env=env)
        self._app = app
        self._task_id = task_id or f"workspace-{secrets.token_hex(6)}"
        self._is_known = task_id is not None  # a workspace without a name has no ref before its first use

    @property
    def ref(self) -> WorkspaceRef | None:  # type: ignore[override]
        return WorkspaceRef(provider="perdure", id=self._task_id) if self._is_known else None

    async def working_dir(self) -> str:
        folder = await super().working_dir()
        self._is_known = True
        return folder

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        if isinstance(command, str) != shell:
            raise TypeError("a command is a text with shell=True, or a sequence of arguments without it")
        if timeout is not None and not 0 < timeout < float("inf"):
            raise ValueError(f"timeout is {timeout!r}; give seconds above 0")
        folder = await self.working_dir()
        argv = ["sh", "-c", command] if isinstance(command, str) else [*_EXEC, *command]
        running = await self._start(argv, folder, {**self._env, **(env or {})})
        try:
            limit = None if timeout is None else timedelta(seconds=timeout)
            end = await running.result(timeout=limit, most=_MOST_OUTPUT)
        except TimedOut:
            stdout, stderr = await running.stdout(), await running.stderr()
            await running.kill()
            raise WorkspaceTimeoutError(
                f"the command did not end within {timeout:g} s and was killed",
                stdout=_text(stdout),
                stderr=_text(stderr),
            ) from None
        except UnitEnded as ended:
            raise WorkspaceUnavailableError(str(ended)) from ended
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await running.kill()
            raise
        if end.stdout_gap or end.stderr_gap:
            told = {"stdout": _text(end.stdout), "stderr": _text(end.stderr)}
            raise WorkspaceOutputLimitError("the command put out too much", limit=_MOST_OUTPUT, **told)
        await self.working_dir()  # a command may end after its folder was removed
        return CommandResult(exit_code=end.exit_code, stdout=_text(end.stdout), stderr=_text(end.stderr))

    async def _start(self, argv: list[str], folder: str, env: Mapping[str, str]) -> KeptCommand:
        try:
            await self._app.tasks.open(self._task_id, state={"working_dir": folder})
            runtime = await self._app.runtime(self._task_id)
            return await runtime.command(argv, key=_key(), cwd=folder, env=env)
        except PerdureError as error:
            raise WorkspaceUnavailableError(str(error)) from error


def _key() -> str:
    """The key of the effect that runs the command; without one each command is a new one."""
    try:
        return idempotency_key()
    except NoTask:
        return secrets.token_hex(8)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
