"""The types of what perdure gives back, for annotations, and `register` for types of your own that are stored.

Written by tools/make_doors.py from the table in types.py.
"""

from perdure._durable import (
    Durable,
    DurableFunction,
    Handle,
    JournalCall,
    JournalLine,
    Outline,
    Stopped,
    ToolFunction,
    Where,
)
from perdure._ground.codec import register
from perdure._model import (
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
from perdure._tasks import Task, TaskFrames, Tasks
__all__ = [
    "Durable",
    "DurableFunction",
    "Handle",
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
    "Task",
    "TaskFrames",
    "Tasks",
]
