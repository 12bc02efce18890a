"""Control of running attempts from outside: cancel, pause, kill switch, time-out.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.control.control_watch import (
    BEGUN,
    CANCEL,
    includes_task,
    is_halted,
    is_live,
    has_cancel_request,
    stop_soon,
    watch_of,
    why_drained,
    cancel_request,
    request_cancel,
    request_rollback,
    rollback_request,
)
from perdure._durable.control.kill_switch import KillSwitch, Switch, why_stopped
__all__ = [
    "BEGUN",
    "CANCEL",
    "includes_task",
    "is_halted",
    "is_live",
    "has_cancel_request",
    "stop_soon",
    "watch_of",
    "why_drained",
    "cancel_request",
    "request_cancel",
    "request_rollback",
    "rollback_request",
    "KillSwitch",
    "Switch",
    "why_stopped",
]
