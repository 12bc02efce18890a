"""What others want of an attempt: cancel, pause, kill switch, time limit."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "control_watch": (
            "is_among",
            "is_halted",
            "is_live",
            "is_wished",
            "stop_soon",
            "watch_of",
            "why_drained",
            "wish_of",
            "wish_to_cancel",
        ),
        "kill_switch": (
            "KillSwitch",
            "Switch",
            "why_stopped",
        ),
    },
)
