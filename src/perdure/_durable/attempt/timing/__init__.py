"""Time in a durable function: timers, wake-ups, and the watch over its event loop."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "loop_watchdog": ("LoopWatchdog", "Watched"),
        "ready_callbacks": ("ready_calls",),
        "replay_timers": ("Timers",),
        "wake_ups": ("Alarms",),
    },
    modules=("unrecorded_wake_ups", "wake_ups"),
)
