"""`PerdureStore` and `PerdureCache`: LangGraph's long-term memory and its cache of node results, in a perdure store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from langgraph.cache.base import BaseCache, FullKey, Namespace, ValueT
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from perdure._ground.bridge import drive
from perdure._ground.encoding.key_parts import quoted, unquoted
from perdure.errors import InvalidInput
from perdure.integrations.langgraph.thread_lease import inner_app
from perdure.types import Delete, Put

if TYPE_CHECKING:
    from perdure import Perdure
    from perdure.sync import Perdure as BlockingPerdure

_MOST_CHANGES = 500


class _Keys:
    """`<root>/n:<part>/n:<part>/k:<key>`: the keys of a namespace lie together, and its sub-namespaces too."""

    def __init__(self, root: str) -> None:
        self.root = f"{root}/"

    def below(self, namespace: Sequence[str]) -> str:
        return self.root + "".join(f"n:{quoted(part)}/" for part in namespace)

    def of(self, namespace: Sequence[str], key: str) -> str:
        return f"{self.below(namespace)}k:{quoted(key)}"

    def read(self, stored: str) -> tuple[tuple[str, ...], str]:
        *parts, key = stored.removeprefix(self.root).split("/")
        return tuple(unquoted(part[2:]) for part in parts), unquoted(key[2:])


class PerdureStore(BaseStore):
    """A store for `graph.compile(store=…)`. A value is on disk when `put` returns.

    A search reads all items below its namespace, keeps those that the filter fits, and gives the newest first. There is
    no vector index: `query=` and `index=` have no effect.
    """

    supports_ttl = True

    def __init__(self, app: Perdure | BlockingPerdure, *, ttl: TTLConfig | None = None, root: str = "lg-store") -> None:
        self._app = inner_app(app)
        self._storage, self._keys = self._app.storage, _Keys(root)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return drive(self.abatch(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The reads see the store as it was before the batch; of several puts under one key the last counts."""
        results: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in ops:
            if isinstance(op, GetOp):
                results.append(await self._get(op))
            elif isinstance(op, SearchOp):
                results.append(await self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(await self._namespaces(op))
            elif isinstance(op, PutOp):
                puts[self._keys.of(op.namespace, op.key)] = op
                results.append(None)
            else:
                raise InvalidInput(f"a store does not know the operation {type(op).__name__}")
        await self._put(puts)
        return results

    async def _get(self, op: GetOp) -> Item | None:
        key = self._keys.of(op.namespace, op.key)
        row = await self._storage.get(key)
        if row is None:
            return None
        if op.refresh_ttl:
            await self._refresh({key: row})
        return Item(**_item(row), namespace=op.namespace, key=op.key)

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found = await self._storage.scan(self._keys.below(op.namespace_prefix))
        fitting = [one for one in found if _fits(one.value["value"], op.filter or {})]
        fitting.sort(key=lambda one: (one.value["updated"], one.key), reverse=True)
        chosen = fitting[op.offset : op.offset + op.limit]
        if op.refresh_ttl:
            await self._refresh({one.key: one.value for one in chosen})
        items = []
        for one in chosen:
            namespace, key = self._keys.read(one.key)
            items.append(SearchItem(**_item(one.value), namespace=namespace, key=key))
        return items

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {self._keys.read(key)[0] for key in await self._storage.list(self._keys.root)}
        fitting = {one for one in found if all(_is_at(condition, one) for condition in op.match_conditions or ())}
        if op.max_depth is not None:
            fitting = {one[: op.max_depth] for one in fitting}
        return sorted(fitting)[op.offset : op.offset + op.limit]

    async def _put(self, puts: Mapping[str, PutOp]) -> None:
        if not puts:
            return
        known = await self._storage.get_many(puts)
        now = datetime.now(UTC).isoformat()
        changes: list[Put | Delete] = []
        for key, op in puts.items():
            if op.value is None:
                changes.append(Delete(key))
                continue
            row = {"value": dict(op.value), "created": known.get(key, {}).get("created", now), "updated": now}
            changes.append(self._with_ttl(key, row, op.ttl))
        await self._storage.write(changes)

    async def _refresh(self, rows: Mapping[str, dict[str, Any]]) -> None:
        """A value that was read lives its time to live again."""
        again = [self._with_ttl(key, row, row["ttl"]) for key, row in rows.items() if "ttl" in row]
        if again:
            await self._storage.write(again)

    def _with_ttl(self, key: str, row: dict[str, Any], minutes: float | None) -> Put:
        if minutes is None:
            return Put(key, row)
        return Put(key, {**row, "ttl": minutes}, None, timedelta(minutes=minutes))


def _item(row: Mapping[str, Any]) -> dict[str, Any]:
    created, updated = datetime.fromisoformat(row["created"]), datetime.fromisoformat(row["updated"])
    return {"value": row["value"], "created_at": created, "updated_at": updated}


def _fits(value: Any, wanted: Mapping[str, Any]) -> bool:
    return all(_matches(value.get(name) if isinstance(value, dict) else None, one) for name, one in wanted.items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, operator, other) for operator, other in wanted.items())
        return isinstance(value, dict) and _fits(value, wanted)
    if isinstance(wanted, list | tuple):
        is_list = isinstance(value, list | tuple) and len(value) == len(wanted)
        return is_list and all(_matches(one, other) for one, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, operator: str, other: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == other)
        case "$ne":
            return bool(value != other)
        case "$gt" | "$gte" | "$lt" | "$lte":
            return _is_ordered(value, operator, other)
    raise InvalidInput(f"a filter does not know {operator!r}", do="use $eq, $ne, $gt, $gte, $lt or $lte")


def _is_ordered(value: Any, operator: str, other: Any) -> bool:
    """A value that is not a number fits no comparison."""
    try:
        left, right = float(value), float(other)
    except (TypeError, ValueError):
        return False
    return {"$gt": left > right, "$gte": left >= right, "$lt": left < right, "$lte": left <= right}[operator]


def _is_at(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", one) for one, wanted in zip(part, path, strict=True))


class PerdureCache(BaseCache[ValueT]):
    """A cache for `graph.compile(cache=…)`: results of nodes, shared by all processes, gone when their time is over."""

    def __init__(
        self, app: Perdure | BlockingPerdure, *, serde: SerializerProtocol | None = None, root: str = "lg-cache"
    ) -> None:
        super().__init__(serde=serde)
        self._storage, self._keys = inner_app(app).storage, _Keys(root)

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        at = {self._keys.of(namespace, key): (namespace, key) for namespace, key in keys}
        rows = await self._storage.get_many(at)
        return {at[key]: self.serde.loads_typed((row["type"], row["data"])) for key, row in rows.items()}

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        changes = []
        for (namespace, key), (value, seconds) in pairs.items():
            type_, data = self.serde.dumps_typed(value)
            expires = None if seconds is None else timedelta(seconds=seconds)
            changes.append(Put(self._keys.of(namespace, key), {"type": type_, "data": data}, None, expires))
        await self._storage.write(changes)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        for namespace in [()] if namespaces is None else namespaces:
            keys = await self._storage.list(self._keys.below(namespace))
            own = [key for key in keys if not namespace or self._keys.read(key)[0] == tuple(namespace)]
            for start in range(0, len(own), _MOST_CHANGES):
                await self._storage.write([Delete(key) for key in own[start : start + _MOST_CHANGES]])

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        return drive(self.aget(keys))

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        drive(self.aset(pairs))

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        drive(self.aclear(namespaces))
