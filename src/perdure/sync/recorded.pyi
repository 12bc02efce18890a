"""Inside a durable function: the time and chance, drawn once and the same in every replay.

The same as perdure.recorded. Written by tools/make_sync.py.

Written by tools/make_doors.py from the table in recorded.py.
"""

from perdure.recorded import ReplayFilter, get_logger, is_replaying, now, random, uuid4
__all__ = [
    "ReplayFilter",
    "get_logger",
    "is_replaying",
    "now",
    "random",
    "uuid4",
]
