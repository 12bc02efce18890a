"""Execution memory: tasks, their checkpoints, pauses and ends."""

from perdure._tasks.leases import release_all
from perdure._tasks.task import Task
from perdure._tasks.tasks import Tasks

__all__ = ["Task", "Tasks", "release_all"]
