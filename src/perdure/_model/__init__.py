"""The records perdure keeps and the moves they allow: frozen, pure, without I/O."""

from perdure._model.checkpoint import Change, Checkpoint, ToolCall, checkpoint_id, diff, seq_of
from perdure._model.event import GENESIS, ChainCheck, Event, Link, chain, digest, verify
from perdure._model.lease import LEASE, Holder, Sighting
from perdure._model.pause import REASONS, Pause, Reason, make_pause
from perdure._model.task import (
    FINISHED,
    MAY_WRITE,
    MOVES,
    STATUSES,
    Attempt,
    Config,
    Move,
    Page,
    Progress,
    Status,
    TaskRecord,
    can_move,
    progress_of,
    refuse_move,
)

__all__ = [
    "FINISHED",
    "GENESIS",
    "LEASE",
    "MAY_WRITE",
    "MOVES",
    "REASONS",
    "STATUSES",
    "Attempt",
    "ChainCheck",
    "Change",
    "Checkpoint",
    "Config",
    "Event",
    "Holder",
    "Link",
    "Move",
    "Page",
    "Pause",
    "Progress",
    "Reason",
    "Sighting",
    "Status",
    "TaskRecord",
    "ToolCall",
    "can_move",
    "chain",
    "checkpoint_id",
    "diff",
    "digest",
    "make_pause",
    "progress_of",
    "refuse_move",
    "seq_of",
    "verify",
]
