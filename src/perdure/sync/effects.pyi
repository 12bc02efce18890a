"""The answers of an effect's `verify`, the exceptions its body can raise, and the records of effects.

The same as perdure.effects. Written by tools/make_sync.py.

Written by tools/make_doors.py from the table in effects.py.
"""

from perdure.effects import (
    pg_probe,
    PastEffect,
    Choice,
    DID_NOT_HAPPEN,
    DidNotHappen,
    Effect,
    EffectRecord,
    Happened,
    MayHaveHappened,
    UNKNOWN,
    UncertainEffect,
    idempotency_headers,
)
from perdure.sync._faces import Effects
__all__ = [
    "pg_probe",
    "PastEffect",
    "Choice",
    "DID_NOT_HAPPEN",
    "DidNotHappen",
    "Effect",
    "EffectRecord",
    "Happened",
    "MayHaveHappened",
    "UNKNOWN",
    "UncertainEffect",
    "idempotency_headers",
    "Effects",
]
