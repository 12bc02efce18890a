"""Time in a durable function: timers, wake-ups, and the watch over its event loop.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.attempt.timing.loop_watchdog import LoopWatchdog, Watched
from perdure._durable.attempt.timing.ready_callbacks import ready_calls
from perdure._durable.attempt.timing.replay_timers import Timers
from perdure._durable.attempt.timing.wake_ups import Alarms
from perdure._durable.attempt.timing import unrecorded_wake_ups
from perdure._durable.attempt.timing import wake_ups
__all__ = [
    "LoopWatchdog",
    "Watched",
    "ready_calls",
    "Timers",
    "Alarms",
    "unrecorded_wake_ups",
    "wake_ups",
]
