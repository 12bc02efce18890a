"""A task's state and checkpoints: written, merged, listed, compared, rolled back."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "autosave": ("saving",),
        "checkpoint_write": (
            "all_carried",
            "carried",
            "carry",
            "has_carried",
            "put",
            "read_own_state",
            "read_state_at",
            "save_working_state",
            "store_once",
        ),
        "checkpoint_reader": ("CheckpointPart", "Checkpoints", "value_at"),
        "history": ("KeptEntries", "LeftToWorker", "fork_columns", "read_checkpoint"),
        "list_append": ("append", "causes_of"),
        "retention": ("Policy",),
    },
    modules=("checkpoint_write", "history", "list_append", "retention"),
)
