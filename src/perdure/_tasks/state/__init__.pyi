"""A task's state as bytes: snapshots, deltas between them, and changes that a writer has not seen.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._tasks.state.recent_snapshots import keep_recent, newest
from perdure._tasks.state.snapshots import NO_FRAME, Frame, Snapshot, as_tool_call
from perdure._tasks.state import snapshots
from perdure._tasks.state import unseen_changes
__all__ = [
    "keep_recent",
    "newest",
    "NO_FRAME",
    "Frame",
    "Snapshot",
    "as_tool_call",
    "snapshots",
    "unseen_changes",
]
