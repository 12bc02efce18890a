"""A process that does as it is told: opens a task, takes its lease, writes, looks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from perdure import Perdure
from perdure._tasks import leases
from perdure.errors import PerdureError
from perdure.types import Task
from tests.support.processes import Child, Link, say
from tests.torture.checks import check_rows, dump
from tests.torture.kills import Home

ID = "the-task"


async def obey(link: Link, home: Home) -> None:
    """Take orders (name, arguments) until None; answer each with its result or its error."""
    app = home.open()
    hands = Hands(app, await app.tasks.open(ID, state={"n": 0}))
    say(link, "ready")
    while (order := link.recv()) is not None:
        name, *arguments = order
        try:
            say(link, await getattr(hands, name)(*arguments))
        except PerdureError as error:
            say(link, error)


def order(child: Child, name: str, *arguments: Any) -> Any:
    return child.ask((name, *arguments))


class Hands:
    def __init__(self, app: Perdure, task: Task) -> None:
        self._app, self._task = app, task
        self._attempt: AbstractAsyncContextManager[Task] = task.attempt()

    async def begin(self) -> None:
        self._attempt = self._task.attempt()
        await self._attempt.__aenter__()

    async def end(self) -> None:
        await self._attempt.__aexit__(None, None, None)

    async def checkpoint(self, n: int) -> None:
        await self._task.checkpoint({"n": n})

    async def bump(self) -> None:
        await self._task.checkpoint({"n": self._task.state["n"] + 1})

    async def mark_progress(self, done: int) -> None:
        await self._task.mark_progress("work", done=done)

    async def complete(self, result: int) -> None:
        await self._task.complete({"result": result})

    async def fail(self, code: int) -> None:
        await self._task.fail({"message": f"code {code}"})

    async def pause(self, n: int) -> None:
        await self._task.pause("stop", reason="checkpoint", checkpoint={"n": n})

    async def append_entry(self, position: int) -> None:
        """A journal entry nobody waits for; its refusal shows at the next call."""
        hold = leases.held(self._app._store, self._task.uid)
        assert hold is not None
        params = {"line": 1, "position": position, "entry": b"late"}
        write = self._app._store.verb("append_entry", self._task.uid, params, key=ID, fence=hold.fence)
        write.ordered = True
        self._app._store.committer.submit(write, urgent=False)
        self._app._store.committer.flush()
        hold.fence.check()

    async def seen(self) -> dict[str, Any]:
        """What this process sees of the store."""
        check_rows(self._app)
        return dump(self._app)

    async def beats(self, pid: int) -> int:
        rows = await self._app._store.query("read_workers")
        return sum(row[1] for row in rows if row[5] == pid)

    async def attempts(self) -> list[tuple[str, int, str]]:
        record = await self._task.record()
        return [(attempt.host, attempt.pid, attempt.ended) for attempt in record.attempts]
