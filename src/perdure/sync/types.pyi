"""The types of what perdure gives back, for annotations, and `register` for types of your own that are stored.

The same as perdure.types. Written by tools/make_sync.py.

Written by tools/make_doors.py from the table in types.py.
"""

from perdure.types import (
    Durable,
    DurableFunction,
    JournalCall,
    JournalLine,
    Outline,
    Stopped,
    ToolFunction,
    Where,
    register,
    Attempt,
    Change,
    Checkpoint,
    Config,
    Level,
    Page,
    Pause,
    Progress,
    Reason,
    Status,
    TaskRecord,
    ToolCall,
    Verdict,
)
from perdure.sync._app import Handle
from perdure.sync._faces import Task, TaskFrames, Tasks
__all__ = [
    "Durable",
    "DurableFunction",
    "JournalCall",
    "JournalLine",
    "Outline",
    "Stopped",
    "ToolFunction",
    "Where",
    "register",
    "Attempt",
    "Change",
    "Checkpoint",
    "Config",
    "Level",
    "Page",
    "Pause",
    "Progress",
    "Reason",
    "Status",
    "TaskRecord",
    "ToolCall",
    "Verdict",
    "Handle",
    "Task",
    "TaskFrames",
    "Tasks",
]
