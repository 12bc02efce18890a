"""The app: a store, and what is done with it. Wiring only.

What carries durable functions out is imported when it is first used: many programs only look at tasks.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from perdure._ground.config import find_address
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.ids import check_id
from perdure._ground.secrets.crypto import KeyRing
from perdure._store import Store, share
from perdure._tasks import Task, TaskHooks, Tasks, handlers_in, has_carried, has_checkpoints, release_all
from perdure.errors import NotFound

if TYPE_CHECKING:
    from perdure._durable import (
        DurableFunction,
        Effects,
        Events,
        FunctionInfo,
        Handle,
        HasUid,
        Journal,
        KillSwitch,
        ScheduleDraft,
        Schedules,
        Stopped,
        Triggers,
    )
    from perdure._model import Budget, DryRun, Event, Reason, Situation
    from perdure._runtime import Runtime, Units
    from perdure._tasks import Checkpoints, Holders, Inbox, KeptEntries, Once, Webhooks
    from perdure._worker import Hook, Queue, Workers
    from perdure.memory import Layer, Memory, StorageAdapter
    from perdure.memory.storage import Storage

P = ParamSpec("P")
R = TypeVar("R")


class Perdure:
    """perdure in this process.

    Without a url it uses PERDURE_URL, or the nearest .perdure/ upwards; the first write makes one here.
    With the address of a server (https://…) the store is behind it, and `key` is an API key of that server.
    """

    def __new__(cls, url: str | Path | None = None, *, key: str | None = None, namespace: str = "default") -> Perdure:
        given = url if url is not None else os.environ.get("PERDURE_URL")
        if cls is Perdure and isinstance(given, str) and given.startswith(("http://", "https://")):
            # Its room is above this one: a server's client is this app with another inside.
            remote: type[Perdure] = import_module("perdure.client").RemotePerdure
            return super().__new__(remote)
        return super().__new__(cls)

    def __init__(self, url: str | Path | None = None, *, key: str | None = None, namespace: str = "default") -> None:
        check_id(namespace, "namespace")
        self._store = Store(share(find_address(url)), KeyRing.load(key), namespace)
        self.tasks: Tasks = Tasks(self._store, _Hooks())
        self._effects: Effects | None = None
        self._queues: dict[str, Queue] = {}
        self._kill_switch: KillSwitch | None = None
        self._holders: Holders | None = None
        self._workers: Workers | None = None
        self._storage: Storage | None = None

    @property
    def holders(self) -> Holders:
        """Processes elsewhere that hold leases through this one: register, beat, hold, write by fence."""
        if self._holders is None:
            from perdure._tasks import Holders

            self._holders = Holders(self.tasks)
        return self._holders

    @property
    def workers(self) -> Workers:
        """The processes that use this store: list them, ask workers to drain."""
        if self._workers is None:
            from perdure._worker import Workers

            self._workers = Workers(self.tasks)
        return self._workers

    @property
    def units(self) -> Units:
        """The live things of all tasks: list them, read their output, type into their terminals."""
        from perdure._runtime import Units

        return Units(self.tasks)

    @property
    def inbox(self) -> Inbox:
        """Everything that waits for a person, whatever asked it: list it, decide it."""
        from perdure._tasks import Inbox

        return Inbox(self._store)

    @property
    def effects(self) -> Effects:
        """The effects with an unknown outcome, and settling them."""
        if self._effects is None:
            from perdure._durable import Effects

            self._effects = Effects(self.tasks)
        return self._effects

    @property
    def kill_switch(self) -> KillSwitch:
        """Stop a task, or all of them, from outside."""
        if self._kill_switch is None:
            from perdure._durable import KillSwitch

            self._kill_switch = KillSwitch(self.tasks)
        return self._kill_switch

    @property
    def storage(self) -> Storage:
        """Values by key, with versions and expiry, for sessions, caches and adapters; see `Storage`."""
        if self._storage is None:
            from perdure.memory.storage import Storage

            self._storage = Storage(self._store)
        return self._storage

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of tasks: listed without what they hold, looked into, compared."""
        from perdure._tasks import Checkpoints

        return Checkpoints(self._store)

    @property
    def journal(self) -> Journal:
        """What durable functions have done, call by call."""
        from perdure._durable import Journal

        return Journal(self.tasks)

    async def run(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry out a durable function in this process and give its result.

        An id that exists is attached to: finished, its result is given; unfinished, it is carried on.
        """
        try:
            result: R = await _run_here(self.tasks, id, fn, args, kwargs)
        except Exception as error:
            from perdure._ground.folded_traceback import fold  # imported late: only a failure needs it

            fold(error)
            raise
        return result

    async def run_until_paused(
        self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Stopped[R]:
        """Carry out a durable function in this process until it has ended or is paused, then return.

            stopped = await app.run_until_paused("release-7", release, "1.4")
            if stopped.is_paused:
                print(stopped.pause.message)       # an approval, an answer, a moment
            else:
                print(stopped.result)

        Called again, it continues if the task has what it waited for. What the function raises is raised. A task that
        depends on others which have not completed is neither: its status is `pending`.
        """
        from perdure._durable import run_until_paused

        try:
            return await run_until_paused(self.tasks, id, fn, args, kwargs)
        except Exception as error:
            from perdure._ground.folded_traceback import fold  # imported late: only a failure needs it

            fold(error)
            raise

    async def start(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Have a durable function carried out by some worker; an id that exists is attached to."""
        from perdure._durable import start_or_adopt

        handle: Handle[R] = await start_or_adopt(self.tasks, id, fn, args, kwargs)
        return handle

    async def start_by_name(
        self,
        id: str,
        function: str,
        version: int | None = None,
        arguments: Mapping[str, Any] = {},
        *,
        queue: str = "default",
        priority: int = 0,
        key: str = "",
        budget: Budget | None = None,
        timeout: Duration | None = None,
    ) -> Task:
        """Have a durable function carried out by some worker, without its code here; an id that exists is attached to.

        Arguments are plain data by name, read by the function's annotations. They are checked against what live workers
        announce that it takes. Without a version it is the newest one that a live worker knows.

        Raises:
            NotFound: no version was given, and no live worker knows the function; nothing was written.
            InvalidInput, NotStorable: the arguments do not fit; nothing was written.
            Conflict: the id belongs to another function, or to a call with other arguments.
        """
        from perdure._durable import start_by_name

        how: dict[str, Any] = {"queue": queue, "priority": priority, "key": key, "budget": budget, "timeout": timeout}
        return await start_by_name(self.tasks, id, function, version, arguments, **how)

    async def functions(self) -> Sequence[FunctionInfo]:
        """The durable functions that live workers know: versions, queues, what they take, and who knows them."""
        from perdure._durable import functions

        return await functions(self.tasks)

    async def situation(self, id: str) -> Situation:
        """Why a task is, or is not, running: one sentence, since when, until when, and what a person can do.

        Raises:
            NotFound: there is no such task.
        """
        from perdure._durable import situation_of

        return await situation_of(self.tasks, id)

    async def situations(self, items: Iterable[HasUid]) -> Mapping[str, Situation]:
        """The situations of a page of tasks, or of records, by uid, with as many queries as for one task."""
        from perdure._durable import situations_of

        return await situations_of(self.tasks, items)

    def schedule(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> ScheduleDraft:
        """A draft of a schedule for this call; `.cron(…)` or `.every(…)` says when, and keeps it.

            await app.schedule("digest", digest, "inbox").cron("0 9 * * 1-5", tz="Europe/Berlin")

        With the id of an existing schedule, it changes that schedule and keeps its position.
        """
        from perdure._durable import draft

        return draft(self.tasks, id, fn, args, kwargs)

    @property
    def schedules(self) -> Schedules:
        """What is started again and again: list, pause, resume, remove."""
        from perdure._durable import Schedules

        return Schedules(self.tasks)

    @property
    def triggers(self) -> Triggers:
        """What begins, or goes on, when an event is sent in, a file changes, or one is dropped in a folder."""
        from perdure._durable import Triggers

        return Triggers(self.tasks)

    @property
    def events(self) -> Events:
        """Where events from outside come in."""
        from perdure._durable import Events

        return Events(self.tasks)

    @property
    def webhooks(self) -> Webhooks:
        """Where events are sent to: make, change, rotate and remove webhooks, and see what was sent."""
        from perdure._tasks import Webhooks
        from perdure._worker import sender_of

        return Webhooks(self.tasks, lambda: sender_of(self._store))

    def on(
        self, event: str, *, reason: Reason | None = None, name: str = ""
    ) -> Callable[[Callable[[Event], Awaitable[None]]], None]:
        """Have a function told when something happens to a task, whichever process did it.

            @app.on("paused", reason="rate_limit")
            async def tell(event): ...

        The workers of this process do the telling: each event at least once, and of several workers one. How far a
        handler has come is kept under its name, so that nothing is missed while no worker runs. What happened before
        it was first known is not told.

        Raises:
            InvalidInput: no task ever tells such an event, or the name is in use.
        """

        from perdure._tasks import make_handler

        def take(function: Callable[[Event], Awaitable[None]]) -> None:
            handlers_in(self.tasks).add(make_handler(function, event, reason, name))

        return take

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        per_key: int = 1,
        rate: tuple[int, Duration] | None = None,
    ) -> None:
        """Limit a queue, over all workers of this store whose code says the same.

        concurrency   so many of its tasks are worked on at a time
        per_key       of those started with the same `options(key=…)`, so many at a time
        rate          (10, "1s"): at most ten attempts begin in any second
        """
        from perdure._worker import Queue

        self._queues[name] = Queue(concurrency=concurrency, per_key=per_key, rate=rate)

    async def handle(self, id: str, fn: DurableFunction[P, R], /) -> Handle[R]:
        """Take up a task that was started before, by this process or another: a slow tool's, say, to be polled."""
        from perdure._durable import handle_on

        handle: Handle[R] = await handle_on(self.tasks, id, fn)
        return handle

    def worker(
        self,
        *,
        concurrency: int = 100,
        queues: Sequence[str] = ("default",),
        grace: Duration | None = None,
        stalled_after: Duration | None = None,
        restart_stalled: bool = False,
        spawn: Hook | None = None,
    ) -> AbstractAsyncContextManager[None]:
        """Carry on tasks of the functions this process knows, until the block ends.

        grace            how long a drain lets tasks come to their next safe point; 10 s
        stalled_after    an attempt that gets no further for so long is flagged; 15 minutes
        restart_stalled  and its task given to another
        spawn            a command, or a function of a task's id, that brings up a new worker when one was lost
        """
        from perdure._worker import Settings, Worker

        chosen = {
            "grace": require_timedelta("grace", grace),
            "stalled_after": require_timedelta("stalled_after", stalled_after, is_positive=True),
        }
        settings = Settings(
            concurrency=concurrency,
            queues=queues,
            limits=self._queues,
            restart_stalled=restart_stalled,
            spawn=spawn,
            **{name: value for name, value in chosen.items() if value is not None},
        )
        return Worker(self.tasks, settings)

    async def runtime(self, task_id: str) -> Runtime:
        """The live things of a task: shells, services, files; made by name, and found by it again."""
        from perdure._runtime import runtime_of

        try:
            task = await self.tasks.handle(task_id)
        except NotFound as missing:
            do = f"open the task first: `await app.tasks.open({task_id!r})`; its runtime is kept with it"
            raise NotFound(missing.kind, missing.name, missing.store, do=do) from None
        return runtime_of(self._store, task.id, task.uid)

    def memory(
        self,
        task_id: str,
        layers: Sequence[Layer],
        *,
        storage: StorageAdapter | None = None,
        count: Callable[[str], int] | None = None,
        thread: str | None = None,
        resource: str | None = None,
    ) -> AbstractAsyncContextManager[Memory]:
        """The memory of a task's model: what it is told, and what it keeps. The layers are open as long as the block.

        `count` counts tokens; `storage` keeps the layers' values elsewhere than in this app's store; `thread`
        and `resource` name whose memory layers of that scope keep.
        """
        from perdure.memory import Memory, estimate

        given = count or estimate
        return Memory(self.tasks, task_id, layers, storage=storage, count=given, thread=thread, resource=resource)

    async def close(self) -> None:
        """Give back what this app holds and commit what is queued."""
        await release_all(self._store)
        await self._store.close()

    async def __aenter__(self) -> Perdure:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Hooks(TaskHooks):
    """Verbs of a task that are more for a durable function's; its room is imported when one is first used."""

    async def cancel(self, task: Task, undo: bool) -> bool:
        from perdure._durable import cancel

        return await cancel(task, undo)

    async def fork(
        self, task: Task, id: str, at: str | None, changes: Mapping[str, Any], once: Once | None
    ) -> Task | None:
        from perdure._durable import fork

        return await fork(task, id, at, changes, once)

    async def rehearse(self, task: Task, checkpoint: int | None, undo: bool) -> DryRun:
        from perdure._durable import rehearse_end

        return await rehearse_end(task, checkpoint, undo)

    async def keep_for_rollback(self, task: Task, checkpoint: int, undo: bool | None) -> KeptEntries | None:
        from perdure._durable import keep_for_rollback

        return await keep_for_rollback(task, checkpoint, undo)

    async def restore(self, task: Task, epoch: int) -> None:
        if has_checkpoints(task) and await has_carried(task, "save"):  # most tasks have saved nothing
            from perdure._runtime import come_back

            await come_back(task, epoch)


def _run_here(*call: Any) -> Awaitable[Any]:
    """`perdure._durable.run_here`, imported when it is first used."""
    global _run_here
    from perdure._durable import run_here as _run_here

    return _run_here(*call)
