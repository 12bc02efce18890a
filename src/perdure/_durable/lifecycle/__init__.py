"""A durable function's task from start to end: start, app.run, retries, fork, rollback, carry-over, outcomes."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "app_run": ("carry_on_here", "run_here", "run_until_paused"),
        "line_carry_over": ("carry_over",),
        "outcomes": ("cancel",),
        "preparation": ("TaskPast", "read_pasts"),
        "run_waits": ("Stopped",),
        "single_attempt": ("come_back",),
        "traced_attempt": ("make_attempt",),
        "task_fork": ("fork",),
        "task_handle": ("Handle", "handle_on"),
        "task_rollback": ("keep_for_rollback",),
        "dry_runs": ("rehearse as rehearse_end", "rehearse_fork"),
        "named_start": ("encode_call", "start_by_name", "start_encoded"),
        "task_start": ("Beginning", "start", "start_or_adopt"),
    },
    modules=("line_carry_over",),
)
