"""A task's frames in the store: `task.frames`, and a plain way to read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from perdure._ground.clock import moment
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.ids import check_id
from perdure._model import Frame, Frames, Gone, check_frame
from perdure._store import Store
from perdure._tasks.task_row import find_row
from perdure._tasks.values.named_values import Shelf
from perdure.errors import NotFound

_KEY = "stack"


class TaskFrames:
    """The lines of thought a task was in when it was interrupted. Control verbs: they need no lease.

    Each is durable when it returns. Doing one again that was cut off is harmless, as frames have names.
    """

    def __init__(self, store: Store, task_id: str, uid: str) -> None:
        self._store = store
        self._shelf = Shelf(store, "frames", Frames, task=(task_id, uid))

    async def push(
        self,
        name: str,
        *,
        goal: str,
        done: Sequence[str] = (),
        next: Sequence[str] = (),
        because: str = "",
        expires: Duration | None = "1d",
    ) -> Frame:
        """Set a line of thought aside, with the steps done and the steps to come.

        Raises:
            Conflict: the stack is full; nothing was written.
            InvalidInput: the goal is missing, or the frame is too long.
        """
        check_id(name, "frame's name")
        check_frame(goal, done, next)
        limit = require_timedelta("expires", expires, is_positive=True)
        now = self._now()
        new = Frame(
            name=name,
            goal=goal,
            done=list(done),
            next=list(next),
            because=because,
            pushed_at=now,
            expires_at=None if limit is None else now + limit,
        )
        await self._update(lambda stack: stack.pushed(new, now))
        return new

    async def acknowledge(self, name: str) -> None:
        """The interruption is dealt with; the frame waits to be taken up again."""
        now = self._now()
        await self._update(lambda stack: stack.acknowledged(name, now))

    async def resume(self, name: str | None = None) -> Frame | None:
        """Take up a frame again: the named one, or the newest. None when nothing is set aside.

        `frame.announcement` says it: "back to X, step 4/6: …". It stays visible until it is finished, or something else
        is pushed or resumed, so the next attempt after a kill finds it too.
        """
        now = self._now()
        stack = await self._update(lambda stack: stack.resumed(name, now))
        return stack.frames[-1] if stack.frames else None

    async def finish(self, name: str) -> None:
        """Finish the line of thought that was resumed."""
        await self.drop(name, why="finished")

    async def drop(self, name: str, *, why: str) -> None:
        """Give a frame up, for a reason that is kept."""
        now = self._now()
        await self._update(lambda stack: stack.dropped(name, why, now))

    async def open(self) -> Sequence[Frame]:
        """All that is set aside or taken up again, the newest first; expired ones are left out."""
        return list(reversed((await self._read()).frames))

    async def gone(self) -> Sequence[Gone]:
        """The last few frames that will not be resumed, and why; newest first."""
        return list(reversed((await self._read()).gone))

    async def _read(self) -> Frames:
        kept = await self._shelf.get(_KEY)
        return kept.value.without_expired(self._now()) if kept else Frames()

    async def _update(self, change: Callable[[Frames], Frames]) -> Frames:
        return await self._shelf.update(_KEY, lambda stack: (change(stack or Frames()), None))

    def _now(self) -> datetime:
        return moment(self._store.clock.now_ms())


async def open_frames(store: Store, task_id: str) -> Sequence[Frame]:
    """A task's open frames, the newest first; empty when there are none.

    Each has `.name .goal .done .next` (lists of steps), `.because`, `.step` and `.steps` (the next step's number
    and how many there are), `.announcement` ("back to NAME, step 4/6: …"), `.pushed_at .expires_at`,
    `.acknowledged_at` (None: what interrupted it is not dealt with yet) and `.resumed_at` (not None: it was taken
    up again and is what the task is at).

    Raises:
        NotFound: there is no such task.
    """
    row = await find_row(store, check_id(task_id))
    if row is None:
        raise NotFound("task", task_id, store.place)
    return await TaskFrames(store, task_id, row.uid).open()
