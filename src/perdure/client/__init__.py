"""perdure behind a server: what `Perdure("https://…")` gives."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "app": ("RemotePerdure",),
        "commands": ("finish_job", "restore_plan", "resume"),
        "requests": ("address_of",),
        "task": ("RemoteTask",),
        "tasks": ("RemoteTasks",),
        "transport": ("Transport",),
    },
)
