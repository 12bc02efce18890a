"""Checks that any worker can make for `pause.poll`, without replaying the function."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._tasks.pauses.checks": ("Described", "command", "file", "url"),
    },
)
