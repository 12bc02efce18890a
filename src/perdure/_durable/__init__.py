"""Durable functions: finished steps never run again, effects are never silently repeated."""

from perdure._durable.effects import DID_NOT_HAPPEN, UNKNOWN, DidNotHappen, Effect, Happened, effect, idempotency_key
from perdure._durable.execute import run_here
from perdure._durable.functions import DurableFunction, durable, step
from perdure._durable.pauses import pause
from perdure._durable.retry import Retry
from perdure._durable.scopes import bind

__all__ = [
    "DID_NOT_HAPPEN",
    "UNKNOWN",
    "DidNotHappen",
    "DurableFunction",
    "Effect",
    "Happened",
    "Retry",
    "bind",
    "durable",
    "effect",
    "idempotency_key",
    "pause",
    "run_here",
    "step",
]
