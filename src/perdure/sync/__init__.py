"""The blocking face of perdure: the same names and modules, without await.

It works in plain scripts and threads, and in a notebook whose event loop is running: the calling thread does the
call, without a loop. Inside a plain durable function the calls that an async one awaits are waited for.

Modules and classes whose names do not begin with an underscore follow the async ones: tools/make_sync.py writes them.
"""

from perdure._ground.lazy_door import lazy_door


def _missing(name: str) -> Exception:
    from perdure._moved import missing_name

    return missing_name(__name__, name)


__getattr__ = lazy_door(
    __name__,
    {
        "_app": ("Perdure",),
        "_calls": ("carry_over", "span", "stream", "timeout"),
        "perdure._durable": (
            "Retry",
            "call",
            "current",
            "durable",
            "effect",
            "idempotency_key",
            "model_call",
            "patched",
            "step",
            "transaction",
        ),
        "perdure._runtime": ("Secret",),
    },
    modules=(
        "automation",
        "budgets",
        "checkpoint",
        "checks",
        "effects",
        "frames",
        "loops",
        "memory",
        "models",
        "pause",
        "perdure.errors",
        "progress",
        "recorded",
        "runtime",
        "signals",
        "state",
        "streams",
        "types",
    ),
    missing=_missing,
)
