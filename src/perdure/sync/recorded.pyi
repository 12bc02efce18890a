"""Inside a durable function: the time and chance, drawn once and the same in every replay.

The same as perdure.recorded. Written by tools/make_sync.py.

Written by tools/make_doors.py from the table in recorded.py.
"""

from perdure.recorded import bind, ReplayFilter, get_logger, is_replaying, now, random, uuid4
__all__ = [
    "bind",
    "ReplayFilter",
    "get_logger",
    "is_replaying",
    "now",
    "random",
    "uuid4",
]
