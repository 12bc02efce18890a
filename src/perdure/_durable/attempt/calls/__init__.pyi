"""Recorded calls: the general walk, steps, retries, drawn values, and what runs once per task.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.attempt.calls.call import Call, Note, cut, cut_off, never, on_another_loop, refuse_generator
from perdure._durable.attempt.calls.current_task import Inside, inside, is_in_effect, once, running_effect, stand_still
from perdure._durable.attempt.calls.nondeterminism import ReplayFilter, get_logger, is_replaying, now, timeout
from perdure._durable.attempt.calls.recorded_calls import Policy, RecordedCall, ask, recorded_call, walk, walk_here
from perdure._durable.attempt.calls.replay_tests import always_replay, is_same_again, replays_always
from perdure._durable.attempt.calls.retry import Retry, failed_try, wait_until
from perdure._durable.attempt.calls.step_walk import async_step, sync_step
from perdure._durable.attempt.calls.unit_calls import UnitCall, unit_call
__all__ = [
    "Call",
    "Note",
    "cut",
    "cut_off",
    "never",
    "on_another_loop",
    "refuse_generator",
    "Inside",
    "inside",
    "is_in_effect",
    "once",
    "running_effect",
    "stand_still",
    "ReplayFilter",
    "get_logger",
    "is_replaying",
    "now",
    "timeout",
    "Policy",
    "RecordedCall",
    "ask",
    "recorded_call",
    "walk",
    "walk_here",
    "always_replay",
    "is_same_again",
    "replays_always",
    "Retry",
    "failed_try",
    "wait_until",
    "async_step",
    "sync_step",
    "UnitCall",
    "unit_call",
]
