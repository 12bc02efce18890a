"""A task's state and checkpoints: written, merged, listed, compared, rolled back.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.checkpoints.autosave import saving
from perdure._tasks.checkpoints.checkpoint_write import (
    all_carried,
    carried,
    carry,
    has_carried,
    put,
    read_own_state,
    read_state_at,
    save_working_state,
    store_once,
)
from perdure._tasks.checkpoints.checkpoint_reader import CheckpointPart, Checkpoints, value_at
from perdure._tasks.checkpoints.history import KeptEntries, LeftToWorker, fork_columns, read_checkpoint
from perdure._tasks.checkpoints.list_append import append, causes_of
from perdure._tasks.checkpoints.retention import Policy
from perdure._tasks.checkpoints import checkpoint_write
from perdure._tasks.checkpoints import history
from perdure._tasks.checkpoints import list_append
from perdure._tasks.checkpoints import retention
__all__ = [
    "saving",
    "all_carried",
    "carried",
    "carry",
    "has_carried",
    "put",
    "read_own_state",
    "read_state_at",
    "save_working_state",
    "store_once",
    "CheckpointPart",
    "Checkpoints",
    "value_at",
    "KeptEntries",
    "LeftToWorker",
    "fork_columns",
    "read_checkpoint",
    "append",
    "causes_of",
    "Policy",
    "checkpoint_write",
    "history",
    "list_append",
    "retention",
]
