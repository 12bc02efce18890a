"""What a durable function records on its way: progress marks, loops, checkpoints, spans, state, thought frames."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "checkpoints": (
            "begin_at",
            "position_of",
            "rebased",
            "recorded_later",
            "resume_point",
            "state_at",
            "state_place",
        ),
        "marks": ("Place", "cursor", "mark", "plain_mark"),
        "spans": ("span",),
    },
    modules=("checkpoints", "loops", "spans", "state_list", "thought_frames"),
)
