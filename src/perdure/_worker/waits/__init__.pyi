"""Resume or start tasks: timers, polls, awaited tasks, dependencies, schedules, triggers.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._worker.waits.awaited_tasks import AwaitedTasks
from perdure._worker.waits.dependencies import Dependencies
from perdure._worker.waits.pollers import Pollers
from perdure._worker.waits.schedules import Schedules
from perdure._worker.waits.timers import Timers
from perdure._worker.waits.triggers import Triggers
__all__ = [
    "AwaitedTasks",
    "Dependencies",
    "Pollers",
    "Schedules",
    "Timers",
    "Triggers",
]
