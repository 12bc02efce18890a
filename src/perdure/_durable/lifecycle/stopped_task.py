"""What `app.run_until_paused` returns: a task that has completed, or waits without a process."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

from perdure._model import Pause, Status
from perdure.errors import Conflict

R = TypeVar("R")


class Stopped(Struct, Generic[R], frozen=True, kw_only=True):
    """A task that has completed, is paused, or is pending because it depends on other tasks."""

    id: str
    status: Status
    pause: Pause | None = None  # why it is paused: reason, message, since, due_at
    waits_for: str = ""  # one line: what ends the wait; empty when completed
    value: Any = None

    @property
    def is_paused(self) -> bool:
        return self.status == "paused"

    @property
    def is_finished(self) -> bool:
        return self.status == "completed"

    @property
    def result(self) -> R:
        """What the function returned.

        Raises:
            Conflict: it has not returned yet.
        """
        if not self.is_finished:
            raise Conflict(
                f"task {self.id!r} is {self.status} and has no result yet: {self.waits_for}",
                kept="the task as it is",
                do="check `stopped.is_paused` first; call run_until_paused again once it can continue",
            )
        value: R = self.value
        return value
