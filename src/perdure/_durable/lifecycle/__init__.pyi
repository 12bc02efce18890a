"""A durable function's task from start to end: start, app.run, retries, fork, rollback, carry-over, outcomes.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.lifecycle.app_run import carry_on_here, run_here, run_until_paused
from perdure._durable.lifecycle.lines.line_carry_over import carry_over
from perdure._durable.lifecycle.ends.outcomes import cancel
from perdure._durable.lifecycle.preparation import TaskPast, read_pasts
from perdure._durable.lifecycle.run_waits import Stopped
from perdure._durable.lifecycle.single_attempt import come_back
from perdure._durable.lifecycle.traced_attempt import make_attempt
from perdure._durable.lifecycle.lines.task_fork import fork
from perdure._durable.lifecycle.task_handle import Handle, Outcome, handle_on, outcome_of, value_of
from perdure._durable.lifecycle.lines.task_rollback import keep_for_rollback
from perdure._durable.lifecycle.lines.dry_runs import rehearse as rehearse_end, rehearse_fork
from perdure._durable.lifecycle.named_start import encode_call, start_by_name, start_encoded
from perdure._durable.lifecycle.task_start import Beginning, check_call, start, start_or_adopt
from perdure._durable.lifecycle.lines import line_carry_over
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
    "Outcome",
    "handle_on",
    "outcome_of",
    "value_of",
    "keep_for_rollback",
    "rehearse_end",
    "rehearse_fork",
    "encode_call",
    "start_by_name",
    "start_encoded",
    "Beginning",
    "check_call",
    "start",
    "start_or_adopt",
    "line_carry_over",
]
