"""Take a task to another machine in one file."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "task_bundle": ("Exported", "Imported", "bring_in", "export"),
        "unused_cuts": ("keys_of_cuts", "tidy_cuts"),
    },
)
