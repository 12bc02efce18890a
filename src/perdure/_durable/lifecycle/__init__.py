"""A durable function's task from start to end: start, app.run, retries, fork, rollback, carry-over, outcomes."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "app_run": ("carry_on_here", "run_here", "run_until_paused"),
        "lines.line_carry_over": ("carry_over",),
        "ends.outcomes": ("cancel",),
        "preparation": ("TaskPast", "read_pasts"),
        "run_waits": ("Stopped",),
        "single_attempt": ("come_back",),
        "traced_attempt": ("make_attempt",),
        "lines.task_fork": ("fork",),
        "task_handle": ("Handle", "Outcome", "handle_on", "outcome_of", "value_of"),
        "lines.task_rollback": ("keep_for_rollback",),
        "lines.dry_runs": ("rehearse as rehearse_end", "rehearse_fork"),
        "named_start": ("encode_call", "start_by_name", "start_encoded"),
        "task_start": ("Beginning", "check_call", "start", "start_or_adopt"),
    },
    modules=("lines.line_carry_over",),
)
