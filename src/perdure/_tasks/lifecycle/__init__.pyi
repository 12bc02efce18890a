"""A task's status: lawful moves, dependencies, drafts, time limits.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.lifecycle.dependencies import (
    Blocked,
    blocked_by,
    blockers,
    dependencies_of,
    has_to_wait,
    read_blocked,
)
from perdure._tasks.lifecycle.dependency_outcomes import fail_circle, settle
from perdure._tasks.lifecycle.status_moves import explain, move
from perdure._tasks.lifecycle.task_drafts import begin, begun, draft_of
from perdure._tasks.lifecycle.time_limit import config_of, deadline_of, fail_overdue
from perdure._tasks.lifecycle import status_moves
from perdure._tasks.lifecycle import task_drafts
__all__ = [
    "Blocked",
    "blocked_by",
    "blockers",
    "dependencies_of",
    "has_to_wait",
    "read_blocked",
    "fail_circle",
    "settle",
    "explain",
    "move",
    "begin",
    "begun",
    "draft_of",
    "config_of",
    "deadline_of",
    "fail_overdue",
    "status_moves",
    "task_drafts",
]
