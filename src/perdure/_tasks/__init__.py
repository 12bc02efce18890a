"""Execution memory: tasks, their checkpoints, pauses and ends, and keeping all of it in order."""

from perdure._tasks.audit import Audit, export_heads, verify
from perdure._tasks.doctor import Finding, examine
from perdure._tasks.gc import Report, collect, give_back_space
from perdure._tasks.leases import Hold, release_all
from perdure._tasks.leases import forget as forget_lease
from perdure._tasks.leases import release as release_lease
from perdure._tasks.leases import take as take_lease
from perdure._tasks.moves import move
from perdure._tasks.retention import Policy
from perdure._tasks.rotation import Rotation, keys_in_use, rotate
from perdure._tasks.task import Task
from perdure._tasks.tasks import Tasks

__all__ = [
    "Audit",
    "Finding",
    "Hold",
    "Policy",
    "Report",
    "Rotation",
    "Task",
    "Tasks",
    "collect",
    "examine",
    "export_heads",
    "forget_lease",
    "give_back_space",
    "keys_in_use",
    "move",
    "release_all",
    "release_lease",
    "rotate",
    "take_lease",
    "verify",
]
