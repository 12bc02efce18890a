"""A task's state as bytes: snapshots, deltas between them, and changes that a writer has not seen."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "snapshots": ("NO_FRAME", "Frame", "Snapshot"),
    },
    modules=("snapshots", "unseen_changes"),
)
