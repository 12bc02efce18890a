"""perdure keeps long-running agents going through crashes, deploys, closed laptops and moved hosts.

Each name is imported when it is first used, so that `import perdure` costs next to nothing.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._app import Perdure
from perdure._durable import (
    Retry,
    call,
    carry_over,
    current,
    durable,
    effect,
    idempotency_key,
    model_call,
    patched,
    span,
    step,
    stream,
    timeout,
    transaction,
)
from perdure._runtime import Secret
from perdure import automation
from perdure import budgets
from perdure import checkpoint
from perdure import checks
from perdure import effects
from perdure import errors
from perdure import frames
from perdure import loops
from perdure import memory
from perdure import models
from perdure import pause
from perdure import progress
from perdure import recorded
from perdure import runtime
from perdure import signals
from perdure import state
from perdure import streams
from perdure import sync
from perdure import testing
from perdure import types
__version__: str
__all__ = [
    "Perdure",
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
    "Secret",
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
]
