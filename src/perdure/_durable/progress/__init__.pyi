"""What a durable function records on its way: progress marks, loops, checkpoints, spans, state, thought frames.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.progress.checkpoints import (
    begin_at,
    position_of,
    rebased,
    recorded_later,
    resume_point,
    state_at,
    state_place,
)
from perdure._durable.progress.marks import Place, cursor, mark, plain_mark
from perdure._durable.progress.spans import span
from perdure._durable.progress import checkpoints
from perdure._durable.progress import loops
from perdure._durable.progress import spans
from perdure._durable.progress import state_list
from perdure._durable.progress import thought_frames
__all__ = [
    "begin_at",
    "position_of",
    "rebased",
    "recorded_later",
    "resume_point",
    "state_at",
    "state_place",
    "Place",
    "cursor",
    "mark",
    "plain_mark",
    "span",
    "checkpoints",
    "loops",
    "spans",
    "state_list",
    "thought_frames",
]
