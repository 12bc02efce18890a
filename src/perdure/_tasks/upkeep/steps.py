"""Report the progress of long upkeep, and stop it between two tasks.

gc, doctor, audit, rotation and export run for minutes on a large store. Each takes `tell`, a function called after
every task or page of records. If it returns False, the work stops there: everything done stays done, the store is
whole, and a later run does the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class UpkeepStep(Struct, frozen=True):
    """One step of the work."""

    part: str  # "checkpoints", "chains", …
    done: int  # tasks or records of this part so far
    task: str = ""  # the id of the task that was looked at last, where it is one


Tell = Callable[[UpkeepStep], object]


class StopUpkeep(Exception):
    """`tell` returned False. The work itself catches this."""


class Steps:
    """Counts the steps of each part and tells about them."""

    def __init__(self, tell: Tell | None) -> None:
        self.tell = tell
        self._done: dict[str, int] = {}

    def take(self, part: str, task: str = "", count: int = 1) -> None:
        """One step, or `count` at once.

        Raises:
            StopUpkeep: the work is to stop here.
        """
        if self.tell is None:
            return
        done = self._done[part] = self._done.get(part, 0) + count
        if self.tell(UpkeepStep(part, done, task)) is False:
            raise StopUpkeep


NO_STEPS = Steps(None)
