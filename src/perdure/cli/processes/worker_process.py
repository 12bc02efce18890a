"""The process of `perdure worker`: prints what it does, and drains when it is asked to stop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from perdure._ground.encoding import json_values as values
from perdure._ground.exception_text import name_and_message
from perdure._ground.secrets.known_secrets import redact
from perdure._ground.traceback_text import trace_of
from perdure._store import TaskRow
from perdure._tasks import store_of
from perdure.cli.base import Invocation
from perdure.cli.output import blocks

if TYPE_CHECKING:
    from perdure._app import Perdure
    from perdure._worker import ClaimedTask, Settings, Worker


async def work(call: Invocation, app: Perdure, settings: Settings) -> int:
    """Run tasks until a signal or `perdure drain` asks the worker to stop; returns the exit code.

    Raises:
        StoreUnavailable: the store cannot be reached at the start. Later the worker waits for the store to return.
    """
    from perdure._worker import Worker

    await store_of(app.tasks).query("read_workers")
    worker = Worker(app.tasks, settings)
    teller = Teller(call, app)
    worker.observe(teller.heard)
    signals = _leave_on_signals(worker)
    # All loaded modules stay, so the garbage collector need not scan them. With tasks of one step that takes a tenth of
    # the time.
    gc.collect()
    gc.freeze()
    async with worker, teller:
        teller.say_ready(settings)
        await worker.drained.wait()
    await app.close()
    teller.say({"event": "left"}, "stopped: other workers continue the tasks that were running")
    return 130 if signals and signals[0] == signal.SIGINT else 0


def _leave_on_signals(worker: Worker) -> list[int]:
    """The first signal drains the worker; the second stops it without waiting for safe points."""
    came: list[int] = []

    def leave(number: int) -> None:
        came.append(number)
        worker.ask_to_drain()
        if len(came) > 1:
            worker.drained.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leave, number)
    return came


class Teller:
    """Prints one line for each attempt that starts or ends."""

    def __init__(self, call: Invocation, app: Perdure) -> None:
        self._call, self._app = call, app
        self._heard: asyncio.Queue[tuple[str, ClaimedTask, BaseException | None] | None] = asyncio.Queue()
        self._telling: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._telling = asyncio.create_task(self._tell())

    async def __aexit__(self, *_: object) -> None:
        self._heard.put_nowait(None)
        if self._telling is not None:
            await self._telling

    def heard(self, what: str, claimed: ClaimedTask, error: BaseException | None) -> None:
        self._heard.put_nowait((what, claimed, error))

    async def _tell(self) -> None:
        while (heard := await self._heard.get()) is not None:
            what, claimed, error = heard
            turn = claimed.turn
            if what == "started":
                line = f"{turn.id} started (attempt {turn.epoch + 1})"
                self.say({"event": what, "task": turn.id, "attempt": turn.epoch + 1}, line)
            else:
                status = await self._status(claimed)
                why = redact(name_and_message(error)) if error is not None else ""
                trace = trace_of(error) if error is not None else ""
                told = {"event": status, "task": turn.id, "error": why or None}
                line = "\n".join(filter(None, (f"{turn.id} {status}" + (f": {why}" if why else ""), trace)))
                self.say({**told, "traceback": trace} if trace else told, line)

    async def _status(self, claimed: ClaimedTask) -> str:
        from perdure.errors import PerdureError

        if claimed.task is not None and claimed.task.is_finished:
            return claimed.task.status
        try:
            row = await store_of(self._app.tasks).row(TaskRow, "get_task_by_uid", uid=claimed.turn.uid)
        except PerdureError:
            return "given back"
        status = row.status if row is not None else "gone"
        return "given back" if status == "running" else status

    def say_ready(self, settings: Settings) -> None:
        from perdure._durable import known_versions

        names = [f"{name} v{version}" if version > 1 else name for name, version, _ in known_versions()]
        queues, place = ", ".join(settings.queues), store_of(self._app.tasks).place
        line = f"worker {os.getpid()} on {place}, queues: {queues}; knows {', '.join(names) or 'no durable function'}"
        self.say({"event": "working", "pid": os.getpid(), "queues": list(settings.queues), "knows": names}, line)

    def say(self, value: dict[str, Any], line: str) -> None:
        if sys.stdout is None:
            return
        text = values.as_json(value, ascii=True) if self._call.json else blocks.safe_lines(line)
        print(text, flush=True)
