"""Keep what others wrote to a task's state when its code writes over it.

Every write of a state says what its author had read. If the store holds something newer, the write is combined with
it key by key (perdure/_model/records/state_merge.py); where both sides changed one value, the write is refused.
"""

from __future__ import annotations

from typing import Any

from perdure._ground.encoding import codec
from perdure._model import Keep, Overlap, merge
from perdure._tasks.state import snapshots
from perdure._tasks.state.snapshots import Snapshot
from perdure.errors import StaleVersion

# The parts of a snapshot that are the task's own; others are carried by one checkpoint only.
OWN = ("state", "plan", "memory", "partial", "pending")


def own_parts(raw: bytes) -> dict[str, Any]:
    """The task's own parts of a snapshot, decoded."""
    found = snapshots.contents(raw)
    return {name: found[name] for name in OWN if name in found}


def combine(
    task_id: str, read: Snapshot, now: Snapshot, given: bytes, *, keep: Keep = "none"
) -> tuple[bytes, dict[str, Any]] | None:
    """The snapshot `given` by an author who had read `read`, with what was written since; None if nothing was.

    Raises:
        StaleVersion: others changed the same value since, and `keep` is "none".
    """
    if now.raw is read.raw or now.raw == read.raw:
        return None
    before, present = own_parts(read.raw), own_parts(now.raw)
    try:
        merged = merge(before, present, snapshots.contents(given), keep=keep)
    except Overlap as overlap:
        raise StaleVersion(task_id, read.seq, now.seq, path=".".join(overlap.path)) from None
    raw, copy = codec.round_trip(merged)
    snapshots.check_size(raw)
    return raw, copy
