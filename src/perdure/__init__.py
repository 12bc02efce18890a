"""perdure keeps long-running agents going through crashes, deploys, closed laptops and moved hosts.

Each name is imported when it is first used, so that `import perdure` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure._app import Perdure
    from perdure._durable import (
        DID_NOT_HAPPEN,
        UNKNOWN,
        DidNotHappen,
        DurableFunction,
        Effect,
        Handle,
        Happened,
        Retry,
        bind,
        durable,
        effect,
        idempotency_headers,
        idempotency_key,
        pause,
        signals,
        step,
    )
    from perdure._ground.codec import register
    from perdure._model import (
        Attempt,
        Change,
        Checkpoint,
        Config,
        Event,
        Page,
        Pause,
        Progress,
        Reason,
        Status,
        TaskRecord,
        ToolCall,
    )
    from perdure._tasks import Task, Tasks

__version__ = "0.1.0"

_HOMES = {
    "perdure._app": ("Perdure",),
    "perdure._durable": (
        "DID_NOT_HAPPEN",
        "UNKNOWN",
        "DidNotHappen",
        "DurableFunction",
        "Effect",
        "Handle",
        "Happened",
        "Retry",
        "bind",
        "durable",
        "effect",
        "idempotency_headers",
        "idempotency_key",
        "pause",
        "signals",
        "step",
    ),
    "perdure._ground.codec": ("register",),
    "perdure._model": (
        "Attempt",
        "Change",
        "Checkpoint",
        "Config",
        "Event",
        "Page",
        "Pause",
        "Progress",
        "Reason",
        "Status",
        "TaskRecord",
        "ToolCall",
    ),
    "perdure._tasks": ("Task", "Tasks"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Attempt",
    "Change",
    "Checkpoint",
    "Config",
    "DID_NOT_HAPPEN",
    "DidNotHappen",
    "DurableFunction",
    "Effect",
    "Event",
    "Handle",
    "Happened",
    "Page",
    "Pause",
    "Perdure",
    "Progress",
    "Reason",
    "Retry",
    "Status",
    "Task",
    "TaskRecord",
    "Tasks",
    "ToolCall",
    "UNKNOWN",
    "bind",
    "durable",
    "effect",
    "idempotency_headers",
    "idempotency_key",
    "pause",
    "register",
    "signals",
    "step",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
