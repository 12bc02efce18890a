"""A durable function's task from start to end: start, app.run, retries, fork, rollback, carry-over, outcomes.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.lifecycle.app_run import carry_on_here, run_here, run_until_paused
from perdure._durable.lifecycle.line_carry_over import carry_over
from perdure._durable.lifecycle.outcomes import cancel
from perdure._durable.lifecycle.preparation import TaskPast, read_pasts
from perdure._durable.lifecycle.run_waits import Stopped
from perdure._durable.lifecycle.single_attempt import come_back
from perdure._durable.lifecycle.traced_attempt import make_attempt
from perdure._durable.lifecycle.task_fork import fork
from perdure._durable.lifecycle.task_handle import Handle, handle_on
from perdure._durable.lifecycle.task_rollback import keep_for_rollback
from perdure._durable.lifecycle.dry_runs import rehearse as rehearse_end, rehearse_fork
from perdure._durable.lifecycle.named_start import encode_call, start_by_name, start_encoded
from perdure._durable.lifecycle.task_start import Beginning, start, start_or_adopt
from perdure._durable.lifecycle import line_carry_over
__all__ = [
    "carry_on_here",
    "run_here",
    "run_until_paused",
    "carry_over",
    "cancel",
    "TaskPast",
    "read_pasts",
    "Stopped",
    "come_back",
    "make_attempt",
    "fork",
    "Handle",
    "handle_on",
    "keep_for_rollback",
    "rehearse_end",
    "rehearse_fork",
    "encode_call",
    "start_by_name",
    "start_encoded",
    "Beginning",
    "start",
    "start_or_adopt",
    "line_carry_over",
]
