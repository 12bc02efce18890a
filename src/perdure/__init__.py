"""perdure keeps long-running agents going through crashes, deploys, closed laptops and moved hosts.

Each name is imported when it is first used, so that `import perdure` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure._app import Perdure
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
    "Event",
    "Page",
    "Pause",
    "Perdure",
    "Progress",
    "Reason",
    "Status",
    "Task",
    "TaskRecord",
    "Tasks",
    "ToolCall",
    "register",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
