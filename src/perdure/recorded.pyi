"""Inside a durable function: the time and chance, drawn once and the same in every replay.

`is_replaying` and `get_logger` say things once: what was logged before a crash is not logged again.

Written by tools/make_doors.py from the table in recorded.py.
"""

from perdure._durable.attempt.calls.nondeterminism import ReplayFilter, get_logger, is_replaying, now, random, uuid4
__all__ = [
    "ReplayFilter",
    "get_logger",
    "is_replaying",
    "now",
    "random",
    "uuid4",
]
