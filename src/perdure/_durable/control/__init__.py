"""Control of running attempts from outside: cancel, pause, kill switch, time-out."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "control_watch": (
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
        ),
        "kill_switch": ("KillSwitch", "Switch", "why_stopped"),
    },
)
