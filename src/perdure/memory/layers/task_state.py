"""The layer of a task's durable state: the work done, the files made, the facts known.

Kept in the app's store under the task's id, so that a restarted process finds it, and, with `base_dir`, as a copy on
disk in case the store is lost. Changes are events (task_state_events.py): if another process has written meanwhile,
ours are applied to its state, so neither loses anything.

Owns loading, keeping and committing. task_state_events.py applies events, recall.py shows the state to a model.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from perdure._ground.encoding import codec
from perdure._ground.ids import new_uid, this_process
from perdure._ground.secrets import envelope
from perdure._store import TaskRow
from perdure._tasks import Tasks, find_row, store_of
from perdure.errors import Conflict, InvalidInput, RecordDamaged
from perdure.memory.artifacts import git_commits as gitlog
from perdure.memory.artifacts import task_files as artifacts
from perdure.memory.layer import Block, Budget, LayerContext, Scope, Slot, Timeouts, Turn
from perdure.memory.prompt import Tool, in_thread, recall, takes
from perdure.memory.recorded import recorded
from perdure.memory.schema import Schema
from perdure.memory.storage import replace_file
from perdure.memory.task_state_events import (
    EMPTY,
    MOST_TOKENS,
    Checkpointed,
    Committed,
    DataSet,
    Doc,
    Ended,
    Event,
    Merge,
    Place,
    Recorded,
    Returned,
    digest,
    fold,
    from_stored,
    iso,
    plain_values,
    reduce,
    spawned,
    to_stored,
)

T = TypeVar("T")
_NAME = "state"
_FOLDER = ".perdure-memory"
_MOST_NAME = 50  # characters; each can be several bytes, and a file name has 255
# How often to try while other processes write at the same moment. Each try applies our events to their state.
_TRIES = 100


class DurableTaskState:
    """A layer: checkpoints, files and data of a task, through crashes and restarts.

    `base_dir` is the folder of its artifacts, and of a copy of the state. `git_commit` commits recorded
    artifacts after each turn. `schema` validates `data`. `serializer` (serialize, deserialize; blocking or async)
    decides what is stored. `merge` says how a child's data is taken over.
    """

    id = "task_state"
    scope: Scope = "execution"

    def __init__(
        self,
        *,
        base_dir: str | Path | None = None,
        git_commit: bool = False,
        schema: type | None = None,
        serializer: Any = None,
        merge: Merge = "shallow",
    ) -> None:
        if merge not in ("shallow", "namespace"):
            raise InvalidInput(f"merge={merge!r} is not a way to merge", do='"shallow" or "namespace"')
        if git_commit and base_dir is None:
            raise InvalidInput("git_commit needs a base_dir", do="say which folder the artifacts are in")
        for verb in ("serialize", "deserialize") if serializer is not None else ():
            if not callable(getattr(serializer, verb, None)):
                raise InvalidInput(f"the serializer has no {verb}()")
        self.slot: int = Slot.WORKING_MEMORY + 10
        self.budget: Budget = Budget(100, 800)
        self.timeouts: Timeouts = Timeouts(store=timedelta(seconds=30))
        self.base_dir: Path | None = Path(base_dir).absolute() if base_dir is not None else None
        self.git_commit: bool = git_commit
        self.schema: type | None = schema
        self.serializer: Any = serializer
        self.merge: Merge = merge
        self._schema = Schema(schema) if schema is not None else None
        self._context: LayerContext | None = None
        self._seed = EMPTY  # the first state of a child
        self._kept, self._version = EMPTY, 0  # as stored
        self._new: list[Event] = []  # events not stored yet
        self._doc = EMPTY  # both together
        self._flying: tuple[str, int] = (
            "",
            0,
        )  # a write with an unknown outcome: its token, and how many events it had
        self._turn = asyncio.Lock()

    @property
    def state(self) -> dict[str, Any]:
        """A copy of the state: checkpoints, files, data."""
        return self._doc.state

    # ── hooks ───────────────────────────────────────────────────────────────────────────────────

    async def init(self, context: LayerContext) -> None:
        self._context = context
        await self._load()
        if self._version == 0 and self._kept.given is not None:
            await self._keep()  # from now on the child owns the data it was given

    async def recall(self, budget: int) -> Block | None:
        assert self._context is not None
        doc = self._doc
        state = {"checkpoints": doc.checkpoints, "files": doc.files, "data": doc.data}
        text = recall.render(state, budget, self._context.count)
        return None if text is None else Block("developer", text)

    async def store(self, turn: Turn) -> None:
        await self._take(Checkpointed(iso(turn.timestamp), turn.depth))
        if self.git_commit:
            await self._commit()

    async def on_spawn(self, child_task_id: str) -> DurableTaskState:
        child = DurableTaskState(
            base_dir=self.base_dir,
            git_commit=self.git_commit,
            schema=self.schema,
            serializer=self.serializer,
            merge=self.merge,
        )
        child._seed = spawned(self._doc)
        return child

    async def on_return(self, child: DurableTaskState) -> None:
        assert child._context is not None
        event = Returned(child._context.task_id, child._doc, self.merge)
        self._check(reduce(self._doc, event))
        await self._take(event)

    async def on_complete(self, outcome: str) -> None:
        assert self._context is not None
        await self._take(Ended(outcome), Checkpointed(iso(self._context.now()), 0))
        if self.git_commit:
            await self._commit()

    # ── what a model or its agent changes ───────────────────────────────────────────────────────

    @recorded()
    async def set_data(self, values: Mapping[str, Any], *, remove: Sequence[str] = ()) -> None:
        """Set some values of `data` and remove others; stored when this returns.

        Raises:
            InvalidData: they do not fit the schema; the state was not changed.
            InvalidInput: a key is reserved, or JSON cannot represent a value; the state was not changed.
        """
        event = DataSet(plain_values(values), tuple(plain_values(dict.fromkeys(remove))))
        self._check(reduce(self._doc, event))
        await self._take(event)

    @recorded(artifacts.Artifact)
    async def record_artifact(self, path: str | Path) -> artifacts.Artifact:
        """Record a file of `base_dir` as the task's own, with its hash; stored when this returns.

        Raises:
            PathRefused: it is not inside base_dir, or not a plain file; nothing was recorded.
        """
        base = self._base()
        found = await self._once(
            "examine", lambda: in_thread(lambda: artifacts.examine(base, path)), artifacts.Artifact
        )
        await self._take(self._found(base, found))
        return found

    @recorded(artifacts.Artifact)
    async def write_artifact(self, path: str | Path, data: bytes | str) -> artifacts.Artifact:
        """Write a whole file in `base_dir`, and record it.

        Raises:
            PathRefused: it would not lie inside base_dir; nothing was written.
        """
        base, body = self._base(), data.encode() if isinstance(data, str) else data
        found = await self._once(
            "write file", lambda: in_thread(lambda: artifacts.write(base, path, body)), artifacts.Artifact
        )
        await self._take(self._found(base, found))
        return found

    def _found(self, base: Path, file: artifacts.Artifact) -> Recorded:
        assert self._context is not None
        return Recorded(
            file.path, file.sha256, Place(str(base), this_process().host, iso(self._context.now()), file.size)
        )

    @recorded(bool | None)
    async def head_moved(self) -> bool | None:
        """True when HEAD has moved since this task's last commit; None when the task has made none."""
        base, head = self.base_dir, self._doc.head
        if base is None or not head:
            return None
        return await self._once("head", lambda: in_thread(lambda: gitlog.head_of(base))) != head

    def tools(self) -> list[Tool]:
        """The tools for a model: set_task_data, and record_artifact when the layer has a base_dir."""
        values = {"type": "object", "description": "Names and their new values. null is stored as a value."}
        remove = {"type": "array", "items": {"type": "string"}, "description": "Names to forget.", "optional": True}
        offered = [
            Tool(
                "set_task_data",
                "Remember facts about this task. They survive crashes and restarts, and are shown in <task_state>.",
                takes(values=values, remove=remove),
                self._set_by_model,
            )
        ]
        if self.base_dir is not None:
            path = {"type": "string", "description": "Path of the file, from the task's folder, with /."}
            about = "Note a file you have finished as a result of this task. Call it once the file is written."
            offered.append(Tool("record_artifact", about, takes(path=path), self._record_by_model))
        return offered

    async def _set_by_model(self, values: Any, remove: Sequence[str] = ()) -> dict[str, Any]:
        await self.set_data(values, remove=remove)
        return {"keys": [key for key in self._doc.data if not key.startswith("__")]}

    async def _record_by_model(self, path: str) -> dict[str, Any]:
        return (await self.record_artifact(path))._asdict()

    async def _once(self, what: str, read: Callable[[], Awaitable[T]], as_type: Any = Any) -> T:
        if self._context is None:
            raise InvalidInput("this layer is not in use", do="async with app.memory(task_id, [layer]):")
        return await self._context.once(what, read, as_type)

    def _base(self) -> Path:
        if self.base_dir is None:
            raise InvalidInput("this layer has no base_dir, so it cannot record files", do="give it a base_dir")
        return self.base_dir

    def _check(self, doc: Doc) -> None:
        if self._schema is not None:
            own = {key: value for key, value in doc.data.items() if not key.startswith("__") and key not in doc.merged}
            self._schema.check(own)

    # ── loading and keeping ─────────────────────────────────────────────────────────────────────

    async def _load(self) -> None:
        """The stored state: from the store, else from the copy on disk, else a new one."""
        assert self._context is not None
        doc, self._version = await self._context.storage.load_good(_NAME, self._read, self._context.note)
        if doc is not None:
            self._kept = doc
            self._land()
        else:
            found = await self._once("copy", self._from_disk)
            self._kept = self._seed if found is None else await self._read(found)
        self._doc = fold(self._kept, self._new)

    async def _read(self, value: Any) -> Doc:
        return from_stored(await self._deserialize(value))

    def _land(self) -> None:
        """Forget the events of an interrupted write that did succeed, so that they are not applied again."""
        token, going = self._flying
        if token and token in self._kept.tokens:
            self._new, self._flying = self._new[going:], ("", 0)

    async def _take(self, *events: Event) -> None:
        """Apply events to the state, and store it.

        Raises:
            InvalidInput: the store refuses them for good (too large, for example); they were dropped.
            PerdureError, OSError: they are not stored yet; the next write that succeeds stores them too.
        """
        if self._context is None:
            raise InvalidInput("this layer is not in use", do="async with app.memory(task_id, [layer]):")
        self._new.extend(events)  # before waiting: if this call is cancelled, a later write stores its events
        self._doc = fold(self._doc, events)
        async with self._turn:
            try:
                await self._keep()
            except InvalidInput:
                self._new = [one for one in self._new if all(one is not mine for mine in events)]
                self._doc, self._flying = fold(self._kept, self._new), ("", 0)
                raise

    async def _keep(self) -> None:
        assert self._context is not None
        for _ in range(_TRIES):
            if self._flying[0]:
                await self._load()
            uid = await self._once("uid", partial(_uid, self._context))
            token, going = self._context.record.draw("token", lambda: new_uid(0)), len(self._new)
            doc = self._doc._replace(uid=uid, tokens=(*self._doc.tokens, token)[-MOST_TOKENS:])
            value = await self._serialize(to_stored(doc))
            self._flying = (token, going)
            version = await self._context.storage.swap(_NAME, value, self._version)
            self._flying = ("", 0)
            if version is not None:
                self._kept, self._version, self._new = doc, version or 1, self._new[going:]
                self._doc = fold(self._kept, self._new)
                await self._once("to disk", partial(self._to_disk, value))
                return
            await self._load()  # another process wrote first: apply ours to its state
        raise Conflict(f"gave up saving the state of {self._context.task_id!r}: other processes kept changing it")

    async def _serialize(self, value: Any) -> Any:
        if self.serializer is None:
            return value
        given = self.serializer.serialize(value)
        return await given if inspect.isawaitable(given) else given

    async def _deserialize(self, value: Any) -> Any:
        if self.serializer is None:
            return value
        given = self.serializer.deserialize(value)
        return await given if inspect.isawaitable(given) else given

    # ── the copy on disk ────────────────────────────────────────────────────────────────────────

    def _copy(self) -> Path | None:
        assert self._context is not None
        if self.base_dir is None:
            return None
        name = self._context.task_id.replace("%", "%25").replace("/", "%2F")
        if len(name) > _MOST_NAME:
            name = f"{name[:_MOST_NAME]}~{digest(name)}"
        return self.base_dir / _FOLDER / f"{name}.state"

    async def _to_disk(self, value: Any) -> None:
        path, context = self._copy(), self._context
        if path is None or context is None:
            return
        data = envelope.seal(
            codec.encode([context.task_id, value]), kind="state", bound_to="", ring=store_of(context.tasks).ring
        )

        def put() -> None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            ignore = path.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
            replace_file(path, data)

        try:
            await in_thread(put)
        except OSError as error:
            context.note(f"no copy on disk: {error}")

    async def _from_disk(self) -> Any:
        """The value of the copy on disk; None when there is none that belongs to this task."""
        path, context = self._copy(), self._context
        if path is None or context is None or not path.exists():
            return None
        try:
            data = await in_thread(path.read_bytes)
            plain = envelope.unseal(data, kind="state", bound_to="", ring=store_of(context.tasks).ring)
            task_id, value = codec.decode(plain)
            doc = await self._read(value)
        except (OSError, RecordDamaged, ValueError) as error:
            context.note(f"the copy on disk cannot be read: {error}")
            return None
        if task_id != context.task_id or await _is_history(context.tasks, task_id, doc.uid):
            return None
        return value

    # ── git ─────────────────────────────────────────────────────────────────────────────────────

    async def _commit(self) -> None:
        """Commit recorded files in git; files that fail are tried again in the next turn."""
        context, base, doc = self._context, self._base(), self._doc
        assert context is not None
        open_files = [path for path in doc.files if doc.committed.get(path) != doc.hashes.get(path)]
        if not open_files:
            return

        async def commit() -> gitlog.Commit | str:
            message = await self._message(context, open_files)
            try:
                return await in_thread(lambda: gitlog.commit(base, open_files, message))
            except gitlog.NotCommitted as why:
                return str(why)

        done = await self._once("commit", commit, gitlog.Commit | str)
        if isinstance(done, str):
            context.note(f"not committed: {done}")
            return
        if done.ignored:
            context.note(f"git ignores {', '.join(done.ignored)}")
        if done.is_settled:
            settled = {path: doc.hashes[path] for path in (*done.files, *done.ignored)}
            await self._take(Committed(settled, done.head))

    async def _message(self, context: LayerContext, files: Sequence[str]) -> str:
        record = await context.tasks.get(context.task_id)
        latest = record.latest if record is not None else None
        checkpoint = latest.id if latest is not None else f"{self._doc.made}"
        what = files[0] if len(files) == 1 else f"{len(files)} files"
        return f"{context.task_id}: {what}\n\nPerdure-Task: {context.task_id}\nPerdure-Checkpoint: {checkpoint}\n"


async def _uid(context: LayerContext) -> str:
    row = await find_row(store_of(context.tasks), context.task_id)
    return row.uid if row is not None else ""


async def _is_history(tasks: Tasks, task_id: str, uid: str) -> bool:
    """True when the state belongs to an earlier task that had this id."""
    store = store_of(tasks)
    rows = await store.rows(TaskRow, "get_history", namespace=store.namespace, id=task_id)
    return any(row.uid == uid and not row.is_current for row in rows)
