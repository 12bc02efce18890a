"""Pauses inside a durable function: questions, waits, polls, signals, instructions."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "instructions": ("instruction",),
        "questions": ("Open", "answer_to", "close_question", "note_question"),
        "reasons": ("Approval",),
    },
    modules=("instructions", "reasons", "signal_waits"),
)
