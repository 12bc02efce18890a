"""Durable functions that start by themselves: schedules, triggers, reducers."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "reducer": ("Do", "Reducer"),
        "schedules": (
            "Schedule",
            "ScheduleDraft",
            "Schedules",
            "Tick",
            "draft",
            "scheduled",
            "version_of as definition_version",
        ),
        "triggers": ("Events", "IncomingEvent", "Received", "TriggerDraft", "Triggers"),
    },
    modules=("reducer", "schedules", "triggers"),
)
