"""How a durable function's task ends, or is tried again: outcomes, failures, attempts without a result.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.lifecycle.ends.attempt_ends import end_attempt, is_cancelled_from_outside, pause_diverged
from perdure._durable.lifecycle.ends.failure_note import add_failure_note
from perdure._durable.lifecycle.ends import outcomes
__all__ = [
    "end_attempt",
    "is_cancelled_from_outside",
    "pause_diverged",
    "add_failure_note",
    "outcomes",
]
