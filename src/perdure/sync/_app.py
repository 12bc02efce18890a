"""The app for blocking code, and the handles it gives. Written by hand: what a call waits on differs here.

Tasks and their like wait in the calling thread (`drive`). A durable function needs an event loop (`on_a_loop`), and
what is used inside one waits on the function's own loop (`waited`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from perdure._app import Perdure as AsyncPerdure
from perdure._ground.bridge import Blocking, LoopThread, drive, on_a_loop
from perdure._ground.durations import Duration
from perdure.sync._faces import (
    Checkpoints,
    Effects,
    Events,
    Holders,
    Inbox,
    Journal,
    KillSwitch,
    ScheduleDraft,
    Schedules,
    Storage,
    Task,
    Tasks,
    Triggers,
    Units,
    Webhooks,
    Workers,
)

if TYPE_CHECKING:
    from perdure._durable import FunctionInfo, HasUid, Waits
    from perdure._durable import Handle as AsyncHandle
    from perdure._worker import Hook
    from perdure.automation import Event
    from perdure.memory import Block, Layer, Note, Outcome, StorageAdapter
    from perdure.memory import Memory as AsyncMemory
    from perdure.models import Budget
    from perdure.types import DurableFunction, Reason, Situation, Stopped

P = ParamSpec("P")
R = TypeVar("R")


class Perdure:
    """perdure in this process.

    Without a url it uses PERDURE_URL, or the nearest .perdure/ upwards; the first write makes one here.
    """

    def __init__(self, url: str | Path | None = None, *, key: str | None = None, namespace: str = "default") -> None:
        self._inner = AsyncPerdure(url, key=key, namespace=namespace)
        self.tasks: Tasks = Tasks(self._inner.tasks)
        self.effects: Effects = Effects(self._inner.effects)
        self.inbox: Inbox = Inbox(self._inner.inbox)
        self.kill_switch: KillSwitch = KillSwitch(self._inner.kill_switch)
        self.holders: Holders = Holders(self._inner.holders)
        self.checkpoints: Checkpoints = Checkpoints(self._inner.checkpoints)
        self.journal: Journal = Journal(self._inner.journal)
        self.schedules: Schedules = Schedules(self._inner.schedules)
        self.triggers: Triggers = Triggers(self._inner.triggers)
        self.events: Events = Events(self._inner.events)
        self._live: LoopThread | None = None

    @property
    def webhooks(self) -> Webhooks:
        """Where events are sent to: make, change, rotate and remove webhooks, and see what was sent."""
        return Webhooks(self._inner.webhooks)

    @property
    def workers(self) -> Workers:
        """The processes that use this store: list them, ask workers to drain."""
        return Workers(self._inner.workers)

    @property
    def storage(self) -> Storage:
        """Values by key, with versions and expiry, for sessions, caches and adapters; see `Storage`."""
        return Storage(self._inner.storage)

    @property
    def units(self) -> Units:
        """The live things of all tasks: list them, read their output, type into their terminals."""
        return Units(self._inner.units)

    def runtime(self, task_id: str) -> Any:
        """The live things of a task; it and what it gives have the methods of the async face, without await."""
        from perdure._runtime import awaited_types

        if self._live is None:
            self._live = LoopThread()
        return Blocking(self._live.run(self._inner.runtime(task_id)), self._live, awaited_types())

    @contextmanager
    def worker(
        self,
        *,
        concurrency: int = 100,
        queues: Sequence[str] = ("default",),
        grace: Duration | None = None,
        stalled_after: Duration | None = None,
        restart_stalled: bool = False,
        spawn: Hook | None = None,
    ) -> Iterator[None]:
        """Carry on tasks of the functions this process knows, until the block ends.

        grace            how long a drain lets tasks come to their next safe point; 10 s
        stalled_after    an attempt that gets no further for so long is flagged; 15 minutes
        restart_stalled  and its task given to another
        spawn            a command, or a function of a task's id, that brings up a new worker when one was lost
        """
        loop = LoopThread()
        try:
            with loop.entered(
                self._inner.worker(
                    concurrency=concurrency,
                    queues=queues,
                    grace=grace,
                    stalled_after=stalled_after,
                    restart_stalled=restart_stalled,
                    spawn=spawn,
                )
            ):
                yield
        finally:
            loop.close()

    def on(
        self, event: str, *, reason: Reason | None = None, name: str = ""
    ) -> Callable[[Callable[[Event], None]], None]:
        """Have a plain function told when something happens to a task, by the workers of this process."""
        from perdure._durable import as_async

        take = self._inner.on(event, reason=reason, name=name)
        return lambda function: take(as_async(function))

    def queue(
        self, name: str, *, concurrency: int | None = None, per_key: int = 1, rate: tuple[int, Duration] | None = None
    ) -> None:
        """Limit a queue, over all workers of this store whose code says the same.

        concurrency   so many of its tasks are worked on at a time
        per_key       of those started with the same `options(key=…)`, so many at a time
        rate          (10, "1s"): at most ten attempts begin in any second
        """
        self._inner.queue(name, concurrency=concurrency, per_key=per_key, rate=rate)

    def schedule(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> ScheduleDraft:
        """A draft of a schedule for this call; `.cron(…)` or `.every(…)` says when, and keeps it."""
        return ScheduleDraft(self._inner.schedule(id, fn, *args, **kwargs))

    def run(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry out a durable function in this process and give its result.

        An id that exists is attached to: finished, its result is given; unfinished, it is carried on.
        """
        return on_a_loop(self._inner.run(id, fn, *args, **kwargs))

    def run_until_paused(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Stopped[R]:
        """Carry out a durable function in this process until it has ended or is paused, then return.

            stopped = app.run_until_paused("release-7", release, "1.4")
            if stopped.is_paused:
                print(stopped.pause.message)       # an approval, an answer, a moment
            else:
                print(stopped.result)

        Called again, it goes on if what the task waits for is there. What the function raises is raised. A task that
        depends on others which have not completed is neither: its status is `pending`.
        """

        return on_a_loop(self._inner.run_until_paused(id, fn, *args, **kwargs))

    def start(self, id: str, fn: DurableFunction[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Have a durable function carried out by some worker; an id that exists is attached to."""
        from perdure._durable import waited

        return Handle(waited(self._inner.start(id, fn, *args, **kwargs)))

    def start_by_name(
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
        """
        how: dict[str, Any] = {"queue": queue, "priority": priority, "key": key, "budget": budget, "timeout": timeout}
        return Task(drive(self._inner.start_by_name(id, function, version, arguments, **how)))

    def functions(self) -> Sequence[FunctionInfo]:
        """The durable functions that live workers know: versions, queues, what they take, and who knows them."""
        return drive(self._inner.functions())

    def situation(self, id: str) -> Situation:
        """Why a task is, or is not, running: one sentence, since when, until when, and what a person can do.

        Raises:
            NotFound: there is no such task.
        """
        return drive(self._inner.situation(id))

    def situations(self, items: Iterable[HasUid]) -> Mapping[str, Situation]:
        """The situations of a page of tasks, or of records, by uid, with as many queries as for one task."""
        return drive(self._inner.situations(items))

    def handle(self, id: str, fn: DurableFunction[P, R], /) -> Handle[R]:
        """Take up a task that was started before, by this process or another: a slow tool's, say, to be polled."""
        from perdure._durable import waited

        return Handle(waited(self._inner.handle(id, fn)))

    @contextmanager
    def memory(
        self,
        task_id: str,
        layers: Sequence[Layer],
        *,
        storage: StorageAdapter | None = None,
        count: Callable[[str], int] | None = None,
        thread: str | None = None,
        resource: str | None = None,
    ) -> Iterator[Memory]:
        """What the model is told of a task, and keeping it: the layers in use, for as long as the block lasts.

        `count` counts tokens; `storage` keeps the layers' values elsewhere than in this app's store; `thread`
        and `resource` name whose memory layers of that scope keep.
        """
        from perdure._durable import Waits, inside_of

        with inside_of(
            self._inner.memory(task_id, layers, storage=storage, count=count, thread=thread, resource=resource)
        ) as inner:
            yield Memory(inner, Waits())

    def close(self) -> None:
        """Give back what this app holds and commit what is queued."""
        if self._live is not None:
            self._live.close()
            self._live = None
        drive(self._inner.close())

    def __enter__(self) -> Perdure:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Handle(Generic[R]):
    """A task that was started, wherever it runs."""

    def __init__(self, inner: AsyncHandle[R]) -> None:
        self._inner = inner
        self.id: str = inner.id

    def result(self, timeout: Duration | None = None) -> R:
        """What the task ends with; waits for it. Inside a durable function the result is recorded.

        Raises:
            TimedOut: it has not ended in time, and goes on.
            TaskFailed: it has failed with an exception that is not rebuilt, or was cancelled.
        """
        from perdure._durable import waited

        return waited(self._inner.result(timeout))

    def is_done(self) -> bool:
        """True if the task has ended, however it did. Inside a durable function the answer is recorded."""
        from perdure._durable import waited

        return waited(self._inner.is_done())

    def task(self) -> Task:
        return Task(drive(self._inner.task()))


class Memory:
    """The layers of one task, in use. Made by `app.memory`."""

    def __init__(self, inner: AsyncMemory, loop: Waits) -> None:
        self._inner, self._loop = inner, loop

    @property
    def notes(self) -> Sequence[Note]:
        return list(self._inner.notes)

    def layer(self, id: str) -> Any:
        """The layer with this id.

        Raises:
            InvalidInput: there is none.
        """
        return Blocking(self._inner.layer(id), self._loop)

    def tools(self) -> list[dict[str, Any]]:
        """The tools the layers offer a model: name, description, parameters as JSON schema."""
        return self._inner.tools()

    def prompt_blocks(self, *, budget: int) -> Sequence[Block]:
        """What the model is told: one block or more per layer, in the order of slots, within the budget."""
        return self._loop.run(self._inner.prompt_blocks(budget=budget))

    def after_turn(self, *, depth: int = 0) -> None:
        """A turn is over: every layer keeps what is new, side by side.

        Raises:
            LeaseLost: another attempt works on the task now; stop.
        """
        self._loop.run(self._inner.after_turn(depth=depth))

    def complete(self, outcome: Outcome) -> None:
        """The task has ended, as the agent sees it; its status is not touched."""
        self._loop.run(self._inner.complete(outcome))

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Do what the model asked for; kept when this returns.

        Raises:
            InvalidInput: it cannot be done; the message is fit for the model to read.
        """
        return self._loop.run(self._inner.call_tool(name, arguments))

    def spawn(self, child_task_id: str) -> Memory:
        """The memory of a child, beginning with a copy of this one; of one that has begun, as it stands."""
        return Memory(self._loop.run(self._inner.spawn(child_task_id)), self._loop)

    def returned(self, child: Memory) -> None:
        """A child has ended: each layer takes over what the child's layer of the same id has. Said twice, done once."""
        self._loop.run(self._inner.returned(child._inner))
