"""What goes to the server, what goes to the client, and what is kept of a session."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "blocks": ("Blocks",),
        "recipe": ("Entry", "Recipe"),
        "recording": ("RecordingSession",),
        "session": ("Session",),
    },
)
