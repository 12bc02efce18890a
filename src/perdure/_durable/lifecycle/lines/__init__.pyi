"""New lines of a journal: fork, rollback, carry-over and upgrade, and what each would do.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.lifecycle.lines.line_carry_over import is_carried, next_line
from perdure._durable.lifecycle.lines.task_rollback import fulfil_rollback
from perdure._durable.lifecycle.lines.upgrades import fitting_version, function_of_task
__all__ = [
    "is_carried",
    "next_line",
    "fulfil_rollback",
    "fitting_version",
    "function_of_task",
]
