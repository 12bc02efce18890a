"""Hold one SQLite connection for a task, in a process of its own."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {},
)
