"""Values kept beside tasks: memory, named values, thought frames, handlers' positions.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.values.handlers import (
    Handler,
    Handlers,
    HandlerRecord,
    Undelivered,
    events_after,
    handlers_of,
    has_had,
    make_handler,
    undelivered,
)
from perdure._tasks.values.memory_values import Stored, bound_to, drop_expired
from perdure._tasks.values.named_values import Kept, Shelf
from perdure._tasks.values.task_frames import TaskFrames, open_frames
from perdure._tasks.values import memory_values
__all__ = [
    "Handler",
    "Handlers",
    "HandlerRecord",
    "Undelivered",
    "events_after",
    "handlers_of",
    "has_had",
    "make_handler",
    "undelivered",
    "Stored",
    "bound_to",
    "drop_expired",
    "Kept",
    "Shelf",
    "TaskFrames",
    "open_frames",
    "memory_values",
]
