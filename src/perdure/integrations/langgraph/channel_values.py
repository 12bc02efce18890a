"""The values of a thread's channels: written as links of list chains or whole, read in a few queries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol

from perdure.integrations.langgraph.list_chains import Chain, Item, chain_of, extend, is_list, row_of, wanted_by
from perdure.integrations.langgraph.thread_keys import ThreadKeys
from perdure.types import Storage

Place: TypeAlias = tuple[str, str, str]  # task id, namespace, channel
_MOST_BYTES = 64 * 1024 * 1024


class ChainCache:
    """The newest chain of each list that this process has read or written. The least used go first."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._chains: OrderedDict[Place, Chain] = OrderedDict()
        self._mutex = threading.Lock()

    def get(self, place: Place) -> Chain | None:
        with self._mutex:
            chain = self._chains.get(place)
            if chain is not None:
                self._chains.move_to_end(place)
            return chain

    def put(self, place: Place, chain: Chain) -> None:
        with self._mutex:
            self._drop(place)
            self._chains[place] = chain
            self._bytes += chain.size
            while self._bytes > self._most and self._chains:
                self._drop(next(iter(self._chains)))

    def forget(self, task_id: str) -> None:
        with self._mutex:
            for place in [place for place in self._chains if place[0] == task_id]:
                self._drop(place)

    def _drop(self, place: Place) -> None:
        former = self._chains.pop(place, None)
        if former is not None:
            self._bytes -= former.size


class Written(NamedTuple):
    """A channel's value, ready to be stored."""

    key: str
    row: dict[str, Any]
    place: Place
    chain: Chain | None  # to remember once the row is stored


class ChannelValues:
    """The values of the channels of one namespace of a thread."""

    def __init__(
        self, storage: Storage, serde: SerializerProtocol, cache: ChainCache, keys: ThreadKeys, ns: str
    ) -> None:
        self._storage, self._serde, self._cache, self._keys, self._ns = storage, serde, cache, keys, ns

    async def prepare(
        self, values: Mapping[str, Any], versions: Mapping[str, Any], parents: Mapping[str, Any]
    ) -> list[Written]:
        """The rows of these channels' new versions. `parents` are the versions they had before."""
        lists = {name for name in versions if type(values.get(name)) is list and len(values[name]) > 1}
        unknown = {name: parents[name] for name in lists if name in parents and self._chain_of(name) is None}
        if unknown:
            await self.read(unknown)  # this process did not write them: what it adds to must be known
        return [self._prepare(name, versions[name], values[name], name in lists) for name in versions if name in values]

    def _prepare(self, channel: str, version: Any, value: Any, is_a_list: bool) -> Written:
        key, place = self._keys.value(self._ns, channel, version), self._place(channel)
        if not is_a_list:
            type_, data = self._serde.dumps_typed(value)
            return Written(key, {"type": type_, "data": data}, place, None)
        items = [Item(*self._serde.dumps_typed(item)) for item in value]
        chain = extend(self._cache.get(place), str(version), items)
        return Written(key, row_of(chain), place, chain)

    def remember(self, written: list[Written]) -> None:
        """Say that these rows are stored."""
        for one in written:
            if one.chain is not None:
                self._cache.put(one.place, one.chain)

    async def read(self, versions: Mapping[str, Any]) -> dict[str, Any]:
        """The value of each channel in the version given; a channel whose value is not kept is left out."""
        found: dict[str, Any] = {}
        rows: dict[str, dict[str, dict[str, Any]]] = {}  # by channel, by version
        for channel, version in versions.items():
            chain = self._chain_of(channel, str(version))
            if chain is not None:
                found[channel] = self._load_items(chain)
            else:
                rows[channel] = {}
        await self._read_rows({channel: [str(versions[channel])] for channel in rows}, rows)
        for channel, by_version in rows.items():
            version = str(versions[channel])
            row = by_version.get(version)
            if row is None:
                continue
            if not is_list(row):
                found[channel] = self._serde.loads_typed((row["type"], row["data"]))
                continue
            chain = chain_of(version, by_version)
            if chain is not None:
                self._cache.put(self._place(channel), chain)
                found[channel] = self._load_items(chain)
        return found

    async def chain_keys(self, versions: Mapping[str, Any]) -> set[str]:
        """The keys of all rows that these versions are read from."""
        rows: dict[str, dict[str, dict[str, Any]]] = {channel: {} for channel in versions}
        await self._read_rows({channel: [str(version)] for channel, version in versions.items()}, rows)
        keys = set()
        for channel, by_version in rows.items():
            version = str(versions[channel])
            chain = chain_of(version, by_version)
            used = [version] if chain is None else [link.version for link in chain.links]
            keys |= {self._keys.value(self._ns, channel, one) for one in used}
        return keys

    async def _read_rows(self, wanted: dict[str, list[str]], rows: dict[str, dict[str, dict[str, Any]]]) -> None:
        """Read the wanted versions and all that they are made from; one query a round, few rounds."""
        asked: set[str] = set()
        while wanted:
            at = {
                self._keys.value(self._ns, channel, version): (channel, version)
                for channel, versions in wanted.items()
                for version in versions
                if version not in rows[channel]
            }
            asked |= at.keys()
            for key, row in (await self._storage.get_many(at)).items() if at else ():
                channel, version = at[key]
                rows[channel][version] = row
                await self._read_run(channel, key, row, rows[channel])
            wanted = {channel: self._still_wanted(channel, rows[channel], asked) for channel in wanted}
            wanted = {channel: versions for channel, versions in wanted.items() if versions}

    async def _read_run(self, channel: str, key: str, row: dict[str, Any], rows: dict[str, dict[str, Any]]) -> None:
        """The links before this one in its run lie next to it, unless the thread was forked."""
        if row.get("nth", 1) < 2 or row["before"] in rows:
            return
        prefix = self._keys.versions(self._ns, channel)
        for found in await self._storage.scan(prefix, after=key, limit=row["nth"] - 1, reverse=True):
            rows[found.key.removeprefix(prefix)] = found.value

    def _still_wanted(self, channel: str, rows: dict[str, dict[str, Any]], asked: set[str]) -> list[str]:
        missing = {version for row in rows.values() for version in wanted_by(row) if version not in rows}
        return [version for version in missing if self._keys.value(self._ns, channel, version) not in asked]

    def _chain_of(self, channel: str, version: str | None = None) -> Chain | None:
        chain = self._cache.get(self._place(channel))
        return chain if chain is not None and version in (None, chain.head) else None

    def _load_items(self, chain: Chain) -> list[Any]:
        return [self._serde.loads_typed(item) for item in chain.items]

    def _place(self, channel: str) -> Place:
        return (self._keys.task_id, self._ns, channel)
