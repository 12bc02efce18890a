"""Effects: declared, walked from intent to outcome, settled when uncertain, undone.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.effects.calls_on_the_spot import Current, call, current
from perdure._durable.effects.declaration import (
    DID_NOT_HAPPEN,
    DidNotHappen,
    EffectCall,
    Happened,
    MayHaveHappened,
    UNKNOWN,
    home_of,
    idempotency_headers,
    idempotency_key,
    remember,
)
from perdure._durable.effects.effect_decorator import Effect, effect
from perdure._durable.effects.effect_walk import Walk
from perdure._durable.effects.ledger import Account, EffectRecord, UNDO, accounts, not_known_to, read_ledger, shown_of
from perdure._durable.effects.settlement import GIVEN_UP_AT_WORK, KNOWN, is_at_work, may_run_until
from perdure._durable.effects.uncertain_effects import Choice, Effects, UncertainEffect
from perdure._durable.effects.undo import failure_of, note_failure, take_back, unknown_here
__all__ = [
    "Current",
    "call",
    "current",
    "DID_NOT_HAPPEN",
    "DidNotHappen",
    "EffectCall",
    "Happened",
    "MayHaveHappened",
    "UNKNOWN",
    "home_of",
    "idempotency_headers",
    "idempotency_key",
    "remember",
    "Effect",
    "effect",
    "Walk",
    "Account",
    "EffectRecord",
    "UNDO",
    "accounts",
    "not_known_to",
    "read_ledger",
    "shown_of",
    "GIVEN_UP_AT_WORK",
    "KNOWN",
    "is_at_work",
    "may_run_until",
    "Choice",
    "Effects",
    "UncertainEffect",
    "failure_of",
    "note_failure",
    "take_back",
    "unknown_here",
]
