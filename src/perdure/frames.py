"""Inside a durable function: lines of thought that are set aside and taken up again."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "perdure._durable.progress.thought_frames": ("acknowledge", "drop", "push", "resume"),
        "perdure._model": ("Frame",),
    },
)
