"""Inside a durable function: the time and chance, drawn once and the same in every replay.

`bind` gives a thread its own place in the journal. `get_logger` and `is_replaying` say things once: what was logged
before a crash is not logged again.
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.attempt": ("bind",),
        "perdure._durable.attempt.calls.nondeterminism": (
            "ReplayFilter",
            "get_logger",
            "is_replaying",
            "now",
            "random",
            "uuid4",
        ),
    },
)
