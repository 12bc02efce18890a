"""`PerdureSaver`: the checkpoints of LangGraph's threads in a perdure store, SQLite or PostgreSQL.

Every method is written once, as a coroutine; the blocking ones drive it in the calling thread. A checkpoint is stored
with its new channel values in one transaction, and is on disk when `put` returns. Lists grow by their new items only
(list_chains.py).
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from perdure._ground.bridge import drive, iterate
from perdure.errors import Conflict, InvalidInput
from perdure.integrations.langgraph.channel_values import ChainCache, ChannelValues
from perdure.integrations.langgraph.thread_keys import ThreadKeys
from perdure.integrations.langgraph.thread_lease import ThreadLease, inner_app
from perdure.types import Delete, Put

if TYPE_CHECKING:
    from perdure import Perdure
    from perdure.sync import Perdure as BlockingPerdure

_PAGE = 50  # checkpoints that a list reads at a time
_MOST_CHANGES = 500  # of one transaction that only removes


class PerdureSaver(BaseCheckpointSaver[str]):
    """A checkpointer for `graph.compile(checkpointer=…)`, on the store of a `Perdure` of either face.

    Two processes on one thread interleave unless they take the thread's lease:

        async with saver.thread("thread-1"):                  # or `with` in blocking code
            await graph.ainvoke(inputs, {"configurable": {"thread_id": "thread-1"}})

    Inside the block a second process gets LeaseHeld, and a process that lost the lease writes nothing. The thread shows
    in `perdure tasks` as the task `lg:<thread id>`.
    """

    def __init__(
        self, app: Perdure | BlockingPerdure, *, serde: SerializerProtocol | None = None, prefix: str = "lg"
    ) -> None:
        super().__init__(serde=serde)
        self._app: Perdure = inner_app(app)
        self._storage = self._app.storage
        self._prefix = prefix
        self._cache = ChainCache()

    def thread(self, thread_id: str, *, take_over: bool = False) -> ThreadLease:
        """Hold a thread's lease for a block; `take_over` takes it from another process.

        Raises (when the block is entered):
            LeaseHeld: another process works on the thread; it says which.
        """
        return ThreadLease(self._app, self._keys(thread_id).task_id, str(thread_id), take_over)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """A version that sorts behind `current`, and differs between two forks of a thread."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:08}.{random.getrandbits(32):08x}"  # tells forks apart, guards nothing

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; it is on disk when this returns.

        Raises:
            LeaseLost: this process held the thread, and another has taken it over; nothing was written.
        """
        keys, ns, parent = self._keys(_thread(config)), _namespace(config), get_checkpoint_id(config)
        values = self._values(keys, ns)
        channel_values = checkpoint["channel_values"]
        before = await self._versions_of(keys, ns, parent) if self._may_extend(keys, ns, new_versions) else {}
        written = await values.prepare(channel_values, new_versions, before)
        body = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        row = {
            "thread": keys.thread,
            "ns": ns,
            "id": checkpoint["id"],
            "parent": parent,
            "checkpoint": [*self.serde.dumps_typed(body)],
            "metadata": [*self.serde.dumps_typed(get_serializable_checkpoint_metadata(config, metadata))],
            "has": sorted(channel_values),
        }
        changes = [Put(one.key, one.row) for one in written]
        await self._storage.write([*changes, Put(keys.checkpoint(ns, checkpoint["id"]), row)])
        values.remember(written)
        return _config(keys.thread, ns, checkpoint["id"])

    def _may_extend(self, keys: ThreadKeys, ns: str, versions: Mapping[str, Any]) -> bool:
        """True if one of the channels may be a list that this process has not seen."""
        return any(self._cache.get((keys.task_id, ns, channel)) is None for channel in versions)

    async def _versions_of(self, keys: ThreadKeys, ns: str, checkpoint_id: str | None) -> Mapping[str, Any]:
        if checkpoint_id is None:
            return {}
        row = await self._storage.get(keys.checkpoint(ns, checkpoint_id))
        if row is None:
            return {}
        found: dict[str, Any] = self._load(row["checkpoint"])["channel_versions"]
        return {name: version for name, version in found.items() if name in row["has"]}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task of the graph wrote after a checkpoint. A write that is stored already stays as it is."""
        keys, ns, checkpoint_id = self._keys(_thread(config)), _namespace(config), get_checkpoint_id(config) or ""
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        rows: dict[
            str, Put
        ] = {}  # LangGraph gives a special channel twice when a node is interrupted again: the last counts
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            type_, data = self.serde.dumps_typed(value)
            row = {"task": task_id, "path": task_path, "index": index, "channel": channel, "type": type_, "data": data}
            key = keys.write(ns, checkpoint_id, task_id, index)
            rows[key] = Put(key, row, None if replace else 0)
        if not rows:
            return
        changes = [*rows.values()]
        try:
            await self._storage.write(changes)
        except Conflict:
            known = await self._storage.get_many(change.key for change in changes)
            await self._storage.write([Put(one.key, one.value) for one in changes if one.key not in known])

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        keys, ns, checkpoint_id = self._keys(_thread(config)), _namespace(config), get_checkpoint_id(config)
        if checkpoint_id is not None:
            row = await self._storage.get(keys.checkpoint(ns, checkpoint_id))
        else:
            newest = await self._storage.scan(keys.checkpoints(ns), limit=1, reverse=True)
            row = newest[0].value if newest else None
        return None if row is None else await self._tuple(keys, row)

    async def _tuple(self, keys: ThreadKeys, row: dict[str, Any]) -> CheckpointTuple:
        checkpoint = self._load(row["checkpoint"])
        versions = {name: checkpoint["channel_versions"].get(name) for name in row["has"]}
        values = await self._values(keys, row["ns"]).read(
            {name: version for name, version in versions.items() if version is not None}
        )
        writes = [found.value for found in await self._storage.scan(keys.writes(row["ns"], row["id"]))]
        writes.sort(key=lambda one: writes_sort_key(one["path"], one["task"], one["index"]))
        return CheckpointTuple(
            _config(keys.thread, row["ns"], row["id"]),
            cast(Checkpoint, {**checkpoint, "channel_values": values}),
            self._load(row["metadata"]),
            _config(keys.thread, row["ns"], row["parent"]) if row["parent"] else None,
            [(one["task"], one["channel"], self._load((one["type"], one["data"]))) for one in writes],
        )

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        left = limit
        async for row in self._rows(config, before):
            if left is not None and left <= 0:
                return
            if filter and not self._matches(row, filter):
                continue
            left = None if left is None else left - 1
            yield await self._tuple(self._keys(row["thread"]), row)

    def _matches(self, row: dict[str, Any], filter: Mapping[str, Any]) -> bool:
        metadata = self._load(row["metadata"])
        return all(metadata.get(name) == value for name, value in filter.items())

    async def _rows(
        self, config: RunnableConfig | None, before: RunnableConfig | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The checkpoints that a config names, newest first, without those that are only kept for others."""
        named: Mapping[str, Any] = (config or {}).get("configurable", {})
        only, stop = named.get("checkpoint_id"), get_checkpoint_id(before) if before else None
        if "thread_id" in named and "checkpoint_ns" in named:
            rows = self._rows_of(self._keys(str(named["thread_id"])), named["checkpoint_ns"], stop)
        else:
            rows = self._rows_by_age(str(named["thread_id"]) if "thread_id" in named else None)
        async for row in rows:
            is_asked_for = (only is None or row["id"] == only) and (stop is None or row["id"] < stop)
            if is_asked_for and not row.get("hidden"):
                yield row

    async def _rows_of(self, keys: ThreadKeys, ns: str, stop: str | None) -> AsyncIterator[dict[str, Any]]:
        prefix = keys.checkpoints(ns)
        after = keys.checkpoint(ns, stop) if stop is not None else None
        while page := await self._storage.scan(prefix, after=after, limit=_PAGE, reverse=True):
            for found in page:
                yield found.value
            after = page[-1].key

    async def _rows_by_age(self, thread: str | None) -> AsyncIterator[dict[str, Any]]:
        """The checkpoints of all namespaces of a thread, or of all threads."""
        found = [key for key in await self._all_keys(thread) if "/lg/c/" in key]
        found.sort(key=lambda key: key.rsplit("/", 1)[1], reverse=True)
        for start in range(0, len(found), _PAGE):
            part = found[start : start + _PAGE]
            rows = await self._storage.get_many(part)
            for key in part:
                if key in rows:
                    yield rows[key]

    async def _all_keys(self, thread: str | None) -> Sequence[str]:
        if thread is not None:
            return await self._storage.list(self._keys(thread).root)
        return await self._storage.list(f"execution/{self._prefix}:")

    # ── removing and copying ────────────────────────────────────────────────────────────────────

    async def adelete_thread(self, thread_id: str) -> None:
        keys = self._keys(thread_id)
        await self._remove(await self._storage.list(keys.root))
        self._cache.forget(keys.task_id)
        record = await self._app.tasks.get(keys.task_id, archived=True)
        if record is not None and not any(attempt.ended_at is None for attempt in record.attempts):
            await (await self._app.tasks.open(keys.task_id)).delete(force=True)  # with what its tools and nodes did

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        wanted = {str(run_id) for run_id in run_ids}
        async for row in self._rows_by_age(None):
            if str(self._load(row["metadata"]).get("run_id")) in wanted:
                keys = self._keys(row["thread"])
                writes = await self._storage.list(keys.writes(row["ns"], row["id"]))
                await self._remove([keys.checkpoint(row["ns"], row["id"]), *writes])

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        source, target = self._keys(source_thread_id), self._keys(target_thread_id)
        after: str | None = None
        while page := await self._storage.scan(source.root, after=after, limit=_PAGE):
            copies = []
            for found in page:
                is_checkpoint = "thread" in found.value
                value = {**found.value, "thread": target.thread} if is_checkpoint else found.value
                copies.append(Put(target.root + found.key.removeprefix(source.root), value))
            await self._storage.write(copies)
            after = page[-1].key

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove checkpoints: all but the newest of each namespace (`keep_latest`), or all (`delete`).

        A channel that is stored as writes since its last snapshot (`DeltaChannel`) keeps the checkpoints that it is
        rebuilt from. They no longer show in lists.
        """
        if strategy not in ("keep_latest", "delete", "delete_all"):
            raise InvalidInput(f"prune knows no strategy {strategy!r}", do="use 'keep_latest' or 'delete'")
        for thread in thread_ids:
            if strategy == "keep_latest":
                await self._keep_latest(self._keys(thread))
            else:
                await self.adelete_thread(thread)

    async def _keep_latest(self, keys: ThreadKeys) -> None:
        rows = [found.value for found in await self._storage.scan(keys.checkpoints())]
        for ns in {row["ns"] for row in rows}:
            by_id = {row["id"]: row for row in rows if row["ns"] == ns}
            newest = by_id[max(by_id)]
            ancestors, deltas = self._rebuilt_from(newest, by_id)
            kept = [newest, *({**row, "has": [c for c in row["has"] if c in deltas]} for row in ancestors)]
            keep: set[str] = set()
            for row in kept:
                versions = self._load(row["checkpoint"])["channel_versions"]
                keep |= await self._values(keys, ns).chain_keys({c: versions[c] for c in row["has"] if c in versions})
                keep |= {*await self._storage.list(keys.writes(ns, row["id"])), keys.checkpoint(ns, row["id"])}
            for row in kept[1:]:
                await self._storage.put(keys.checkpoint(ns, row["id"]), {**row, "hidden": True})
            all_keys = [
                key
                for prefix in (keys.checkpoints(ns), keys.all_writes(ns), keys.values(ns))
                for key in await self._storage.list(prefix)
            ]
            await self._remove([key for key in all_keys if key not in keep])

    def _rebuilt_from(
        self, newest: dict[str, Any], by_id: Mapping[str, dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], set[str]]:
        """The ancestors that the newest checkpoint's delta channels are rebuilt from, and the names of those."""
        counters = self._load(newest["metadata"]).get("counters_since_delta_snapshot") or {}
        deltas = {channel for channel in counters if channel not in newest["has"]}
        missing, ancestors, at = set(deltas), [], newest["parent"]
        while missing and at in by_id:
            row = by_id[at]
            ancestors.append(row)
            missing -= set(row["has"])
            at = row["parent"]
        return ancestors, deltas

    async def _remove(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _MOST_CHANGES):
            await self._storage.write([Delete(key) for key in keys[start : start + _MOST_CHANGES]])

    # ── the blocking face ───────────────────────────────────────────────────────────────────────

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return drive(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        drive(self.aput_writes(config, writes, task_id, task_path))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return drive(self.aget_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        return iterate(self.alist(config, filter=filter, before=before, limit=limit))

    def delete_thread(self, thread_id: str) -> None:
        drive(self.adelete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        drive(self.adelete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        drive(self.acopy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        drive(self.aprune(thread_ids, strategy=strategy))

    def _keys(self, thread_id: str) -> ThreadKeys:
        return ThreadKeys(str(thread_id), self._prefix)

    def _values(self, keys: ThreadKeys, ns: str) -> ChannelValues:
        return ChannelValues(self._storage, self.serde, self._cache, keys, ns)

    def _load(self, typed: Sequence[Any]) -> Any:
        return self.serde.loads_typed((typed[0], typed[1]))


def _thread(config: RunnableConfig) -> str:
    try:
        return str(config["configurable"]["thread_id"])
    except KeyError:
        raise InvalidInput(
            "a graph with a checkpointer needs the id of its thread",
            do='invoke it with {"configurable": {"thread_id": "…"}}',
        ) from None


def _namespace(config: RunnableConfig) -> str:
    ns: str = config["configurable"].get("checkpoint_ns") or ""
    return ns


def _config(thread: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}
