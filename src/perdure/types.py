"""The types of what perdure gives back, for annotations, and `register` for types of your own that are stored."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable": (
            "Current",
            "Durable",
            "DurableFunction",
            "FunctionInfo",
            "Handle",
            "JournalCall",
            "JournalLine",
            "Outline",
            "Stopped",
            "ToolFunction",
            "Where",
        ),
        "perdure._ground.codec": ("register",),
        "perdure._model": (
            "Attempt",
            "Change",
            "Changes",
            "Checkpoint",
            "CheckpointInfo",
            "Config",
            "Counts",
            "Facets",
            "Diff",
            "Level",
            "Page",
            "Pause",
            "Progress",
            "Reason",
            "Status",
            "TaskFilter",
            "TaskRecord",
            "TaskSummary",
            "ToolCall",
            "Verdict",
        ),
        "perdure._tasks": ("Stored", "Task", "TaskFrames", "Tasks"),
        "perdure.memory.storage": ("Delete", "Put", "Storage"),
    },
)
