"""Recorded calls: the general walk, steps, retries, drawn values, and what runs once per task."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "call": ("Call", "Note", "cut", "cut_off", "never", "on_another_loop", "refuse_generator"),
        "current_task": ("Inside", "inside", "is_in_effect", "once", "running_effect", "stand_still"),
        "nondeterminism": ("ReplayFilter", "get_logger", "is_replaying", "now", "timeout"),
        "recorded_calls": ("Policy", "RecordedCall", "ask", "recorded_call", "walk", "walk_here"),
        "replay_tests": ("always_replay", "is_same_again", "replays_always"),
        "retry": ("Retry", "failed_try", "wait_until"),
        "step_walk": ("async_step", "sync_step"),
        "unit_calls": ("UnitCall", "unit_call"),
    },
)
