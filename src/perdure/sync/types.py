"""The types of what perdure gives back, for annotations, and `register` for types of your own that are stored.

The same as perdure.types. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure.types": (
            "Current",
            "Durable",
            "DurableFunction",
            "FunctionInfo",
            "JournalCall",
            "JournalLine",
            "Outline",
            "Stopped",
            "ToolFunction",
            "Where",
            "register",
            "Attempt",
            "CallbackToken",
            "Change",
            "Changes",
            "Checkpoint",
            "CheckpointInfo",
            "Config",
            "Counts",
            "Facets",
            "Diff",
            "InboxAnswer",
            "InboxItem",
            "InboxKind",
            "Level",
            "Otherwise",
            "Page",
            "Pause",
            "PauseKind",
            "Progress",
            "Reason",
            "Situation",
            "Status",
            "TaskFilter",
            "TaskRecord",
            "TaskSummary",
            "ToolCall",
            "UncertainCall",
            "Verdict",
            "Wait",
            "Way",
            "Stored",
            "Delete",
            "Put",
        ),
        "perdure.sync._app": ("Handle",),
        "perdure.sync._faces": ("Inbox", "Task", "TaskFrames", "Tasks", "Storage"),
    },
)
