"""What others want of an attempt: cancel, pause, kill switch, time limit.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.control.control_watch import (
    is_among,
    is_halted,
    is_live,
    is_wished,
    stop_soon,
    watch_of,
    why_drained,
    wish_of,
    wish_to_cancel,
)
from perdure._durable.control.kill_switch import KillSwitch, Switch, why_stopped
__all__ = [
    "is_among",
    "is_halted",
    "is_live",
    "is_wished",
    "stop_soon",
    "watch_of",
    "why_drained",
    "wish_of",
    "wish_to_cancel",
    "KillSwitch",
    "Switch",
    "why_stopped",
]
