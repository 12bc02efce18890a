"""Claim tasks: which one is next, and whether its queue has room."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "claimer": (
            "ClaimedTask",
            "Claimer",
            "Observer",
        ),
        "queues": (
            "Queue",
            "Queues",
        ),
    },
)
