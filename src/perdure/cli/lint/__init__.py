"""What `perdure lint` looks for: in code by its syntax, in stored tasks by their records. Runs nothing it reads."""

from perdure.cli.lint.code import check_files
from perdure.cli.lint.findings import Finding
from perdure.cli.lint.ids import check_task_id
from perdure.cli.lint.stored import check_tasks

__all__ = ["Finding", "check_files", "check_task_id", "check_tasks"]
