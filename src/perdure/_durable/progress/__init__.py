"""What a durable function notes on its way: marks, loops, checkpoints, spans, state, thought frames."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "checkpoints": (
            "Point",
            "begin_at",
            "checkpoint",
            "position_of",
            "rebased",
            "recorded_later",
            "resume_point",
            "state_at",
            "state_place",
        ),
        "marks": (
            "Place",
            "plain_progress",
            "progress",
        ),
        "spans": ("span",),
        "state_list": ("state",),
        "thought_frames": ("frames",),
    },
    modules=(
        "checkpoints",
        "loops",
        "spans",
        "state_list",
        "thought_frames",
    ),
)
