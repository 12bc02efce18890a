"""One attempt at a durable function: its scopes, the recorded calls, delivery order, time and unwinding."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "attempt": (
            "Attempt",
            "LEASE_MS",
        ),
        "blocking_calls": (
            "Waits",
            "as_async",
            "as_async_pieces",
            "each_of",
            "here",
            "inside_of",
            "waited",
        ),
        "call": (
            "Call",
            "Note",
            "cut",
            "cut_off",
            "never",
            "on_another_loop",
            "poison",
            "refuse_generator",
        ),
        "call_stack": (
            "stack_here",
            "stack_of",
            "stacks_now",
        ),
        "current_task": (
            "Inside",
            "inside",
            "is_in_effect",
            "running_effect",
        ),
        "delivery_order": ("NOBODY",),
        "divergence_advice": ("advise_on_fork",),
        "driver": ("carry_out",),
        "external_pause": ("stand_still",),
        "line_origin": (
            "appended_before",
            "causes",
            "unrecorded",
            "with_appended",
            "with_origin",
        ),
        "loop_watchdog": (
            "LoopWatchdog",
            "Watched",
        ),
        "lost_lease": (
            "STOPPED",
            "find_lost",
            "stand_down",
            "stop",
        ),
        "nondeterminism": (
            "ReplayFilter",
            "get_logger",
            "is_replaying",
            "now",
            "timeout",
        ),
        "once_per_task": ("once",),
        "recorded_calls": (
            "Policy",
            "RecordedCall",
            "recorded_call",
            "walk",
            "walk_here",
        ),
        "replay_tests": (
            "always_replay",
            "is_same_again",
            "replays_always",
        ),
        "retry": (
            "Retry",
            "failed_try",
            "wait_until",
        ),
        "run_on_loop": ("Aside",),
        "scopes": (
            "Scope",
            "bind",
            "current",
            "current_attempt",
            "short_name",
            "whole_name",
        ),
        "step_walk": (
            "async_step",
            "sync_step",
        ),
        "threads": (
            "two_threads",
            "watch_coroutines_of",
        ),
        "unit_calls": (
            "UnitCall",
            "unit_call",
        ),
        "unwinding": (
            "Paused",
            "is_leaving",
            "making",
        ),
        "waiting_parents": (
            "only_waiting",
            "waiting",
        ),
    },
)
