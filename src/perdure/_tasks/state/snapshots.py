"""From a task's state to the frame of a checkpoint, and back.

A snapshot is the state with its companions (plan, memory, partial results, pending tool calls), encoded
as one document. A frame is what is stored of it: a keyframe, or a delta of the snapshot before. Frames
too large for one row go ahead as chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from perdure._ground import ids
from perdure._ground import malloc_tuning as heap
from perdure._ground.encoding import codec
from perdure._ground.encoding import deltas as frames
from perdure._ground.encoding import list_splice as splicing
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._model import ToolCall
from perdure._store import FrameRow, Store
from perdure.errors import InvalidInput, NotFound, NotStorable, RecordDamaged, TooLarge

MAX_STATE = 256 * 1024 * 1024
CHUNK = 1024 * 1024


class Snapshot(Struct, frozen=True):
    """The bytes of one snapshot, and what the next delta has to know about its chain."""

    seq: int
    raw: bytes
    keyframe_size: int
    chain_size: int
    chain_length: int
    places: Mapping[splicing.Path, splicing.Place] = field(default_factory=dict)  # lists that were appended to


class Frame(Struct, frozen=True):
    """A checkpoint on its way to the store."""

    base: int | None
    parent: int
    size: int
    stored: int
    chain_size: int
    chain_length: int
    chunks: int
    frame: bytes
    parts: tuple[bytes, ...]
    keyframe_size: int
    places: Mapping[splicing.Path, splicing.Place] = field(default_factory=dict)

    def columns(self) -> dict[str, Any]:
        names = ("base", "parent", "size", "stored", "chain_size", "chain_length", "chunks", "frame")
        return {name: getattr(self, name) for name in names}

    def snapshot(self, seq: int, raw: bytes) -> Snapshot:
        return Snapshot(seq, raw, self.keyframe_size, self.chain_size, self.chain_length, self.places)


class First(Struct, frozen=True):
    """A new task's state as it comes back, and its first checkpoint on its way to the store."""

    state: Any
    snapshot: Snapshot
    columns: dict[str, Any]
    frame: Frame


NO_FRAME: dict[str, Any] = {
    "adds": 0,
    "base": None,
    "parent": None,
    "size": 0,
    "stored": 0,
    "chain_size": 0,
    "chain_length": 0,
    "chunks": 0,
    "frame": None,
    "label": "",
    "cause": "",
    "depth": 0,
    "position": 0,
}


