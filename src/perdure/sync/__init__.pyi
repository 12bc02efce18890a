"""The blocking face of perdure: the same names and modules, without await.

It works in plain scripts and threads, and in a notebook whose event loop is running: the calling thread does the
call, without a loop. Inside a plain durable function the calls that an async one awaits are waited for.

Modules and classes whose names do not begin with an underscore follow the async ones: tools/make_sync.py writes them.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.sync._app import Perdure
from perdure.sync._calls import carry_over, span, stream, timeout
from perdure._durable import (
    Retry,
    call,
    current,
    durable,
    effect,
    idempotency_key,
    model_call,
    patched,
    step,
    transaction,
)
from perdure._runtime import Secret
from perdure.sync import automation
from perdure.sync import budgets
from perdure.sync import checkpoint
from perdure.sync import checks
from perdure.sync import effects
from perdure.sync import frames
from perdure.sync import loops
from perdure.sync import memory
from perdure.sync import models
from perdure.sync import pause
from perdure import errors
from perdure.sync import progress
from perdure.sync import recorded
from perdure.sync import runtime
from perdure.sync import signals
from perdure.sync import state
from perdure.sync import streams
from perdure.sync import types
__all__ = [
    "Perdure",
    "carry_over",
    "span",
    "stream",
    "timeout",
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
    "Secret",
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
    "errors",
    "progress",
    "recorded",
    "runtime",
    "signals",
    "state",
    "streams",
    "types",
]
