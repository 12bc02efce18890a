"""How a durable function's task ends, or is tried again: outcomes, failures, attempts without a result."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "attempt_ends": ("end_attempt", "is_cancelled_from_outside", "pause_diverged"),
        "failure_note": ("add_failure_note",),
    },
    modules=("outcomes",),
)
