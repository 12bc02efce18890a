"""The rules of `perdure lint`, for source code (by its syntax) and for stored tasks. lint runs no code it reads."""

from perdure.cli.lint.code import check_files
from perdure.cli.lint.findings import Finding
from perdure.cli.lint.ids import check_task_id
from perdure.cli.lint.stored import check_tasks

__all__ = ["Finding", "check_files", "check_task_id", "check_tasks"]
