"""Inside a durable function: stop for a typed reason, and go on with the answer.

    answer = await pause.approval("Charge 500?", expires="2d")
    await pause.wait(hours=24)

A paused task holds no process. Plain functions use perdure.sync.pause.
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.pauses.reasons": (
            "Approval",
            "approval",
            "callback",
            "input",
            "poll",
            "rate_limit",
            "task",
            "until",
            "wait",
            "yield_now",
        ),
        "perdure.errors": ("Rejected",),
    },
)
