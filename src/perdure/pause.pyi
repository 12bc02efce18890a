"""Inside a durable function: stop for a typed reason, and go on with the answer.

    answer = await pause.approval("Charge 500?", expires="2d")
    await pause.wait(hours=24)

A paused task holds no process. Plain functions use perdure.sync.pause.

Written by tools/make_doors.py from the table in pause.py.
"""

from perdure._durable.pauses.reasons import (
    Approval,
    approval,
    callback,
    input,
    poll,
    rate_limit,
    task,
    until,
    wait,
    yield_now,
)
from perdure.errors import Rejected
__all__ = [
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
    "Rejected",
]