def document(
    state: object, plan: object = None, memory: object = None, partial: object = None, pending: Sequence[ToolCall] = ()
) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a snapshot and its decoded copy.

    Raises:
        NotStorable: a value would change when stored and read.
        TooLarge: the state exceeds the limit.
        InvalidInput: a pending item is not a tool call.
    """
    calls = [
        {"id": c.id, "tool": c.tool, "arguments": c.arguments, "started_at": c.started_at}
        for c in map(as_tool_call, pending)
    ]
    extras = {"plan": plan, "memory": memory, "partial": partial, "pending": calls or None}
    try:
        raw, copy = codec.round_trip({"state": state, **{k: v for k, v in extras.items() if v is not None}})
    except NotStorable as error:
        path = error.path.removeprefix("state").removeprefix(".")
        raise NotStorable(path, error.problem, do=error.do) from None
    check_size(raw)
    return raw, copy


def check_size(raw: bytes, what: str = "the state") -> None:
    """
    Raises:
        TooLarge: the snapshot is past the limit.
    """
    if len(raw) > MAX_STATE:
        raise TooLarge(what, len(raw), MAX_STATE)


def as_tool_call(call: ToolCall | Mapping[str, Any]) -> ToolCall:
    try:
        return call if isinstance(call, ToolCall) else ToolCall(**call)
    except TypeError:
        do = "give ToolCall(id=…, tool=…, arguments=…), or a dict of these"
        raise InvalidInput(f"{call!r:.200} is not a pending tool call", do=do) from None


def first(store: Store, uid: str, id: str, state: object) -> First:
    """The first snapshot of a task.

    Raises:
        NotStorable, TooLarge: nothing was written.
    """
    if not state and type(state) is dict and store.ring.current is None:
        # Of durable functions nearly all: without a key nothing in it is one task's own.
        return First({}, *_nothing())
    raw, copy = document(state)
    frame = build(store, uid, raw, None)
    return First(copy["state"], frame.snapshot(0, raw), frame.columns(), frame)


@cache
def _nothing() -> tuple[Snapshot, dict[str, Any], Frame]:
    raw, _ = document({})
    sealed = envelope.seal(raw, kind="state", bound_to="", ring=KeyRing())
    frame = Frame(None, 0, len(raw), len(sealed), 0, 0, 0, sealed, (), len(sealed))
    return frame.snapshot(0, raw), frame.columns(), frame


def build(store: Store, uid: str, raw: bytes, before: Snapshot | None, crc: int | None = None) -> Frame:
    """The smallest frame for a snapshot that follows `before` (None: the task's first)."""
    return build_from(store, uid, raw, before, frames.delta(before.raw, raw, crc) if before else None)


def build_from(store: Store, uid: str, raw: bytes, before: Snapshot | None, change: bytes | None) -> Frame:
    """The same, where what changed is known; None when too much did."""
    heap.keep(len(raw))
    parent = before.seq if before else 0
    if before and change is not None:
        sealed = envelope.seal(change, kind="delta", bound_to=uid, ring=store.ring, compress=False)
        if not frames.wants_keyframe(before.keyframe_size, before.chain_size, before.chain_length, len(raw)):
            size, length = before.chain_size + len(sealed), before.chain_length + 1
            return _frame(store, sealed, len(raw), parent, before.seq, (before.keyframe_size, size, length))
    sealed = envelope.seal(raw, kind="state", bound_to=uid, ring=store.ring)
    return _frame(store, sealed, len(raw), parent, None, (len(sealed), 0, 0))


def with_places(frame: Frame, places: Mapping[splicing.Path, splicing.Place]) -> Frame:
    """The frame, which remembers where lists are in its snapshot."""
    return replace(frame, places=places)


def _frame(store: Store, sealed: bytes, size: int, parent: int, base: int | None, chain: tuple[int, int, int]) -> Frame:
    keyframe_size, chain_size, chain_length = chain
    parts: tuple[bytes, ...] = ()
    body = sealed
    if len(sealed) > CHUNK:
        parts = tuple(sealed[at : at + CHUNK] for at in range(0, len(sealed), CHUNK))
        body = ids.new_uid(store.clock.now_ms()).encode()  # the chunks' owner
    return Frame(base, parent, size, len(sealed), chain_size, chain_length, len(parts), body, parts, keyframe_size)


async def put_chunks(store: Store, uid: str, frame: Frame, key: str) -> None:
    """Store the parts of a large frame, before the verb that names them. They are on disk when this returns: a verb
    that was queued behind a part might be written though the part was not, as when the disk is full.

    Raises:
        StoreUnavailable: some part was not written; nothing names the others, and gc takes them.
    """
    if not frame.parts:
        return
    owner = frame.frame.decode()
    writes = [
        store.committer.submit(store.verb("put_chunk", uid, {"owner": owner, "n": n, "chunk_body": part}, key=key))
        for n, part in enumerate(frame.parts)
    ]
    for write in writes:
        await write


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def owner_of(uid: str, row: FrameRow) -> str:
    """The name of the chunks that make up a checkpoint's frame; "" when it is in its row.

    Raises:
        RecordDamaged: its row does not name them.
    """
    if not row.chunks:
        return ""
    try:
        return row.frame.decode("ascii")
    except UnicodeDecodeError:
        raise RecordDamaged(f"checkpoint {uid}.{row.seq}", "it does not name its chunks") from None


async def sealed_frame(store: Store, uid: str, row: FrameRow) -> bytes:
    if not row.chunks:
        return row.frame
    parts = await store.query("read_chunks", uid=uid, owner=owner_of(uid, row))
    if len(parts) != row.chunks:
        raise RecordDamaged(f"checkpoint {uid}.{row.seq}", f"{len(parts)} of its {row.chunks} chunks are there")
    return b"".join(part for (part,) in parts)


async def extend(store: Store, uid: str, row: FrameRow, before: bytes | None) -> bytes:
    """The snapshot of one row, given the snapshot it is a delta of."""
    sealed = await sealed_frame(store, uid, row)
    if row.base is None:
        return envelope.unseal(sealed, kind="state", bound_to=uid, ring=store.ring, limit=MAX_STATE)
    if before is None:
        raise RecordDamaged(f"checkpoint {uid}.{row.seq}", f"checkpoint {row.base}, which it builds on, is missing")
    change = envelope.unseal(sealed, kind="delta", bound_to=uid, ring=store.ring, limit=MAX_STATE)
    return frames.apply(before, change, limit=MAX_STATE)


async def materialise(store: Store, uid: str, seq: int) -> tuple[Snapshot, FrameRow]:
    """A checkpoint's snapshot, built from its keyframe.

    Raises:
        NotFound: there is no such checkpoint.
        RecordDamaged: it, or one it builds on, cannot be read.
        KeyMissing: it is sealed with a key that is not here.
    """
    rows = await _chain(store, uid, seq)
    while True:
        try:
            return await _build_up(store, uid, rows), rows[-1]
        except RecordDamaged:
            # Large frames are read after their rows. If gc or a rotation has rewritten the chain in between,
            # its chunks are gone and nothing is damaged: the rows tell.
            before, rows = rows, await _chain(store, uid, seq)
            if rows == before:
                raise


async def _chain(store: Store, uid: str, seq: int) -> list[FrameRow]:
    rows = await store.rows(FrameRow, "read_chain", uid=uid, target=seq)
    if not rows or rows[-1].seq != seq:
        raise NotFound("checkpoint", f"{uid}.{seq}", store.place, do="`perdure checkpoints ID` lists those of a task")
    return rows


async def _build_up(store: Store, uid: str, rows: Sequence[FrameRow]) -> Snapshot:
    raw: bytes | None = None
    for row in rows:
        raw = await extend(store, uid, row, raw if row is not rows[0] else None)
    assert raw is not None
    last = rows[-1]
    return Snapshot(last.seq, raw, rows[0].stored, last.chain_size, last.chain_length)


def contents(raw: bytes) -> dict[str, Any]:
    """A snapshot's parts: state, and plan, memory, partial, pending where there are any."""
    found = codec.decode(raw)
    if not isinstance(found, dict) or "state" not in found:
        raise RecordDamaged("a snapshot", "it holds no state")
    return found


def copy_of(value: object) -> Any:
    """The value as it would come back from the store."""
    return codec.round_trip(value)[1]
