"""Inside a durable function: the time and chance, drawn once and the same in every replay.

`bind` gives a thread its own place in the journal. `get_logger` and `is_replaying` say things once: what was logged
before a crash is not logged again.

Written by tools/make_doors.py from the table in recorded.py.
"""

from perdure._durable.attempt import bind
from perdure._durable.attempt.calls.nondeterminism import ReplayFilter, get_logger, is_replaying, now, random, uuid4
__all__ = [
    "bind",
    "ReplayFilter",
    "get_logger",
    "is_replaying",
    "now",
    "random",
    "uuid4",
]
