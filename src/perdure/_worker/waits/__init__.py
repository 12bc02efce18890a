"""Resume or start tasks: timers, polls, awaited tasks, dependencies, schedules, triggers."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "awaited_tasks": ("AwaitedTasks",),
        "dependencies": ("Dependencies",),
        "pollers": ("Pollers",),
        "schedules": ("Schedules",),
        "timers": ("Timers",),
        "triggers": ("Triggers",),
    },
)
