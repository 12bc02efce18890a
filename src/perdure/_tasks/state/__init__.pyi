"""A task's state as bytes: snapshots, deltas between them, and changes that a writer has not seen.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.state.snapshots import NO_FRAME, Frame, Snapshot
from perdure._tasks.state import snapshots
from perdure._tasks.state import unseen_changes
__all__ = [
    "NO_FRAME",
    "Frame",
    "Snapshot",
    "snapshots",
    "unseen_changes",
]
