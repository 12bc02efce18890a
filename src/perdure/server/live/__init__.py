"""Live streams: what changes in a namespace, what happens to one task, and how both become server-sent events."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "feed": ("Feed",),
        "line": ("HEADERS", "Lasting", "MEDIA", "OpenLine"),
        "live": ("Live", "Pace"),
        "messages": ("Buffer", "Message", "sse"),
        "task_watch": ("Place", "TaskWatch"),
    },
)
