"""A task's state as bytes: snapshots, deltas between them, and changes that a writer has not seen."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "recent_snapshots": ("keep_recent", "newest"),
        "snapshots": ("NO_FRAME", "Frame", "Snapshot", "as_tool_call"),
    },
    modules=("snapshots", "unseen_changes"),
)
