"""A task's status: lawful moves, dependencies, drafts, time limits."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "dependency_outcomes": ("fail_circle", "settle"),
        "failure": ("error_of", "fail"),
        "status_moves": ("explain", "move"),
        "time_limit": ("check_time", "fail_overdue", "take_lease"),
    },
    modules=("status_moves",),
)
