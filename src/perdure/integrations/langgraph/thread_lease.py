"""The lease of a thread: one process at a time works on it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING

from perdure._ground.bridge import drive

if TYPE_CHECKING:
    from perdure import Perdure
    from perdure.sync import Perdure as BlockingPerdure
    from perdure.types import Task


def inner_app(app: Perdure | BlockingPerdure) -> Perdure:
    """The async app, of either face."""
    inner: Perdure = app._inner if hasattr(app, "_inner") else app
    return inner


class ThreadLease:
    """`async with saver.thread(…)`, and `with` in blocking code: the thread's task, held until the block ends."""

    def __init__(self, app: Perdure, task_id: str, thread_id: str, take_over: bool) -> None:
        self._app, self._task_id, self._thread_id, self._take_over = app, task_id, thread_id, take_over
        self._attempt: AbstractAsyncContextManager[Task] | None = None

    async def __aenter__(self) -> Task:
        task = await self._app.tasks.open(self._task_id, state={"thread_id": self._thread_id})
        if task.is_finished:
            task = await self._app.tasks.open(self._task_id, state={"thread_id": self._thread_id}, again=True)
        self._attempt = task.attempt(take_over=self._take_over)
        return await self._attempt.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        attempt, self._attempt = self._attempt, None
        return None if attempt is None else await attempt.__aexit__(kind, error, trace)

    def __enter__(self) -> Task:
        return drive(self.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return drive(self.__aexit__(kind, error, trace))
