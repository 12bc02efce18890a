"""Claim tasks: which one is next, and whether its queue has room.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._worker.claims.claimer import ClaimedTask, Claimer, Observer
from perdure._worker.claims.queues import Queue, Queues
__all__ = [
    "ClaimedTask",
    "Claimer",
    "Observer",
    "Queue",
    "Queues",
]
