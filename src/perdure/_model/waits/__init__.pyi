"""What a task waits for: pauses, questions, tokens, schedules and triggers, and how that is told.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._model.waits.pause import Pause, REASONS, Reason
__all__ = [
    "Pause",
    "REASONS",
    "Reason",
]
