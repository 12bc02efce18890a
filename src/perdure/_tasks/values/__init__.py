"""Values kept beside tasks: memory, named values, thought frames, handlers' positions."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "handlers": (
            "Handler",
            "Handlers",
            "HandlerRecord",
            "Undelivered",
            "events_after",
            "handlers_of",
            "has_had",
            "make_handler",
            "undelivered",
        ),
        "memory_values": ("Stored", "bound_to", "drop_expired"),
        "named_values": ("Kept", "Shelf"),
        "task_frames": ("TaskFrames", "open_frames"),
    },
    modules=("memory_values",),
)
