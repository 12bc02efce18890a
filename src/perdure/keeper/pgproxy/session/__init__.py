"""The bytes to the server and to the client, and the parts of a session that are kept."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "blocks": ("Blocks",),
        "recipe": ("Entry", "SessionRecipe"),
        "recording_session": ("RecordingSession",),
        "session": ("Session",),
    },
)
