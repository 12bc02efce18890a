"""Calls on a task's memory inside a durable function."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "memory_calls": ("LayerRecord", "has_answers", "is_on_record", "memory_call", "own_store", "unrecorded"),
    },
)
