"""perdure keeps long-running agents going through crashes, deploys, closed laptops and moved hosts.

Each name is imported when it is first used, so that `import perdure` costs next to nothing.
"""

from perdure._ground.lazy_door import lazy_door

__version__ = "0.1.0"


def _missing(name: str) -> Exception:
    from perdure._moved import missing_name

    return missing_name(__name__, name)


__getattr__ = lazy_door(
    __name__,
    {
        "_app": ("Perdure",),
        "_durable": (
            "Retry",
            "call",
            "carry_over",
            "current",
            "durable",
            "effect",
            "idempotency_key",
            "model_call",
            "patched",
            "span",
            "step",
            "stream",
            "timeout",
            "transaction",
        ),
        "_runtime": ("Secret",),
    },
    modules=(
        "automation",
        "budgets",
        "checkpoint",
        "checks",
        "effects",
        "errors",
        "frames",
        "loops",
        "memory",
        "models",
        "pause",
        "progress",
        "recorded",
        "runtime",
        "signals",
        "state",
        "streams",
        "sync",
        "testing",
        "types",
    ),
    missing=_missing,
)
