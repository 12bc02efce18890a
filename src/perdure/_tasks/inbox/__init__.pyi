"""The inbox: everything in a namespace that waits for a person, and deciding it.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.inbox.inbox import Inbox
from perdure._tasks.inbox.pause_ids import is_pause_id
__all__ = [
    "Inbox",
    "is_pause_id",
]
