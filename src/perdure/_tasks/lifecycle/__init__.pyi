"""A task's status: lawful moves, dependencies, drafts, time limits.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.lifecycle.dependency_outcomes import fail_circle, settle
from perdure._tasks.lifecycle.failure import error_of, fail
from perdure._tasks.lifecycle.status_moves import explain, move
from perdure._tasks.lifecycle.time_limit import check_time, fail_overdue, take_lease
from perdure._tasks.lifecycle import status_moves
__all__ = [
    "fail_circle",
    "settle",
    "error_of",
    "fail",
    "explain",
    "move",
    "check_time",
    "fail_overdue",
    "take_lease",
    "status_moves",
]
