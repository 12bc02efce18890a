"""Call the user's spawn hook, a command or a function, when a task has lost its worker: once per task.

The command gets the task's id as its last argument and as PERDURE_TASK_ID; no shell is involved. The worker that
noticed the loss calls the hook. If that worker dies at the same moment, the hook is not called and the task waits
for any worker.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Sequence

log = logging.getLogger("perdure.worker")

Hook = Sequence[str] | Callable[[str], Awaitable[None] | None]


class SpawnHook:
    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._running: set[asyncio.Task[None]] = set()

    async def call(self, task_id: str) -> None:
        """Call the hook in the background. An error in it is logged and has no other effect."""
        call = asyncio.create_task(self._call(task_id))
        self._running.add(call)
        call.add_done_callback(self._running.discard)

    async def _call(self, task_id: str) -> None:
        try:
            if callable(self._hook):
                made = self._hook(task_id)
                if inspect.isawaitable(made):
                    await made
            else:
                await _run([*self._hook, task_id], task_id)
        except Exception as error:
            log.warning("the spawn hook failed for task %s: %s: %s", task_id, type(error).__name__, error)


async def _run(argv: Sequence[str], task_id: str) -> None:
    environ = {**os.environ, "PERDURE_TASK_ID": task_id}
    process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, env=environ)
    code = await process.wait()
    if code:
        log.warning("the spawn command ended with %d for task %s", code, task_id)
