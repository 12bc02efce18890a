"""Durable rows: verbs that are written, queries that are read, on SQLite or PostgreSQL."""

from perdure._store.acting import Author, acting
from perdure._store.bell import LEAST_GAP, MOVED, WORK, Bell, kinds_of
from perdure._store.committer import Committer
from perdure._store.contract import (
    Again,
    AskingTask,
    AttemptRow,
    CallRow,
    CheckpointHead,
    DeliveryRow,
    Engine,
    EventRow,
    FrameRow,
    HolderRow,
    HookRow,
    Kinds,
    OldReader,
    PauseRow,
    QuestionRow,
    Row,
    SignalRow,
    SituationRow,
    SummaryRow,
    SwitchRow,
    TaskRow,
    ValueRow,
    WorkerRow,
)
from perdure._store.exit_flush import flush_on_sigterm
from perdure._store.interrupts import apart
from perdure._store.presence import Presence
from perdure._store.store import Shared, Store, make_engine, share
from perdure._store.wake_ups import Waiting, wake_here
from perdure._store.write import Fence, Write

__all__ = [
    "LEAST_GAP",
    "MOVED",
    "WORK",
    "Again",
    "AskingTask",
    "AttemptRow",
    "Author",
    "Bell",
    "CallRow",
    "Committer",
    "Engine",
    "EventRow",
    "Fence",
    "CheckpointHead",
    "FrameRow",
    "HolderRow",
    "Kinds",
    "OldReader",
    "PauseRow",
    "Presence",
    "QuestionRow",
    "Row",
    "Shared",
    "SignalRow",
    "SituationRow",
    "Store",
    "SummaryRow",
    "DeliveryRow",
    "HookRow",
    "SwitchRow",
    "TaskRow",
    "ValueRow",
    "Waiting",
    "WorkerRow",
    "Write",
    "acting",
    "apart",
    "flush_on_sigterm",
    "kinds_of",
    "make_engine",
    "share",
    "wake_here",
]
