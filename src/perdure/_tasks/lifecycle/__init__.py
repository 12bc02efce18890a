"""A task's status: lawful moves, dependencies, drafts, time limits."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "dependencies": (
            "Blocked",
            "blocked_by",
            "blockers",
            "dependencies_of",
            "has_to_wait",
            "read_blocked",
        ),
        "dependency_outcomes": (
            "fail_circle",
            "settle",
        ),
        "status_moves": (
            "explain",
            "move",
        ),
        "task_drafts": (
            "begin",
            "begun",
            "draft_of",
        ),
        "time_limit": (
            "config_of",
            "deadline_of",
            "fail_overdue",
        ),
    },
    modules=(
        "status_moves",
        "task_drafts",
    ),
)
