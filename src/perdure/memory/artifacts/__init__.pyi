"""A task's own files, and commits of them.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.memory.artifacts.recorded_files import RecordedFile
from perdure.memory.artifacts.task_files import Artifact
from perdure.memory.artifacts import git_commits
from perdure.memory.artifacts import task_files
__all__ = [
    "RecordedFile",
    "Artifact",
    "git_commits",
    "task_files",
]
