"""The newest snapshots of tasks that a process has read, for one that is asked about the same tasks again and again.

A snapshot is built from its keyframe through every delta since. A process that keeps the one before builds the next
from one delta. Which snapshot is the newest is read from the store each time, and a delta says itself whether it fits
what it is put on, so nothing old is ever given for new. What looks for damage does not read through here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from perdure._store import FrameRow, Store
from perdure._tasks.state import snapshots
from perdure._tasks.state.snapshots import Snapshot
from perdure.errors import RecordDamaged

_MOST_BYTES = 16 * 1024 * 1024
_LARGEST = 2 * 1024 * 1024  # bytes of one


class _Kept(NamedTuple):
    frame: FrameRow
    snapshot: Snapshot


class _Recent:
    """Snapshots by task, the ones used last; bounded in bytes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0
        self._mutex = threading.Lock()

    def get(self, uid: str) -> _Kept | None:
        with self._mutex:
            return self._kept.get(uid)

    def keep(self, uid: str, kept: _Kept) -> None:
        with self._mutex:
            self._drop(uid)
            if len(kept.snapshot.raw) > _LARGEST:
                return
            self._kept[uid] = kept
            self._bytes += len(kept.snapshot.raw)
            while self._bytes > _MOST_BYTES:
                self._drop(next(iter(self._kept)))

    def _drop(self, uid: str) -> None:
        if (old := self._kept.pop(uid, None)) is not None:
            self._bytes -= len(old.snapshot.raw)


_recent: WeakKeyDictionary[Store, _Recent] = WeakKeyDictionary()


def keep_recent(store: Store) -> None:
    """Keep the newest snapshots that are read through this store from now on, up to 16 MB."""
    _recent.setdefault(store, _Recent())


async def newest(store: Store, uid: str, seq: int) -> tuple[Snapshot, FrameRow]:
    """The snapshot of the checkpoint that the task's row names.

    Raises:
        NotFound, RecordDamaged, KeyMissing: as `snapshots.materialise` does.
    """
    recent = _recent.get(store) if _recent else None
    if recent is None:
        return await snapshots.materialise(store, uid, seq)
    found = await _from_kept(store, uid, seq, recent.get(uid)) or await snapshots.materialise(store, uid, seq)
    recent.keep(uid, _Kept(found[1], found[0]))
    return found


async def _from_kept(store: Store, uid: str, seq: int, kept: _Kept | None) -> tuple[Snapshot, FrameRow] | None:
    frame = await store.row(FrameRow, "read_frame", uid=uid, target=seq) if kept is not None else None
    if kept is None or frame is None:
        return None
    before = kept.snapshot
    chain = {"chain_size": frame.chain_size, "chain_length": frame.chain_length}
    if (frame.seq, frame.at, frame.base, frame.frame) == (
        kept.frame.seq,
        kept.frame.at,
        kept.frame.base,
        kept.frame.frame,
    ):
        return replace(before, **chain), frame
    if frame.base is None or frame.base != before.seq:
        return None
    try:
        raw = await snapshots.extend(store, uid, frame, before.raw)
    except RecordDamaged:  # the chain tells whether it is, or only another one than ours
        return None
    return replace(before, seq=frame.seq, raw=raw, places={}, **chain), frame
