"""The answers of an effect's `verify`, the exceptions its body can raise, and the records of effects."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.databases": ("pg_probe",),
        "perdure._durable.declare": ("PastEffect",),
        "perdure._durable.effects": (
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
        ),
    },
)
