"""Plain functions and threads: calls that block, and where their coroutines run.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.attempt.blocking.blocking_calls import (
    Waits,
    as_async,
    as_async_pieces,
    each_of,
    here,
    inside_of,
    waited,
)
from perdure._durable.attempt.blocking.run_on_loop import Aside
from perdure._durable.attempt.blocking.threads import refuse_lost_thread, two_threads, watch_coroutines_of
from perdure._durable.attempt.blocking import threads
__all__ = [
    "Waits",
    "as_async",
    "as_async_pieces",
    "each_of",
    "here",
    "inside_of",
    "waited",
    "Aside",
    "refuse_lost_thread",
    "two_threads",
    "watch_coroutines_of",
    "threads",
]
