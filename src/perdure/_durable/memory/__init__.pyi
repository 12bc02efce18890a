"""Calls on a task's memory inside a durable function.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.memory.memory_calls import (
    LayerRecord,
    has_answers,
    is_on_record,
    memory_call,
    own_store,
    unrecorded,
)
__all__ = [
    "LayerRecord",
    "has_answers",
    "is_on_record",
    "memory_call",
    "own_store",
    "unrecorded",
]
