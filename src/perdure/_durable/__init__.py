"""Durable functions: recorded steps never run again, effects are never silently repeated.

What a function is made with is imported at once; what carries it out, and the rest, when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from perdure._durable.effect_call import (
    DID_NOT_HAPPEN,
    UNKNOWN,
    DidNotHappen,
    Happened,
    idempotency_headers,
    idempotency_key,
)
from perdure._durable.effects import Effect, effect
from perdure._durable.functions import Durable, DurableFunction, durable, known_functions, step
from perdure._durable.inside import Inside, inside, is_in_effect
from perdure._durable.retry import Retry
from perdure._durable.run import Run
from perdure._durable.scopes import bind, current_run
from perdure._durable.settling import GIVEN_UP_AT_WORK, is_at_work
from perdure._durable.unit_calls import UnitCall, unit_call
from perdure._durable.versions import PastEffect, function_for, known_versions, patched

if TYPE_CHECKING:
    from perdure._durable import loops, plain, scheduling, triggering
    from perdure._durable.block_entries import Block
    from perdure._durable.blocking import Waits, as_async, inside_of, waited
    from perdure._durable.call_stack import stacks_now
    from perdure._durable.carrying import carry_over
    from perdure._durable.doing_once import once
    from perdure._durable.endings import cancel
    from perdure._durable.execute import carry_on_here, come_back, one_pass, run_here, run_until_paused
    from perdure._durable.forking import fork
    from perdure._durable.framing import frames
    from perdure._durable.inbox import Choice, Inbox, UncertainEffect
    from perdure._durable.instructions import instruction
    from perdure._durable.journal_reading import require_all_entries
    from perdure._durable.ledger import EffectRecord
    from perdure._durable.listing import JournalLine, journal_of
    from perdure._durable.lost_blocks import BlocksOnRecord, Commit, belongs_to, note_commit, run_again
    from perdure._durable.marking import plain_progress, progress
    from perdure._durable.memory_calls import (
        LayerRecord,
        has_answers,
        is_on_record,
        memory_call,
        own_store,
        unrecorded,
    )
    from perdure._durable.models import ModelCall, Price, Usage, model_call
    from perdure._durable.open_calls import CallFrame, shown_value
    from perdure._durable.pauses import Approval, pause
    from perdure._durable.places import only_waiting
    from perdure._durable.prepare import Found, read_pasts
    from perdure._durable.pumps import Marker, Prefix
    from perdure._durable.readers import (
        Account,
        StreamPart,
        account_of,
        follow_stream,
        partial_streams,
        read_stream,
        stored_bytes,
    )
    from perdure._durable.reducing import Do, Reducer
    from perdure._durable.rolling import keep_for_rollback
    from perdure._durable.savepoints import checkpoint
    from perdure._durable.savings import Savings, savings_in
    from perdure._durable.scheduling import Schedule, ScheduleDraft, Schedules, Tick, draft, scheduled
    from perdure._durable.signalling import signals
    from perdure._durable.sources import ReplayFilter, get_logger, is_replaying, recorded, timeout
    from perdure._durable.spans import span
    from perdure._durable.spending import Budget, Spent, budgets
    from perdure._durable.starting import Beginning, Handle, handle_on, start_or_adopt
    from perdure._durable.stating import state
    from perdure._durable.still import stand_still
    from perdure._durable.stopped import Stopped
    from perdure._durable.streams import Stream, stream
    from perdure._durable.switches import KillSwitch, Switch
    from perdure._durable.testing_mode import always_replay
    from perdure._durable.transactions import pg_probe, transaction
    from perdure._durable.triggering import Events, IncomingEvent, Received, TriggerDraft, Triggers
    from perdure._durable.whereabouts import Where, where, who_works_on
    from perdure._durable.wishes import stop_soon

_HOMES = {
    "blocking": ("Waits", "as_async", "inside_of", "waited"),
    "call_stack": ("stacks_now",),
    "carrying": ("carry_over",),
    "doing_once": ("once",),
    "endings": ("cancel",),
    "execute": ("carry_on_here", "come_back", "one_pass", "run_here", "run_until_paused"),
    "prepare": ("Found", "read_pasts"),
    "forking": ("fork",),
    "framing": ("frames",),
    "inbox": ("Choice", "Inbox", "UncertainEffect"),
    "instructions": ("instruction",),
    "ledger": ("EffectRecord",),
    "journal_reading": ("require_all_entries",),
    "listing": ("JournalLine", "journal_of"),
    "block_entries": ("Block",),
    "lost_blocks": ("BlocksOnRecord", "Commit", "belongs_to", "note_commit", "run_again"),
    "marking": ("plain_progress", "progress"),
    "memory_calls": ("LayerRecord", "has_answers", "is_on_record", "memory_call", "own_store", "unrecorded"),
    "models": ("ModelCall", "Price", "Usage", "model_call"),
    "open_calls": ("CallFrame", "shown_value"),
    "pauses": ("Approval", "pause"),
    "places": ("only_waiting",),
    "pumps": ("Marker", "Prefix"),
    "readers": (
        "Account",
        "StreamPart",
        "account_of",
        "follow_stream",
        "partial_streams",
        "read_stream",
        "stored_bytes",
    ),
    "reducing": ("Do", "Reducer"),
    "rolling": ("keep_for_rollback",),
    "savepoints": ("checkpoint",),
    "savings": ("Savings", "savings_in"),
    "scheduling": ("Schedule", "ScheduleDraft", "Schedules", "Tick", "draft", "scheduled"),
    "signalling": ("signals",),
    "sources": ("ReplayFilter", "get_logger", "is_replaying", "recorded", "timeout"),
    "spans": ("span",),
    "spending": ("Budget", "Spent", "budgets"),
    "starting": ("Beginning", "Handle", "handle_on", "start_or_adopt"),
    "stating": ("state",),
    "still": ("stand_still",),
    "stopped": ("Stopped",),
    "streams": ("Stream", "stream"),
    "switches": ("KillSwitch", "Switch"),
    "testing_mode": ("always_replay",),
    "transactions": ("pg_probe", "transaction"),
    "triggering": ("Events", "IncomingEvent", "Received", "TriggerDraft", "Triggers"),
    "whereabouts": ("Where", "where", "who_works_on"),
    "wishes": ("stop_soon",),
}
_MODULES = ("loops", "plain", "scheduling", "triggering")
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "DID_NOT_HAPPEN",
    "UNKNOWN",
    "Account",
    "GIVEN_UP_AT_WORK",
    "is_at_work",
    "Approval",
    "Beginning",
    "Budget",
    "Choice",
    "DidNotHappen",
    "Do",
    "Durable",
    "DurableFunction",
    "Effect",
    "EffectRecord",
    "require_all_entries",
    "Events",
    "Handle",
    "Happened",
    "Inbox",
    "IncomingEvent",
    "Inside",
    "JournalLine",
    "KillSwitch",
    "LayerRecord",
    "Marker",
    "ModelCall",
    "PastEffect",
    "Prefix",
    "Price",
    "Received",
    "ReplayFilter",
    "Reducer",
    "Retry",
    "Run",
    "Savings",
    "Schedule",
    "ScheduleDraft",
    "Schedules",
    "Spent",
    "Stopped",
    "Stream",
    "StreamPart",
    "Tick",
    "TriggerDraft",
    "Triggers",
    "Switch",
    "UncertainEffect",
    "Usage",
    "Waits",
    "Where",
    "account_of",
    "always_replay",
    "as_async",
    "bind",
    "budgets",
    "cancel",
    "carry_on_here",
    "come_back",
    "carry_over",
    "draft",
    "current_run",
    "checkpoint",
    "durable",
    "effect",
    "follow_stream",
    "frames",
    "fork",
    "function_for",
    "handle_on",
    "idempotency_headers",
    "has_answers",
    "idempotency_key",
    "inside",
    "inside_of",
    "is_in_effect",
    "is_on_record",
    "instruction",
    "journal_of",
    "keep_for_rollback",
    "known_functions",
    "known_versions",
    "loops",
    "memory_call",
    "model_call",
    "once",
    "one_pass",
    "Found",
    "read_pasts",
    "only_waiting",
    "own_store",
    "pause",
    "plain",
    "plain_progress",
    "progress",
    "partial_streams",
    "read_stream",
    "run_here",
    "run_until_paused",
    "scheduled",
    "scheduling",
    "shown_value",
    "signals",
    "span",
    "start_or_adopt",
    "state",
    "step",
    "stacks_now",
    "stand_still",
    "stop_soon",
    "stored_bytes",
    "stream",
    "waited",
    "where",
    "recorded",
    "is_replaying",
    "get_logger",
    "timeout",
    "patched",
    "pg_probe",
    "transaction",
    "triggering",
    "unrecorded",
    "CallFrame",
    "Block",
    "BlocksOnRecord",
    "Commit",
    "UnitCall",
    "belongs_to",
    "note_commit",
    "run_again",
    "unit_call",
    "savings_in",
    "who_works_on",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value
