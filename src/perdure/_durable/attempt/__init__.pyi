"""One attempt at a durable function: its scopes, the recorded calls, delivery order, time and unwinding.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.attempt.attempt import Attempt, LEASE_MS
from perdure._durable.attempt.blocking_calls import Waits, as_async, as_async_pieces, each_of, here, inside_of, waited
from perdure._durable.attempt.call import Call, Note, cut, cut_off, never, on_another_loop, poison, refuse_generator
from perdure._durable.attempt.call_stack import stack_here, stack_of, stacks_now
from perdure._durable.attempt.current_task import Inside, inside, is_in_effect, running_effect
from perdure._durable.attempt.delivery_order import NOBODY
from perdure._durable.attempt.divergence_advice import advise_on_fork
from perdure._durable.attempt.driver import carry_out
from perdure._durable.attempt.external_pause import stand_still
from perdure._durable.attempt.line_origin import appended_before, causes, unrecorded, with_appended, with_origin
from perdure._durable.attempt.loop_watchdog import LoopWatchdog, Watched
from perdure._durable.attempt.lost_lease import STOPPED, find_lost, stand_down, stop
from perdure._durable.attempt.nondeterminism import ReplayFilter, get_logger, is_replaying, now, timeout
from perdure._durable.attempt.once_per_task import once
from perdure._durable.attempt.recorded_calls import Policy, RecordedCall, recorded_call, walk, walk_here
from perdure._durable.attempt.replay_tests import always_replay, is_same_again, replays_always
from perdure._durable.attempt.retry import Retry, failed_try, wait_until
from perdure._durable.attempt.run_on_loop import Aside
from perdure._durable.attempt.scopes import Scope, bind, current, current_attempt, short_name, whole_name
from perdure._durable.attempt.step_walk import async_step, sync_step
from perdure._durable.attempt.threads import two_threads, watch_coroutines_of
from perdure._durable.attempt.unit_calls import UnitCall, unit_call
from perdure._durable.attempt.unwinding import Paused, is_leaving, making
from perdure._durable.attempt.waiting_parents import only_waiting, waiting
__all__ = [
    "Attempt",
    "LEASE_MS",
    "Waits",
    "as_async",
    "as_async_pieces",
    "each_of",
    "here",
    "inside_of",
    "waited",
    "Call",
    "Note",
    "cut",
    "cut_off",
    "never",
    "on_another_loop",
    "poison",
    "refuse_generator",
    "stack_here",
    "stack_of",
    "stacks_now",
    "Inside",
    "inside",
    "is_in_effect",
    "running_effect",
    "NOBODY",
    "advise_on_fork",
    "carry_out",
    "stand_still",
    "appended_before",
    "causes",
    "unrecorded",
    "with_appended",
    "with_origin",
    "LoopWatchdog",
    "Watched",
    "STOPPED",
    "find_lost",
    "stand_down",
    "stop",
    "ReplayFilter",
    "get_logger",
    "is_replaying",
    "now",
    "timeout",
    "once",
    "Policy",
    "RecordedCall",
    "recorded_call",
    "walk",
    "walk_here",
    "always_replay",
    "is_same_again",
    "replays_always",
    "Retry",
    "failed_try",
    "wait_until",
    "Aside",
    "Scope",
    "bind",
    "current",
    "current_attempt",
    "short_name",
    "whole_name",
    "async_step",
    "sync_step",
    "two_threads",
    "watch_coroutines_of",
    "UnitCall",
    "unit_call",
    "Paused",
    "is_leaving",
    "making",
    "only_waiting",
    "waiting",
]
