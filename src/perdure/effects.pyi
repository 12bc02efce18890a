"""The answers of an effect's `verify`, the exceptions its body can raise, and the records of effects.

Written by tools/make_doors.py from the table in effects.py.
"""

from perdure._durable.databases import pg_probe
from perdure._durable.declare import PastEffect
from perdure._durable.effects import (
    Choice,
    DID_NOT_HAPPEN,
    DidNotHappen,
    Effect,
    EffectRecord,
    Happened,
    Effects,
    MayHaveHappened,
    UNKNOWN,
    UncertainEffect,
    idempotency_headers,
)
__all__ = [
    "pg_probe",
    "PastEffect",
    "Choice",
    "DID_NOT_HAPPEN",
    "DidNotHappen",
    "Effect",
    "EffectRecord",
    "Happened",
    "Effects",
    "MayHaveHappened",
    "UNKNOWN",
    "UncertainEffect",
    "idempotency_headers",
]
