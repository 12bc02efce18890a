"""The answers of an effect's `verify`, the exceptions its body can raise, and the records of effects.

The same as perdure.effects. Written by tools/make_sync.py.
"""

from __future__ import annotations

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure.effects": (
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
        ),
        "perdure.sync._faces": ("Effects",),
    },
)
